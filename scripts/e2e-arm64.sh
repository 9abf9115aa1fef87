#!/usr/bin/env bash
# The programs for ARM do what they promise: the demo with each of them, the
# 32-bit one on the processor of the first Raspberry Pi, and one boot of an
# emulated arm64 Debian that installs the package and passes a message. Needs root
# and Debian's packages, which it installs.
set -Eeuo pipefail
cd "$(dirname "$0")/.."
E2E_CACHE=${E2E_CACHE:-/var/cache/tgspool-e2e}
STEP='' NOTE='' WHERE=''
for part in check arm; do
	# shellcheck source=/dev/null
	. "scripts/e2e/$part.sh"
done
[ "$(id -u)" = 0 ] || fail "needs root, to register programs of other processors"
WORK=$(mktemp -d /var/tmp/tgspool-arm.XXXXXX)

tidy() {
	local code=$?
	trap - EXIT
	[ $code -eq 0 ] || { echo "== failed in: ${STEP:-no step}${WHERE:+, $WHERE}" >&2; tail -60 "$WORK/console" "$WORK"/demo-* 2>/dev/null >&2 || true; }
	binfmt_off
	rm -rf "$WORK"
	exit $code
}
trap tidy EXIT

# demo_on ARCH QEMU_CPU runs the demo with the program of a package.
demo_on() {
	dpkg-deb --fsys-tarfile "$WORK"/tgspool_*_"$1".deb | tar -x -O ./usr/bin/tgspool >"$WORK/tgspool-$1"
	chmod 755 "$WORK/tgspool-$1"
	QEMU_CPU=$2 timeout 600 "$WORK/tgspool-$1" demo --json >"$WORK/demo-$1" 2>&1 || fail "the demo: $(tail -5 "$WORK/demo-$1")"
	holds "the demo on $1" '"lost":0,"doubled":0' "$(tr -d ' ' <"$WORK/demo-$1")"
}

trial() {
	arm_image "$WORK"/tgspool_*_arm64.deb scripts/e2e/trial.sh
	arm_boot || fail "the emulated machine"
	holds "the machine's console" "trial: passed" "$(cat "$WORK/console")"
	note "$(grep -ao 'trial: .*' "$WORK/console" | tr -d '\r' | sed 's/^trial: //' | paste -sd, | sed 's/,/, /g')"
}

start=$SECONDS
scripts/need.sh mmdebstrap:mmdebstrap qemu-aarch64-static:qemu-user-static qemu-system-aarch64:qemu-system-arm \
	cpio:cpio depmod:kmod mke2fs:e2fsprogs arch-test:arch-test
binfmt_on
step "packages" env DIST="$WORK" scripts/deb.sh arm64 armhf
step "the demo on arm64" demo_on arm64 cortex-a53
step "the demo on a Raspberry Pi 1" demo_on armhf arm1176
step "parts of the emulated machine" arm_parts
step "install and pass a message on emulated arm64" trial
echo "== arm: passed, $((SECONDS - start)) s"
