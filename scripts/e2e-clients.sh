#!/usr/bin/env bash
# Installs bot libraries as they are and runs a bot on each against the real
# binary and the simulator. Usage: e2e-clients.sh [LIBRARY...], default all.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp scripts/e2e-clients/node/* "$work"
(cd "$work" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >/dev/null)
(cd scripts/e2e-clients && go build -o "$work/e2e" . && go build -o "$work/bot" ./bot)
"$work/e2e" -tgspool "$PWD/bin/tgspool" -bot "$work/bot" -node "$work" "$@"
