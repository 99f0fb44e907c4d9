#!/bin/sh
# mimalloc.sh: fetches the source of mimalloc 2.0.9 from Debian 12 by apt-get, into the cache where CMake looks for it. Needs no
# rights: it keeps lists of its own, so that the system's sources and lists stay as they are.
set -eu
version=2.0.9
sum=cbc9d207ff105ad1f0cb739c378076143a6452b8d0624309cea0abfb040e972b
home="${XDG_CACHE_HOME:-$HOME/.cache}/weft"
[ -e "$home/mimalloc/src/static.c" ] && exit 0

fail() { echo "weft: cannot fetch mimalloc's source: $*; unpack mimalloc $version yourself and configure with -DWEFT_MIMALLOC=FOLDER" >&2; exit 1; }
command -v apt-get > /dev/null 2>&1 || fail "there is no apt-get here"

mkdir -p "$home"
work=$(mktemp -d "$home/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial"
# The mirror that this machine's packages come from.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2> /dev/null | grep -v security |
    sed -nE 's,^(URIs:|deb)[^#]* *(https?://[^ ]+)( .*)?$,\2,p' | head -n 1)
[ -n "$mirror" ] || fail "apt knows no mirror of Debian"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" > "$work/sources/debian.list"
apt() {
    apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources" -o Dir::State::lists="$work/lists" \
        -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}
echo "weft: fetching the source of mimalloc $version"
apt update || fail "no list of Debian's sources"
(cd "$work" && apt source --download-only "mimalloc=$version+ds-2") || fail "Debian's sources do not have it"
tar="$work/mimalloc_$version+ds.orig.tar.xz"
echo "$sum  $tar" | sha256sum --quiet -c - || fail "what came is not what was expected"
# By Python, since a bare system has no xz.
python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$tar" "$work/unpacked" || fail "it cannot be unpacked"
# Whole or not at all, also where two do this at once.
mv -T "$work/unpacked/mimalloc-$version+ds" "$home/mimalloc" 2> /dev/null || [ -e "$home/mimalloc/src/static.c" ]
