#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# install-deps.sh run|test|cross|bench|deb
#
# Installs the Debian packages that are missing for `make run`, `make test`,
# `make test-cross`, `make bench`, or `make deb` and `make test-deb`. Does nothing
# if none is missing.

set -eu

PATH=$PATH:/usr/sbin:/sbin
missing=

command_of() { command -v "$1" > /dev/null || missing="$missing $2"; }
file_of() { [ -e "$1" ] || missing="$missing $2"; }
header_of() {
    for dir in /usr/include /usr/include/*-linux-*; do
        if [ -e "$dir/$1" ]; then return; fi
    done
    missing="$missing $2"
}

case ${1:-} in
    run|test|cross|bench|deb) ;;
    *) echo "usage: $0 run|test|cross|bench|deb" >&2
       exit 2 ;;
esac

command_of gcc gcc
command_of make make
header_of stdio.h libc6-dev
header_of zlib.h zlib1g-dev
header_of bzlib.h libbz2-dev
header_of lzma.h liblzma-dev
header_of zstd.h libzstd-dev
header_of idn2.h libidn2-dev
header_of hiredis/hiredis.h libhiredis-dev
header_of jansson.h libjansson-dev
header_of curl/curl.h libcurl4-openssl-dev
header_of openssl/ssl.h libssl-dev
command_of nginx nginx
file_of /usr/share/nginx/src/conf_flags nginx-dev
command_of curl curl

if [ "$1" = test ]; then
    command_of prove perl
    perl -MNet::LibIDN2 -e 1 2> /dev/null || missing="$missing libnet-libidn2-perl"
    perl -MText::CSV_XS -e 1 2> /dev/null || missing="$missing libtext-csv-xs-perl"
    header_of cmocka.h libcmocka-dev
    header_of pcre2.h libpcre2-dev
    header_of murmurhash.h libmurmurhash-dev
    command_of dpkg-source dpkg-dev
    command_of git git

    # what writes files that are no lists of keys, and compressed lists
    command_of bzip2 bzip2
    command_of lz4 lz4
    command_of sqlite3 sqlite3
    command_of xz xz-utils
    command_of zip zip
    command_of zstd zstd

    # clients of HTTP/2 and HTTP/3
    perl -MProtocol::HTTP2 -e 1 2> /dev/null \
    || missing="$missing libprotocol-http2-perl"
    header_of ngtcp2/ngtcp2_crypto_gnutls.h libngtcp2-crypto-gnutls-dev
    header_of ngtcp2/ngtcp2.h libngtcp2-dev
    header_of nghttp3/nghttp3.h libnghttp3-dev
    header_of gnutls/gnutls.h libgnutls28-dev

    command_of valgrind valgrind
    command_of gnuplot gnuplot-nox

    # the libraries whose filters are imported; ecj and a JRE need a fifth of
    # the room of a JDK
    if ! command -v javac > /dev/null; then
        command_of ecj ecj
        command_of java default-jre-headless
    fi
    file_of /usr/share/java/guava.jar libguava-java
    command_of bloom golang-github-dcso-bloom-cli
    command_of go golang-go
    file_of /usr/share/gocode/src/github.com/bits-and-blooms/bloom/bloom.go \
            golang-github-willf-bloom-dev
    command_of redis-server redis-server
    command_of openssl openssl
    command_of minisign minisign
    command_of shellcheck shellcheck
    command_of prometheus prometheus
    command_of promtool prometheus

    # the resolvers that lists are written for
    command_of dnsmasq dnsmasq-base
    command_of unbound unbound
    command_of named bind9
    perl -MNet::DNS -e 1 2> /dev/null || missing="$missing libnet-dns-perl"

    # other modules, for Debian's nginx
    file_of /usr/share/nginx/modules-available/mod-http-lua.conf \
            libnginx-mod-http-lua
    file_of /usr/share/nginx/modules-available/mod-http-js.conf \
            libnginx-mod-http-js

    # what builds the page, and a browser to test it in
    command_of node nodejs
    command_of npm npm
    file_of /usr/bin/chromium chromium

    # the fuzzers: clang with its run-time libraries
    command_of clang clang
    if ! ls /usr/lib/llvm-*/lib/clang/*/lib/*/libclang_rt.fuzzer* \
         > /dev/null 2>&1
    then
        missing="$missing libclang-rt-dev"
    fi
fi

if [ "$1" = cross ]; then
    header_of cmocka.h libcmocka-dev
    command_of aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    file_of /usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross
    command_of qemu-aarch64 qemu-user
    command_of dpkg-deb dpkg
fi

if [ "$1" = deb ]; then
    # what debian/control names as Build-Depends
    command_of dpkg-buildpackage dpkg-dev
    file_of /usr/share/build-essential/essential-packages-list build-essential
    command_of dh debhelper
    header_of cmocka.h libcmocka-dev
    header_of murmurhash.h libmurmurhash-dev

    # what checks and tries the packages
    command_of lintian lintian
    command_of faketime faketime
    command_of mmdebstrap mmdebstrap
    command_of unshare util-linux
fi

if [ "$1" = bench ]; then
    command_of gnuplot gnuplot-nox

    # other ways to look keys up
    file_of /usr/share/nginx/modules-available/mod-http-lua.conf \
            libnginx-mod-http-lua
    file_of /usr/share/lua/5.1/nginx/redis.lua lua-nginx-redis
    command_of redis-server redis-server
    command_of haproxy haproxy

    # other implementations
    header_of bloom.h libbloom-dev
    if ! command -v javac > /dev/null; then
        command_of ecj ecj
        command_of java default-jre-headless
    fi
    file_of /usr/share/java/guava.jar libguava-java
    command_of go golang-go
    file_of /usr/share/gocode/src/github.com/bits-and-blooms/bloom/bloom.go \
            golang-github-willf-bloom-dev
    file_of /usr/share/gocode/src/github.com/seiflotfy/cuckoofilter/doc.go \
            golang-github-seiflotfy-cuckoofilter-dev
    header_of rocksdb/filter_policy.h librocksdb-dev
fi

if [ -z "$missing" ]; then
    exit 0
fi

install="apt-get install -y --no-install-recommends$missing"

if ! command -v apt-get > /dev/null; then
    echo "$0: these Debian packages are missing:$missing; this system has no" \
         "apt-get, so install the same software in another way" >&2
    exit 1
fi

if [ "$(id -u)" = 0 ]; then
    as_root=
elif sudo -n true 2> /dev/null; then
    as_root="sudo -n"
else
    echo "$0: packages are missing; run this command as root, then try" \
         "again:" >&2
    echo "  apt-get update && $install" >&2
    exit 1
fi

echo "installing missing Debian packages:$missing"

# Debian starts a service when it installs it. The tests need none of these
# services, and nginx's fails if port 80 is in use. So services are kept from
# starting during the installation.

policy=/usr/sbin/policy-rc.d

case "$missing " in
    *" nginx "*|*" redis-server "*|*" prometheus "*|*" haproxy "*|\
    *" unbound "*|*" bind9 "*)
        if [ ! -e $policy ]; then
            trap '$as_root rm -f $policy' EXIT
            printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy > /dev/null
            $as_root chmod 755 $policy
        fi
    ;;
esac

$as_root apt-get update -q
$as_root env DEBIAN_FRONTEND=noninteractive $install -q
