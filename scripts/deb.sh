#!/usr/bin/env bash
# Builds the Debian packages into dist/: deb.sh [arch ...], by default arm64 amd64
# armhf. The same commit makes the same bytes: times come from the commit, paths
# and file modes from nowhere. Needs Go and, once, the module of nfpm.
#
#   VERSION=1.2.3   instead of what the newest tag says
#   DIST=folder     instead of dist
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC

# debian_version turns v1.2.3 into 1.2.3, what comes after a tag into 1.2.3+4.gabc,
# and a repository without tags into 0.0~4.gabc: each sorts after the one before.
debian_version() {
	local described count
	described=$(git describe --tags --match 'v[0-9]*' 2>/dev/null) || {
		count=$(git rev-list --count HEAD)
		echo "0.0~$count.g$(git rev-parse --short HEAD)"
		return
	}
	described=${described#v}
	case $described in
	*-*-g*) echo "$(cut -d- -f1 <<<"$described")+$(cut -d- -f2- <<<"$described" | tr - .)" ;;
	*) echo "$described" ;;
	esac
}

version=${VERSION:-$(debian_version)}
dist=${DIST:-dist}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
export PKG_VERSION=$version
maintainer=$(sed -n 's/^maintainer: //p' nfpm.yaml)

# compile GOARCH FILE: -buildvcs and -buildid would tell builds apart.
compile() {
	CGO_ENABLED=0 GOOS=linux GOARCH=$1 GOARM=6 go build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X main.version=$version" -o "$2" ./cmd/tgspool
}

# licence DIR prints what the folder of a module says about copying.
licence() {
	local files
	files=$(find "$1" -maxdepth 1 -type f \( -name 'LICEN[CS]E*' -o -name 'COPYING*' -o -name 'NOTICE*' \) | sort)
	[ -n "$files" ] || { echo "deb.sh: no licence in $1" >&2; return 1; }
	xargs -d '\n' cat <<<"$files"
}

# notices collects the licences of the modules that end up in the program.
notices() {
	local modules module tag dir
	modules=$(GOOS=linux go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/tgspool)
	echo "tgspool is linked with the Go standard library and the modules below."
	printf '\n== Go\n\n'
	cat "$(go env GOROOT)/LICENSE"
	sort -u <<<"$modules" | grep . | while read -r module tag dir; do
		printf '\n== %s %s\n\n' "$module" "$tag"
		licence "$dir"
	done
}

debian_changelog() {
	printf 'tgspool (%s-1) stable; urgency=medium\n\n' "$version"
	printf '  * New release. What has changed is in changelog.gz.\n\n'
	printf ' -- %s  %s\n' "$maintainer" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
}

# stage DIR fills a folder with what is the same for every machine.
stage() {
	local dir=$1
	compile "$(go env GOHOSTARCH)" "$dir/host"
	"$dir/host" docs man8 | gzip -9n >"$dir/tgspool.8.gz"
	"$dir/host" docs man5 | gzip -9n >"$dir/tgspool.toml.5.gz"
	"$dir/host" docs settings >"$dir/tgspool.toml"
	for shell in bash zsh fish; do
		"$dir/host" completion $shell >"$dir/$shell"
	done
	notices | gzip -9n >"$dir/third-party-notices.gz"
	gzip -9n <CHANGELOG.md >"$dir/changelog.gz"
	debian_changelog | gzip -9n >"$dir/changelog.Debian.gz"
	cp -r packaging/examples "$dir/examples"
	find "$dir/examples" -type d -exec chmod 755 {} +
	find "$dir/examples" -type f ! -perm -u+x -exec chmod 644 {} +
	find "$dir/examples" -type f -perm -u+x -exec chmod 755 {} +
}

# package DEBARCH packs the staged folder with the program for one machine.
package() {
	local goarch=$1 deb=$dist/tgspool_${version}-1_$1.deb said
	[ "$1" != armhf ] || goarch=arm
	compile "$goarch" "$STAGE/tgspool"
	chmod 755 "$STAGE/tgspool"
	said=$(PKG_ARCH=$1 bin/nfpm package -f nfpm.yaml -p deb -t "$deb" 2>&1) || { echo "$said" >&2; return 1; }
	echo "$deb: $(stat -c %s "$deb") bytes"
}

if [ ! -x bin/nfpm ] || [ tools/nfpm/go.sum -nt bin/nfpm ]; then
	(cd tools/nfpm && go build -o ../../bin/nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm)
fi
STAGE=$(mktemp -d "${TMPDIR:-/tmp}/tgspool-deb.XXXXXX")
export STAGE
trap 'rm -rf "$STAGE"' EXIT
mkdir -p "$dist"
stage "$STAGE"
[ $# -gt 0 ] || set -- arm64 amd64 armhf
for arch; do
	package "$arch"
done
(cd "$dist" && sha256sum tgspool_*.deb >SHA256SUMS)
