#!/usr/bin/env bash
# Installs the Debian packages of programs that aren't there: need.sh program:package ...
set -euo pipefail
missing=()
for pair; do
	command -v "${pair%:*}" >/dev/null || missing+=("${pair#*:}")
done
[ ${#missing[@]} -gt 0 ] || exit 0
[ "$(id -u)" = 0 ] || { echo "missing: ${missing[*]} (sudo apt-get install ${missing[*]})" >&2; exit 1; }
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
