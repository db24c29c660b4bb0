#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# install.sh install|uninstall tool|module|lua...
#
# The body of `make install` and `make uninstall`. Installs the named parts, or
# removes what an earlier run with the same variables installed. It prints the
# path of each file, and what to do next.
#
# A file is replaced by a rename, because a running nginx may have the old one
# mapped. The Makefile gives the directories in variables, and DESTDIR goes before
# all of them.

set -eu
cd "$(dirname "$0")/.."
umask 022

do=${1:?"usage: $0 install|uninstall tool|module|lua..."}
shift
DESTDIR=${DESTDIR-}
module=ngx_http_bloom_module.so
nginx=${NGINX:-nginx}

: "${bindir=}" "${man1dir=}" "${completiondir=}" "${examplesdir=}" "${luadir=}"
: "${modulesdir=}"


fail() {
    echo "$0: $*" >&2
    exit 1
}

# list PART: prints "MODE SOURCE TARGET" for each file of a part

list() {
    case $1 in
        tool)
            echo "755 build/ngx-bloom $bindir/ngx-bloom"
            echo "755 src/cli/ngx-bloom-pull $bindir/ngx-bloom-pull"

            for name in ngx-bloom ngx-bloom-pull; do
                echo "644 docs/$name.1 $man1dir/$name.1"
                echo "644 docs/$name.bash $completiondir/$name"
            done
            examples ;;
        module)
            echo "644 build/$module $modulesdir/$module" ;;
        lua)
            if [ -e lua/resty/bloom.lua ]; then
                echo "644 lua/resty/bloom.lua $luadir/resty/bloom.lua"
            fi ;;
        *)
            fail "unknown part: $1" ;;
    esac
}

# Leaves out what the examples write when they run, as git does.

examples() {
    local file mode not=() pattern

    while read -r pattern; do
        case $pattern in
            '#'*|'') ;;
            /*)  not+=(! -path "conf-examples$pattern") ;;
            */)  not+=(! -path "conf-examples/$pattern*") ;;
            *)   not+=(! -name "$pattern") ;;
        esac
    done < conf-examples/.gitignore

    find conf-examples -type f ! -name .gitignore "${not[@]}" | LC_ALL=C sort \
    | while read -r file; do
        mode=644
        [ ! -x "$file" ] || mode=755
        echo "$mode $file $examplesdir/${file#conf-examples/}"
    done
}

# Finds a Debian package that owns the module's file. Its files are apt's.

check_owner() {
    local owner

    [ -z "$DESTDIR" ] && command -v dpkg-query > /dev/null || return 0

    owner=$(dpkg-query -S "$modulesdir/$module" 2> /dev/null) || return 0
    fail "$modulesdir/$module belongs to the Debian package ${owner%%:*};" \
         "remove that package first, or set modulesdir="
}

# Creates the directory of a file, before the first file is copied: otherwise a
# part of the files would be installed.

prepare_file() {
    local target=$DESTDIR$3
    local dir=${target%/*} variable="PREFIX or DESTDIR"

    case $3 in "$modulesdir/"*) variable="modulesdir or DESTDIR" ;; esac

    mkdir -p "$dir" 2> /dev/null && [ -w "$dir" ] \
    || fail "cannot write to $dir; run this as root, or set $variable;" \
            "nothing was installed"
}

install_file() {
    local mode=$1 source=$2 target=$DESTDIR$3

    install -m "$mode" "$source" "$target.new"
    mv -f "$target.new" "$target"
    echo "installed $target"
}

# Removes a file, and the directories above it that have the project's name or
# are below such a directory, if nothing is left in them.

uninstall_file() {
    local target=$DESTDIR$3
    local dir=${target%/*}

    if [ -e "$target" ] || [ -L "$target" ]; then
        rm -f "$target" 2> /dev/null \
        || fail "cannot remove $target; run this as root"
        echo "removed $target"
        found=$((found + 1))
    else
        lacking=$((lacking + 1))
    fi

    while :; do
        case ${dir#"$DESTDIR"} in
            *ngx-bloom*|*/resty) rmdir "$dir" 2> /dev/null || break ;;
            *) break ;;
        esac
        dir=${dir%/*}
    done
}

# each WHAT PART...: calls WHAT_file for each file of the parts

each() {
    local what=$1 part mode source target
    shift

    for part; do
        while read -r mode source target; do
            "${what}_file" "$mode" "$source" "$target"
        done < <(list "$part")
    done
}


for part; do
    if [ "$part" = module ] && [ -z "$modulesdir" ]; then
        command -v "$nginx" > /dev/null \
        || fail "NGINX=$nginx: there is no such program, so the directory of" \
                "nginx's modules is unknown; set NGINX=PATH, or modulesdir=DIR"
        fail "$nginx -V shows no --modules-path, so the directory of nginx's" \
             "modules is unknown; set modulesdir=DIR, or NGINX=PATH"
    elif [ "$part" = module ]; then
        check_owner
    fi
done

case $DESTDIR in
    ''|/*) ;;
    *) fail "DESTDIR \"$DESTDIR\": must be an absolute path" ;;
esac

for name in bindir man1dir completiondir examplesdir luadir modulesdir; do
    case ${!name} in
        ''|/*) ;;
        *) fail "$name \"${!name}\": must be an absolute path, as PREFIX must" ;;
    esac
done

found=0
lacking=0

[ "$do" = uninstall ] || each prepare "$@"
each "$do" "$@"

if [ $lacking != 0 ]; then
    echo
    echo "$lacking files were not there. If they were installed with another" \
         "PREFIX, DESTDIR or directory, give the same to \"make uninstall\"."
fi

# where Debian's Lua looks, nothing needs to be written

case "$do $* $luadir" in
    *" /usr/share/lua/5.1"|*" /usr/local/share/lua/5.1") ;;
    install*" lua "*)
        echo
        echo "For Lua, write into http{}: lua_package_path \"$luadir/?.lua;;\";"
        ;;
esac

case "$do $* " in
    "install "*module*)
        cat << END

To load the module, write this line at the top of nginx.conf:

    load_module $modulesdir/$module;

Then run "nginx -t" and start nginx. If nginx runs with an earlier version of
the module already, a reload keeps that version: restart nginx, or upgrade it
without a pause as docs/install.md says.
END
        ;;
    "uninstall "*module*)
        echo
        echo "If nginx.conf has load_module for $module, remove it with all" \
             "bloom_ directives, or nginx does not start again."
        echo "The directory of added and removed keys is not removed:" \
             "bloom_state_path, by default /var/lib/nginx/bloom."
        ;;
esac
