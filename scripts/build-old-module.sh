#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# build-old-module.sh
#
# Builds an earlier version of the module for the installed nginx, which
# t/zone/upgrade-module.t tries to upgrade from and to:
#
#   build/old-module/ngx_http_bloom_module.so
#
# The earlier version is a commit of the git history that writes other files
# into the state directory. If the history is not there, as in an
# archive or a shallow clone, the script prints why, writes the same line into
# build/old-module/reason, and exits with 0: the test is skipped then.
#
# The compiled module is kept in the cache that nginx-source.sh describes.

set -eu
cd "$(dirname "$0")/.."

commit=2d1add29130b43233ca58628592ab708502b2e11
cache=${BLOOM_CACHE:-${XDG_CACHE_HOME:-${HOME:?"set HOME, or BLOOM_CACHE"}/.cache}/ngx-bloom}
out=$PWD/build/old-module
module=ngx_http_bloom_module.so

mkdir -p "$out" "$cache"
exec 9>"$out/lock"
flock 9
rm -f "$out/$module" "$out/reason"


# skip REASON

skip() {
    echo "the upgrade from an earlier module did not run: $1" \
    | tee "$out/reason" >&2
    exit 0
}


# In a container, the checkout often belongs to another user.

history() { git -c safe.directory='*' "$@"; }

if ! command -v git > /dev/null; then
    skip "git is not installed"
fi

# A directory above an unpacked archive may have a history of its own.

if [ ! -e .git ] || ! history rev-parse --git-dir > /dev/null 2>&1; then
    skip "this is not a checkout of the git repository"
fi

if ! history cat-file -e "$commit^{commit}" 2> /dev/null; then
    skip "the history lacks the commit ${commit:0:7}; run: git fetch --unshallow"
fi


# What decides whether a compiled module fits: the commit, nginx, the compiler

key=$( (echo "$commit"; cat /usr/share/nginx/src/conf_flags
        dpkg-query -W -f '${Version}\n' nginx-dev
        ${CC:-gcc} --version) | sha256sum | cut -c 1-12)
kept=$cache/old-module-$key

exec 8>"$kept.lock"
flock 8

if [ ! -e "$kept/$module" ]; then
    echo "building the module of ${commit:0:7} for the installed nginx, once" >&2
    rm -rf "$kept" "$kept.tmp"
    mkdir "$kept.tmp"
    history archive "$commit" | tar -x -C "$kept.tmp"

    "$kept.tmp/scripts/build-nginx.sh" installed dynamic

    mkdir "$kept"
    mv "$kept.tmp/build/nginx-installed-dynamic/objs/$module" "$kept"
    rm -rf "$kept.tmp"
fi

cp "$kept/$module" "$out"
