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
STEP='' NOTE='' NSPAWN='' LEADER=''
for part in check machine telegram install live upgrade trouble leave; do
	# shellcheck source=/dev/null
	. "scripts/e2e/$part.sh"
done

[ "$(id -u)" = 0 ] || fail "needs root, to boot containers"
WORK=$(mktemp -d /var/tmp/tgspool-e2e.XXXXXX)

# tell shows what the machine knows about a step that failed.
tell() {
	local code=$?
	trap - ERR EXIT
	if [ $code -ne 0 ]; then
		echo "== failed in: ${STEP:-no step} (line ${1:-?})" >&2
		if [ -n "$LEADER" ]; then
			inside sh -c "journalctl --no-pager --boot | grep -v telegram | tail -60" >&2 || true
			inside systemctl --no-pager list-units --all "tgspool*" >&2 || true
			inside timeout 10 tgspool queue list --limit 20 >&2 || true
		fi
	fi
	machine_off
	[ -n "${E2E_KEEP:-}" ] || rm -rf "$WORK"
	exit $code
}
trap 'tell $LINENO' EXIT

# build makes the packages: today's, one that calls itself older, and one whose
# spool is of a version to come.
build() {
	DIST=$WORK/dist VERSION=0.8.1 scripts/deb.sh amd64
	DIST=$WORK/dist VERSION=0.8.2 scripts/deb.sh amd64
	PREVIOUS=$WORK/dist/tgspool_0.8.1-1_amd64.deb
	CURRENT=$WORK/dist/tgspool_0.8.2-1_amd64.deb
	newer_store
}

linted() {
	local out
	out=$(lintian --fail-on error,warning "$CURRENT" 2>&1) || fail "$out"
	equals "lintian" "" "$(grep -v 'root privileges' <<<"$out" || true)"
}

suite() {
	echo "== $1"
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
	step "setup" set_up
	step "setup once more" set_up_again
	step "settings of one's own" own_settings
	step "messages flow" messages_flow
	step "fields of the journal" journal_fields
	step "a handler sees nothing" handler_shut_in
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
