#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# cross-libs.sh DIR
#
# Fetches Debian's arm64 packages of the libraries that the tool and the unit
# tests need, and unpacks them into DIR/usr. Does nothing if that has been done.
#
# It installs nothing and adds no architecture to the system, because that would
# bring other versions of packages that the system has.

set -eu

packages="libidn2-dev libidn2-0 libunistring2 libcmocka-dev libcmocka0
          zlib1g-dev zlib1g libhiredis-dev libhiredis0.14 libhiredis1.1.0
          libmurmurhash-dev libmurmurhash1 libmurmurhash2 libssl-dev libssl3
          libssl3t64"

if [ $# != 1 ]; then
    echo "usage: $0 DIR" >&2
    exit 2
fi

dir=$1

if [ -e "$dir/unpacked" ]; then
    exit 0
fi

if ! command -v apt-get > /dev/null; then
    echo "$0: this system has no apt-get to fetch libraries for aarch64;" \
         "unpack them into $dir/usr and create $dir/unpacked" >&2
    exit 1
fi

rm -rf "$dir/apt" "$dir/packages"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" \
         "$dir/packages"
dir=$(cd "$dir" && pwd)

# Runs apt-get with its own lists, which contain packages for arm64 only.

apt() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
            -o Dir::State="$dir/apt" -o Dir::State::status=/dev/null \
            -o Dir::State::lists="$dir/apt/lists" \
            -o Dir::Cache="$dir/apt/cache" \
            -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
}

apt update > "$dir/apt/log" 2>&1 || {
    cat "$dir/apt/log" >&2
    echo "$0: apt-get could not fetch the lists of packages for arm64; check" \
         "the network" >&2
    exit 1
}

# The names differ between releases: the packages of this release are fetched.

for package in $packages; do
    (cd "$dir/packages" && apt download "$package" >> "$dir/apt/log" 2>&1) \
    || echo "$0: $package: not in this release" >> "$dir/apt/log"
done

for file in "$dir"/packages/*.deb; do
    dpkg-deb -x "$file" "$dir"
done

for file in usr/include/cmocka.h usr/include/idn2.h \
            usr/include/hiredis/hiredis.h usr/include/zlib.h
do
    if [ ! -e "$dir/$file" ]; then
        cat "$dir/apt/log" >&2
        echo "$0: no package brought $file; see above" >&2
        exit 1
    fi
done

rm -rf "$dir/apt" "$dir/packages"
touch "$dir/unpacked"
