#!/usr/bin/env bash
# Runs every fuzz target in turn: `go test -fuzz` takes one target of one
# package, so somebody has to find them. Usage: fuzz.sh [time each, default 10s]
set -euo pipefail
cd "$(dirname "$0")/.."
fuzztime=${1:-10s}

count=0
for package in $(go list ./...); do
	targets=$(go test -list '^Fuzz' "$package") || { echo "$targets" >&2; exit 1; }
	for target in $(grep '^Fuzz' <<<"$targets" || true); do
		echo "== $package $target, $fuzztime"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$package"
		count=$((count + 1))
	done
done
echo "$count fuzz targets, $fuzztime each"
[ "$count" -gt 0 ] # none found means that the search is broken, not that all is well
