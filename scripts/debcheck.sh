#!/usr/bin/env bash
# Builds the packages twice, the second time from a copy of the sources at another
# place, and demands the same bytes; then looks at what came out.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 077 # nothing of the builder's habits may get into a package
limit=$((8 * 1024 * 1024))
copy=$(mktemp -d "${TMPDIR:-/tmp}/tgspool-copy.XXXXXX")
trap 'rm -rf "$copy"' EXIT

scripts/need.sh lintian:lintian man:man-db
rm -rf dist
scripts/deb.sh
VERSION=$(sed -n 's/.* tgspool_\(.*\)-1_amd64.deb/\1/p' dist/SHA256SUMS)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export VERSION SOURCE_DATE_EPOCH
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read -c | tar -x -C "$copy"
mkdir "$copy/bin"
cp bin/nfpm "$copy/bin/"
touch "$copy/bin/nfpm"
(cd "$copy" && scripts/deb.sh)
diff dist/SHA256SUMS "$copy/dist/SHA256SUMS" || { echo "debcheck: the second build differs" >&2; exit 1; }

for deb in dist/*.deb; do
	size=$(stat -c %s "$deb")
	[ "$size" -le $limit ] || { echo "debcheck: $deb has $size bytes, over $limit" >&2; exit 1; }
	dpkg-deb --fsys-tarfile "$deb" | tar -x -O ./usr/bin/tgspool >"$copy/tgspool"
	built=$(go version -m "$copy/tgspool" | sed -nE 's/.*(GOARCH|GOARM|CGO_ENABLED)=/\1=/p' | xargs)
	case $deb in
	*_armhf.deb) want="CGO_ENABLED=0 GOARCH=arm GOARM=6" ;; # with 7 it would end with SIGILL on the first boards
	*_arm64.deb) want="CGO_ENABLED=0 GOARCH=arm64" ;;
	*) want="CGO_ENABLED=0 GOARCH=amd64" ;;
	esac
	[ "$built" = "$want" ] || { echo "debcheck: $deb: built with $built, want $want" >&2; exit 1; }
	lintian --fail-on error,warning "$deb" 2>&1 | grep -v 'root privileges' && { echo "debcheck: lintian complains" >&2; exit 1; }
	echo "$deb: $size bytes"
done
echo "same bytes twice, lintian has nothing to say"
