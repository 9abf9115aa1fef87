# Sourced: a Debian machine with real systemd as its first process, in a
# container with a network of its own. ROOT is its file system, LEADER its init.

# rootfs SUITE prints the folder of a small installed Debian, made once. The
# mirror is the one that this machine uses.
rootfs() {
	local dir=$E2E_CACHE/$1 from
	mkdir -p "$E2E_CACHE"
	exec 9>"$E2E_CACHE/lock" # closed with the subshell of the caller
	flock 9
	if [ ! -e "$dir/etc/machine-id" ]; then
		from=$(mirror)
		rm -rf "$dir.new"
		mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,dbus \
			"$1" "$dir.new" ${from:+"$from"} >&2
		rm -rf "$dir.new"/var/lib/apt/lists/* "$dir.new"/etc/apt/sources.list "$dir.new"/etc/apt/sources.list.d/*
		: >"$dir.new/etc/machine-id"
		mv "$dir.new" "$dir"
	fi
	echo "$dir"
}

# machine_make SUITE makes a machine that isn't on yet.
machine_make() {
	ROOT=$WORK/$1
	cp -a --reflink=auto "$(rootfs "$1")" "$ROOT"
	echo "tgspool-$1" >"$ROOT/etc/hostname"
	printf '127.0.0.1 localhost tgspool-%s\n' "$1" >"$ROOT/etc/hosts"
}

# machine_on boots it in a control group of its own: two machines in one would
# take their units' groups, and the processes in them, for each other's.
machine_on() {
	cgroup_new
	(
		echo "$BASHPID" >"$CGROUP/cgroup.procs"
		SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 exec systemd-nspawn --quiet --boot --directory="$ROOT" \
			--machine="tgspool-e2e-$$" --keep-unit --register=no --private-network --console=pipe
	) </dev/null >"$ROOT.console" 2>&1 &
	NSPAWN=$!
	machine_ready
}

BOOTS=0
cgroup_new() {
	local top
	BOOTS=$((BOOTS + 1))
	top=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$top" ] || fail "this machine has no control groups of version 2"
	CGROUP=$top/tgspool-e2e-$$-$BOOTS
	mkdir "$CGROUP"
}

# cgroup_gone ends whatever is left of a machine.
cgroup_gone() {
	[ -n "$CGROUP" ] || return 0
	echo 1 2>/dev/null >"$CGROUP/cgroup.kill" || true
	for _ in $(seq 100); do
		find "$CGROUP" -depth -type d -exec rmdir {} + 2>/dev/null || true
		[ -d "$CGROUP" ] || break
		sleep 0.1
	done
	CGROUP=''
}

# machine_ready waits for the init process and the end of its boot.
machine_ready() {
	eventually 20 "an init process" has_leader
	eventually 60 "the end of the boot" booted
}

# has_leader finds the container's init: the child of nspawn that has become it.
has_leader() {
	local pid
	pid=$(awk '{ print $1 }' "/proc/$NSPAWN/task/$NSPAWN/children")
	[ -n "$pid" ] && [ "$(cat "/proc/$pid/comm")" = systemd ] && LEADER=$pid
}

booted() {
	local state
	state=$(inside systemctl is-system-running || true)
	[ "$state" = running ] || [ "$state" = degraded ]
}

# machine_reboot: the container's manager ends with its machine, and a new one
# starts from the same files.
machine_reboot() {
	inside systemctl reboot >/dev/null 2>&1 || true # the answer may be cut off
	eventually 60 "the machine's end" nspawn_gone
	cgroup_gone
	machine_on
}

nspawn_gone() { ! kill -0 "$NSPAWN" 2>/dev/null; }

# machine_off turns the machine off, the hard way when it doesn't listen.
machine_off() {
	[ -n "${NSPAWN:-}" ] || return 0
	inside timeout 5 systemctl poweroff >/dev/null 2>&1 || kill -TERM "$NSPAWN" 2>/dev/null || true
	for _ in $(seq 200); do
		kill -0 "$NSPAWN" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$NSPAWN" 2>/dev/null || true
	wait "$NSPAWN" 2>/dev/null || true
	cgroup_gone
	NSPAWN='' LEADER=''
}

# inside COMMAND... runs in the machine, as root, with a plain environment. It
# never lasts longer than what takes longest, a stop that must be forced.
inside() {
	timeout 120 nsenter -t "$LEADER" -m -u -i -n -p -C -r -w -- /usr/bin/env -i \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@" </dev/null
}

# put MODE OWNER PATH writes standard input to a file in the machine.
put() {
	cat >"$ROOT/root/put"
	inside install -m "$1" -o "${2%:*}" -g "${2#*:}" /root/put "$3"
	rm "$ROOT/root/put"
}

# network COMMAND... runs one of this machine's programs in the other's network.
network() { timeout 60 nsenter -t "$LEADER" -n -- "$@"; }

# all_off stops the package's units. What systemctl has to say about the order in
# which it does is of interest only when it fails.
all_off() {
	local out
	# The sockets first: a client that knocks between two stops starts the daemon again.
	out=$(inside systemctl stop 'tgspool*.socket' 2>&1) || fail "$out"
	out=$(inside systemctl stop tgspool.service 2>&1) || fail "$out"
}

# show UNIT PROPERTY
show() { inside systemctl show --property="$2" --value "$1"; }

# journal ARGS... prints messages of the unit.
journal() { inside journalctl --no-pager --output=cat --unit=tgspool.service "$@"; }

# journal_says PART: in this boot, whoever said it.
journal_says() { grep -qF -- "$1" <<<"$(inside journalctl --no-pager --boot --output=cat)"; }

# journal_tells PART: the daemon did, in a message or in one of its fields.
journal_tells() { grep -qF -- "$1" <<<"$(journal --boot --output=verbose)"; }
