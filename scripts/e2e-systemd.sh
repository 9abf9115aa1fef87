#!/usr/bin/env bash
# The package on real Debian: each suite boots with systemd as its first process,
# and the package lives through everything that happens to one. Needs root and
# Debian's packages, which it installs. Usage: e2e-systemd.sh [suite ...]
#
#   E2E_CACHE=folder   where the file systems are kept (/var/cache/tgspool-e2e)
#   E2E_KEEP=1         leave the machine's files for a look
set -Eeuo pipefail
cd "$(dirname "$0")/.."
E2E_CACHE=${E2E_CACHE:-/var/cache/tgspool-e2e}
STEP='' NOTE='' WHERE='' NSPAWN='' LEADER='' ROOT='' CGROUP=''
for part in check machine telegram install guided live upgrade trouble leave; do
	# shellcheck source=/dev/null
	. "scripts/e2e/$part.sh"
done

[ "$(id -u)" = 0 ] || fail "needs root, to boot containers"
WORK=$(mktemp -d /var/tmp/tgspool-e2e.XXXXXX)

# tell shows what is known about a step that failed, and cleans up.
tell() {
	local code=$?
	trap - ERR EXIT
	set +e
	[ $code -eq 0 ] || explain $code >&2
	machine_off
	# shellcheck disable=SC2046 # one process a word
	kill $(jobs -p) 2>/dev/null
	[ -n "${E2E_KEEP:-}" ] || rm -rf "$WORK"
	exit $code
}
trap tell EXIT

# told is the journal with what each message says in its fields.
told() {
	inside journalctl --no-pager --boot --output=json | jq --raw-output 'select(.SYSLOG_IDENTIFIER != "telegram") |
		"\(.__REALTIME_TIMESTAMP | tonumber / 1000000 | strftime("%H:%M:%S")) \(.SYSLOG_IDENTIFIER)[\(._PID)] \(.MESSAGE) \(
		with_entries(select(.key | test("^(_|MESSAGE|PRIORITY|SYSLOG|CODE_|UNIT$|INVOCATION|JOB_|TID$|UNIT_|LEADER|USER_|SEAT)") | not)) | tojson | select(. != "{}") // "")"'
}

explain() {
	echo "== failed in: ${STEP:-no step}${WHERE:+, $WHERE}, code $1; load $(cut -d' ' -f1-3 /proc/loadavg), $(df -h --output=avail "$WORK" | tail -1) free"
	if [ -z "$LEADER" ] || [ ! -d "/proc/$LEADER" ]; then
		[ ! -e "${ROOT:-}.console" ] || { echo "-- the console of a machine that is off" && tail -n 30 "$ROOT.console"; }
		return
	fi
	echo "-- journal" && told | tail -n 120
	echo "-- units" && inside systemctl --no-pager --plain --no-legend list-units --all 'tgspool*' 'telegram-*' 'knock-*'
	inside systemctl --no-pager list-jobs
	echo "-- tgspool" && inside timeout 10 tgspool status
	inside timeout 10 tgspool queue list --limit 20
	echo "-- the simulator" && sim GET status
	[ ! -s "$ROOT/root/knocks" ] || { echo "-- clients: number, exit code, ms" && tail -n 3 "$ROOT/root/knocks" "$ROOT/root/knock-errors"; }
}


# build makes the packages: today's, one that calls itself older, and one whose
# spool is of a version to come.
build() {
	ARCH=$(dpkg --print-architecture)
	DIST=$WORK/dist VERSION=0.8.1 scripts/deb.sh "$ARCH"
	DIST=$WORK/dist VERSION=0.8.2 scripts/deb.sh "$ARCH"
	PREVIOUS=$WORK/dist/tgspool_0.8.1-1_$ARCH.deb
	CURRENT=$WORK/dist/tgspool_0.8.2-1_$ARCH.deb
	newer_store
}

# linted: lintian, and what it doesn't look at.
linted() {
	local out page files=$WORK/files
	mkdir "$files"
	dpkg-deb --fsys-tarfile "$CURRENT" | tar -x -C "$files"
	equals "settings that are made already" "" "$(grep -v '^#' "$files/etc/tgspool/tgspool.toml" | grep . || true)"
	for page in man8/tgspool.8 man5/tgspool.toml.5; do
		equals "man $page" "" "$(man --warnings --local-file "$files/usr/share/man/$page.gz" 2>&1 >/dev/null)"
	done
	out=$(bash -c ". $files/usr/share/bash-completion/completions/tgspool && complete -p tgspool")
	holds "completion in bash" tgspool "$out"
	out=$(lintian --fail-on error,warning "$CURRENT" 2>&1) || fail "$out"
	equals "lintian" "" "$(grep -v 'root privileges' <<<"$out" || true)"
}

suite() {
	echo "== $1"
	TOKEN=$FIRST_TOKEN # a step of the suite before has set another
	machine_make "$1"
	step "install where systemd doesn't run" chroot_install
	step "boot" machine_on
	dpkg-deb --fsys-tarfile "$CURRENT" | tar -x -O ./usr/bin/tgspool | put 755 root:root /usr/local/bin/telegram
	step "the simulator" telegram_on
	installation
	living
	upgrades
	troubles
	leaving
	machine_off
}

installation() {
	step "install: disabled and inactive" installed_asleep
	step "unit files" units_sound
	step "started without settings" nothing_configured
	step "setup at a terminal" guided
	step "purge, and install again" fresh_again
	step "setup by a script" set_up
	step "setup once more" set_up_again
	step "settings of one's own" own_settings
	step "messages flow" messages_flow
	step "fields of the journal" journal_fields
	step "a handler sees nothing" handler_shut_in
	step "another token" another_token
}

start=$SECONDS
scripts/need.sh systemd-nspawn:systemd-container mmdebstrap:mmdebstrap lintian:lintian man:man-db \
	jq:jq curl:curl openssl:openssl nsenter:util-linux
step "packages" build
step "lintian" linted
[ $# -gt 0 ] || set -- bookworm trixie
for name; do
	suite "$name"
done
echo "== systemd: passed, $((SECONDS - start)) s"
