#!/usr/bin/env bash
# End to end with the real binary: the kill test with more rounds than in
# `make test`, conversations with handlers of all kinds, the demo, which checks
# itself against the simulator's record, power cuts at random moments of a recorded
# run, and the package on Debians that are booted for it, which needs root.
# It says what it ran. A test that isn't there is a failure, and so is one that
# can't be run here.
set -euo pipefail
cd "$(dirname "$0")/.."
export TGSPOOL_KILLS=${TGSPOOL_KILLS:-300}

listed=$(go test -list '^TestKill' ./cmd/... ./internal/...)
tests=$(grep '^TestKill' <<<"$listed") || { echo "e2e: no TestKill… found" >&2; exit 1; }
# shellcheck disable=SC2086 # one name a word
echo "== kill test, TGSPOOL_KILLS=$TGSPOOL_KILLS:" $tests
go test -count=1 -timeout 15m -run '^TestKill' ./cmd/... ./internal/... | grep -v -e 'no test files' -e 'no tests to run'

echo "== conversations"
TGSPOOL_REPORT_SECONDS=20 go test -count=1 -timeout 15m -run '^TestConversation' ./cmd/tgspool

echo "== demo"
result=$(bin/tgspool demo --json)
echo "$result"
grep -q '"lost":0,"doubled":0' <<<"${result// /}" || { echo "e2e: the demo lost or doubled something" >&2; exit 1; }
echo "== power cuts"
scripts/powercut.sh

echo "== the package on booted Debians"
if [ "$(id -u)" != 0 ]; then
	echo "e2e: all of this has passed but for the last, which was NOT RUN: it needs root (sudo make e2e-systemd)" >&2
	exit 1
fi
scripts/e2e-systemd.sh

echo "== e2e: passed"
