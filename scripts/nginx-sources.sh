#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# nginx-sources.sh
#
# Prints the names of the sources in the directory NGINX_SOURCES, which are
# sources of nginx and of programs derived from it: archives NAME.tar.xz and
# NAME.tar.gz, and directories NAME. If the variable is not set, the directory
# is ../shared/nginx beside the checkout. Prints nothing if it does not exist.
#
# nginx-sources.sh NAME
#
# Unpacks this source into build/sources/NAME and prints that directory. A
# directory is copied, because nginx's ./configure writes into it.

set -eu
cd "$(dirname "$0")/.."

directory=${NGINX_SOURCES:-../shared/nginx}

if [ -n "${NGINX_SOURCES:-}" ] && [ ! -d "$directory" ]; then
    echo "$0: NGINX_SOURCES=$directory is not a directory" >&2
    exit 1
fi


# is_source DIRECTORY: tells whether it is a source of nginx

is_source() {
    [ -f "$1/src/core/nginx.h" ] \
    && { [ -x "$1/configure" ] || [ -x "$1/auto/configure" ]; }
}


# unpack SOURCE DIRECTORY

unpack() {
    mkdir "$2"

    if [ -d "$1" ]; then
        tar -C "$1" --exclude=./objs --exclude=./Makefile --exclude=./.git \
            -cf - . | tar -C "$2" -xf -
    else
        tar -C "$2" --strip-components=1 -xf "$1"
    fi

    if ! is_source "$2"; then
        echo "$0: $1 is not a source of nginx: it lacks src/core/nginx.h" \
             "or configure" >&2
        return 1
    fi
}


if [ $# = 0 ]; then
    for source in "$directory"/*; do
        name=$(basename "$source")

        case $name in
            *[!A-Za-z0-9._+-]*) ;;
            *.tar.xz|*.tar.gz)  echo "${name%.tar.?z}" ;;
            *)                  if is_source "$source"; then echo "$name"; fi ;;
        esac
    done | sort -u

    exit 0
fi

name=$1
source=

for found in "$directory/$name".tar.gz "$directory/$name".tar.xz \
             "$directory/$name"
do
    if [ -e "$found" ]; then source=$found; fi
done

if [ -z "$source" ]; then
    echo "$0: $directory has no source $name; it has:" $("$0") >&2
    exit 1
fi

unpacked=$PWD/build/sources/$name
mkdir -p build/sources
exec 9>"$unpacked.lock"
flock 9

# The source is unpacked again if a file of it has changed since.

if [ ! -d "$unpacked" ] || [ -n "$(find "$source" -newer "$unpacked" | head -n 1)" ]
then
    rm -rf "$unpacked" "$unpacked.tmp"
    unpack "$source" "$unpacked.tmp"
    touch "$unpacked.tmp"
    mv "$unpacked.tmp" "$unpacked"
fi

echo "$unpacked"
