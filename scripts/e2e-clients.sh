#!/usr/bin/env bash
# Installs bot libraries as they are, each at the version that is pinned here
# (node/package-lock.json, go.mod), and runs a bot on each against the real
# binary and the simulator. Usage: e2e-clients.sh [LIBRARY...], default all.
# PARALLEL is how many are tried at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/need.sh node:nodejs npm:npm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp scripts/e2e-clients/node/* "$work"
(cd "$work" && timeout 300 npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >/dev/null)
(cd scripts/e2e-clients && timeout 600 go build -o "$work/e2e" . && timeout 600 go build -o "$work/bot" ./bot)
"$work/e2e" -tgspool "$PWD/bin/tgspool" -bot "$work/bot" -node "$work" -parallel "${PARALLEL:-3}" "$@"
