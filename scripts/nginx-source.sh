#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# nginx-source.sh VERSION
#
# Prints the directory with the source of that nginx. If it is not in the cache,
# the script fetches it:
#
#   ${BLOOM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ngx-bloom}/nginx-VERSION-src
#
# The source is nginx's own archive, from Debian's source package and without
# Debian's patches. The archive of a version stays the same while Debian revises
# its patches, and mirrors keep it longer than those.
#
# The script uses the mirror of this machine's apt. On a machine that is not a
# Debian, set BLOOM_DEBIAN_MIRROR to a mirror's URL. apt runs with its own
# source list and directories, so the machine's configuration does not change
# and the script needs no root.

set -eu

version=${1:?"usage: $0 VERSION"}
cache=${BLOOM_CACHE:-${XDG_CACHE_HOME:-${HOME:?"set HOME, or BLOOM_CACHE"}/.cache}/ngx-bloom}

case $version in
    1.22.*) suite=bookworm ;;
    1.26.*) suite=trixie ;;
    *) echo "$0: no Debian release with nginx $version is known;" \
            "add its suite to this script" >&2
       exit 1 ;;
esac

mkdir -p "$cache"
exec 9>"$cache/nginx-$version-src.lock"
flock 9

if [ -x "$cache/nginx-$version-src/configure" ]; then
    echo "$cache/nginx-$version-src"
    exit 0
fi

echo "fetching the source of nginx $version (Debian $suite)" >&2

tmp=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/lists/partial" "$tmp/cache/archives/partial" "$tmp/source"

# sites "" or sites -security: prints the machine's mirror of its release, or of
# its security updates

sites() {
    codename=$(. /etc/os-release; [ "$ID" = debian ] && echo "$VERSION_CODENAME")

    apt-get indextargets --format '$(RELEASE) $(SITE)' 'Created-By: Packages' \
    | sed -n "s/^\($codename\|stable\)$1 //p" | sort -u | head -n 1
}

archive=${BLOOM_DEBIAN_MIRROR:-$(sites "")}
security=$(sites -security)

if [ -z "$archive" ]; then
    echo "$0: apt knows no Debian mirror; run apt-get update on a Debian," \
         "or set BLOOM_DEBIAN_MIRROR to a mirror's URL" >&2
    exit 1
fi

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
options=
if [ -f $keyring ]; then options="[signed-by=$keyring] "; fi

{
    echo "deb-src $options$archive $suite main"
    echo "${security:+deb-src $options$security $suite-security main}"
} > "$tmp/sources.list"

apt=(-q -o "Dir::Etc::SourceList=$tmp/sources.list" -o Dir::Etc::SourceParts=-
     -o "Dir::State::Lists=$tmp/lists" -o "Dir::Cache=$tmp/cache"
     -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Sandbox::User=)

# One of the two sites may fail; what counts is whether the source is found.

apt-get "${apt[@]}" update > "$tmp/log" 2>&1 || true

for revision in $(apt-cache "${apt[@]}" showsrc --only-source nginx \
                  2>> "$tmp/log" \
                  | sed -n "s/^Version: \($version-.*\)/\1/p" | sort -rVu)
do
    if (cd "$tmp/source" \
        && apt-get "${apt[@]}" source --only-source --tar-only \
                   "nginx=$revision" \
        && tar -xzf "nginx_$version.orig.tar.gz") \
       >> "$tmp/log" 2>&1
    then
        mv "$tmp/source/nginx-$version" "$cache/nginx-$version-src"
        echo "$cache/nginx-$version-src"
        exit 0
    fi
done

cat "$tmp/log" >&2
echo "$0: could not fetch the source of nginx $version" \
     "from $archive; see apt's output above" >&2
exit 1
