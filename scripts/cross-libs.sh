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
          zlib1g-dev zlib1g libbz2-dev libbz2-1.0 liblzma-dev liblzma5
          libzstd-dev libzstd1 libhiredis-dev libhiredis0.14 libhiredis1.1.0
          libjansson-dev libjansson4
          libmurmurhash-dev libmurmurhash1 libmurmurhash2 libssl-dev libssl3
          libssl3t64 libcurl4-openssl-dev libcurl4 libcurl4t64"

# what libcurl needs

packages="$packages libbrotli1 libcom-err2 libffi8 libgmp10 libgnutls30
          libgnutls30t64 libgssapi-krb5-2 libhogweed6 libhogweed6t64
          libk5crypto3 libkeyutils1 libkrb5-3 libkrb5support0 libldap-2.5-0
          libldap2 libnettle8 libnettle8t64 libnghttp2-14 libnghttp3-9
          libp11-kit0 libpsl5 libpsl5t64 librtmp1 libsasl2-2 libssh2-1
          libssh2-1t64 libtasn1-6"

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
            usr/include/hiredis/hiredis.h usr/include/jansson.h \
            usr/include/zlib.h \
            usr/include/bzlib.h usr/include/lzma.h usr/include/zstd.h \
            usr/include/aarch64-linux-gnu/curl/curl.h usr/include/openssl/ssl.h
do
    if [ ! -e "$dir/$file" ]; then
        cat "$dir/apt/log" >&2
        echo "$0: no package brought $file; see above" >&2
        exit 1
    fi
done

rm -rf "$dir/apt" "$dir/packages"
touch "$dir/unpacked"
