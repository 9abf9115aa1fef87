#!/usr/bin/env bash
# Records a working spool's system calls and cuts the power at random moments of
# them; see scripts/powercut. Not a line of the Makefile, since it needs strace.
#   CUTS=3000 SEED=1 scripts/powercut.sh
set -euo pipefail
cd "$(dirname "$0")/.."
command -v strace >/dev/null || apt-get install -qq -y strace >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/powercut" ./scripts/powercut
mkdir "$work/spool"
strace -f -y -xx -s 8388608 -o "$work/trace" \
	-e trace=pwrite64,write,fdatasync,fsync,ftruncate \
	"$work/powercut" work -steps "${STEPS:-400}" -seed "${SEED:-1}" "$work/spool" >"$work/log"
"$work/powercut" replay -cuts "${CUTS:-3000}" -seed "${SEED:-1}" "$work/trace"
