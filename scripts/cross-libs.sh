#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# cross-libs.sh DIR
#
# Leaves in DIR/usr what the tool and the unit tests need of other libraries for
# aarch64: Debian's packages for arm64, fetched and unpacked. Nothing is
# installed, and the system's own architectures stay as they are, since adding
# one would bring other versions of packages that it has.
# Instant when it has been done.

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
    echo "$0: there is no apt-get here, and so no libraries for aarch64;" \
         "unpack them into $dir/usr and create $dir/unpacked" >&2
    exit 1
fi

rm -rf "$dir/apt" "$dir/packages"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" \
         "$dir/packages"
dir=$(cd "$dir" && pwd)

# an apt of our own, which knows no other packages than those for arm64

apt() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
            -o Dir::State="$dir/apt" -o Dir::State::status=/dev/null \
            -o Dir::State::lists="$dir/apt/lists" \
            -o Dir::Cache="$dir/apt/cache" \
            -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
}

apt update > "$dir/apt/log" 2>&1 || {
    cat "$dir/apt/log" >&2
    echo "$0: no lists of packages for arm64 can be had; is there a network?" >&2
    exit 1
}

# names differ between releases; those that this one has

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
