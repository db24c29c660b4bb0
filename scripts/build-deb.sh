#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# build-deb.sh DIR [VERSION]
#
# Builds the Debian packages in DIR, from a copy of the checkout in DIR/ngx-bloom.
# With VERSION the packages, the module and the tool have that version, which
# tests of upgrades need. DEB_BUILD_OPTIONS=nocheck leaves out the unit tests.

set -eu
cd "$(dirname "$0")/.."

dir=${1:?"usage: $0 DIR [VERSION]"}
version=${2-}

rm -rf "$dir"
mkdir -p "$dir/ngx-bloom"
dir=$(cd "$dir" && pwd)

# What git would ignore stays behind: other files of the checkout are the source.

tar -c --exclude=./build --exclude=./.git --exclude=./dashboard/node_modules \
    --exclude-from=<(sed '/^#/d; s,/$,,; s,^/*,./conf-examples/,' \
                         conf-examples/.gitignore) . \
| tar -x --no-same-owner -C "$dir/ngx-bloom"

cd "$dir/ngx-bloom"

if [ -n "$version" ]; then
    sed -i "1s/(.*)/($version)/" debian/changelog
    sed -i "s/^\(#define BLOOM_VERSION  \).*/\1\"$version\"/" \
        src/core/bloom_version.h
fi

if ! dpkg-buildpackage -us -uc > ../build.log 2>&1; then
    tail -n 60 ../build.log >&2
    echo "$0: the build failed; all of its output: $dir/build.log" >&2
    exit 1
fi

ls "$dir"/*.deb
