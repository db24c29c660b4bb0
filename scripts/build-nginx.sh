#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# build-nginx.sh installed dynamic|coverage
# build-nginx.sh VERSION dynamic|static|sanitize|coverage|full
# build-nginx.sh NAME dynamic|static|sanitize|coverage|full
#
# Builds the module for the installed nginx (with its nginx-dev package), or an
# nginx with the module. VERSION is a version of nginx that nginx-source.sh
# fetches, such as 1.26.3. NAME is one of the sources that nginx-sources.sh
# lists, such as angie-1.10. "full" is a dynamic module for an nginx with more of
# its own modules, which nginx's own tests need. "coverage" is a module that counts
# the lines that run, for `make coverage`; it is static unless nginx is installed.
#
#   build/nginx-VERSION-KIND/objs/ngx_http_bloom_module.so    if the module is dynamic
#   build/nginx-VERSION-KIND/objs/nginx                       unless installed
#
# For a NAME the directory is build/NAME-KIND-COMPILER. If the program has
# another name, such as angie, nginx is a link to it.
#
# The script compiles nginx's own objects once and keeps them in the cache that
# nginx-source.sh describes. Later runs compile only what changed in the module.
# The variable CC names another compiler than gcc. The compiler's output is in
# the file log of the build's directory.

set -eu
cd "$(dirname "$0")/.."

usage="usage: $0 installed|VERSION|NAME dynamic|static|sanitize|coverage|full"
version=${1:?"$usage"}
kind=${2:?"$usage"}
cache=${BLOOM_CACHE:-${XDG_CACHE_HOME:-${HOME:?"set HOME, or BLOOM_CACHE"}/.cache}/ngx-bloom}
jobs=${BLOOM_JOBS:-$(nproc)}

# The name of nginx in messages, in the cache and in build/

case $version in
    installed|[0-9]*) name=nginx-$version work=$PWD/build/$name-$kind ;;
    *)                name=$version
                      work=$PWD/build/$name-$kind-$(basename "${CC:-gcc}") ;;
esac


# The flags of ./configure

if [ "$version" = installed ]; then
    source=/usr/share/nginx/src

    if [ ! -f $source/conf_flags ]; then
        echo "$0: $source/conf_flags is missing: the package nginx-dev" \
             "is not installed; run: make deps" >&2
        exit 1
    fi

    . $source/conf_flags
    flags=(--with-cc-opt='-g -O2' "${NGX_CONF_FLAGS[@]}")

    # the module exports no function of libgcov

    if [ "$kind" = coverage ]; then
        flags+=(--with-ld-opt='--coverage -Wl,--exclude-libs,libgcov.a')
    fi
else
    case $version in
        [0-9]*) source=$(scripts/nginx-source.sh "$version") ;;
        *)      source=$(scripts/nginx-sources.sh "$version") ;;
    esac

    flags=(--error-log-path=stderr --with-compat --with-threads
           --with-http_ssl_module --with-http_v2_module
           --with-http_realip_module --with-http_auth_request_module
           --with-http_addition_module --with-http_sub_module
           --with-http_slice_module --with-http_stub_status_module)

    # nginx before 1.25.0 and Tengine do not have HTTP/3

    if grep -q -e --with-http_v3_module "$source/auto/options"; then
        flags+=(--with-http_v3_module)
    fi

    if [ "$kind" = full ]; then
        flags+=(--with-http_dav_module --with-http_flv_module
                --with-http_mp4_module --with-http_gunzip_module
                --with-http_gzip_static_module --with-http_degradation_module
                --with-http_random_index_module --with-http_secure_link_module
                --with-mail --with-mail_ssl_module --with-stream
                --with-stream_ssl_module --with-stream_realip_module
                --with-stream_ssl_preread_module)
    fi

    if [ "$kind" = sanitize ]; then
        # NGX_DEBUG_PALLOC allocates each piece of a pool by itself, so that
        # ASan sees overruns; NGX_DEBUG_MALLOC fills zones with garbage first;
        # NGX_BLOOM_FAULTS lets tests inject faults. Without the last two
        # features nginx itself stores no misaligned numbers.
        flags+=(--with-cc-opt="-g -O1 -fsanitize=address,undefined \
-fno-sanitize-recover=undefined -fno-sanitize=nonnull-attribute \
-fno-omit-frame-pointer -DNGX_DEBUG_PALLOC=1 -DNGX_DEBUG_MALLOC=1 \
-DNGX_SUPPRESS_WARN=1 -DNGX_BLOOM_FAULTS=1 \
-DNGX_HAVE_NONALIGNED=0 -DNGX_HAVE_GCC_BSWAP64=0"
                --with-ld-opt=-fsanitize=address,undefined)
    elif [ "$kind" = coverage ]; then
        flags+=(--with-cc-opt='-g -O2 -DNGX_BLOOM_FAULTS=1' --with-debug
                --with-ld-opt=--coverage)
    else
        flags+=(--with-cc-opt='-g -O2' --with-debug)
    fi
fi

case $version-$kind in
    *-dynamic|*-full|installed-*)
        add=--add-dynamic-module=bloom target=modules ;;
    *)  add=--add-module=bloom target=binary ;;
esac


# run COMMAND...: runs it and shows its output only if it fails

run() {
    if ! "$@" > log 2>&1; then
        tail -n 60 log >&2
        echo "$0: failed: $* (all of its output: $PWD/log)" >&2
        return 1
    fi
}


# tree DIR: creates and enters a directory with links to nginx's sources, in
# which nginx's build has its own objs/

tree() {
    mkdir -p "$1"
    cd "$1"
    ln -sfn "$source"/* .
}


# digest: prints a digest of the sources that their directory's name does not
# tell apart

digest() {
    case $version in
        [0-9]*) ;;
        *) (cd "$source" && find auto src configure -type f -exec sha256sum {} + \
            2> /dev/null | sort) ;;
    esac
}

# The flags for the module's objects alone. nginx's own objects are not counted,
# and those in the cache must not write counts there.

added=
if [ "$kind" = coverage ]; then
    added="-O0 --coverage -include bloom/scripts/coverage.h"
fi

configure=./configure
if [ ! -x "$source/configure" ]; then configure=./auto/configure; fi


# nginx without the module, in the cache

if [ "$version" != installed ]; then
    key=$( (echo "${flags[@]}"; ${CC:-gcc} -v 2>&1; digest) \
          | sha256sum | cut -c 1-12)
    pristine=$cache/$name-$key

    mkdir -p "$cache"
    (
        flock 9

        if [ ! -x "$pristine/objs/nginx" ]; then
            echo "building $name with ${CC:-gcc}, once" >&2
            rm -rf "$pristine.tmp" "$pristine"
            tree "$pristine.tmp"
            run "$configure" "${flags[@]}"
            run make -f objs/Makefile -j "$jobs" binary

            program=$(sed -n 's,^binary:[[:space:]]*objs/,,p' objs/Makefile)
            if [ "$program" != nginx ]; then ln -s "$program" objs/nginx; fi

            mv "$pristine.tmp" "$pristine"
        fi
    ) 9>"$cache/$name-$key.lock"
fi


# The module, in the checkout. "bloom" is a link to the checkout, because
# nginx's build does not support paths with spaces.

if ! mkdir -p "$work" 2> /dev/null || ! touch "$work/lock" 2> /dev/null; then
    echo "$0: cannot write to $work, which $(stat -c %U "$work" 2> /dev/null \
         || stat -c %U build) owns; run make as that user, or give build/ to" \
         "yourself: sudo chown -R $(id -un) build" >&2
    exit 1
fi

exec 9>"$work/lock"
flock 9

tree "$work"
ln -sfn ../.. bloom

configured=$(echo "${pristine:-}" "$add" "${flags[@]}" ${added:+"$added"} ${CC:+"$CC"}
             cat bloom/config bloom/config.make
             if [ -n "$added" ]; then cat bloom/scripts/coverage.h; fi
             (cd bloom/src && find . -name "*.h" | sort))

if [ "$configured" != "$(cat configured 2>/dev/null)" ]; then
    echo "configuring the module for $name ($kind)" >&2
    rm -rf objs configured

    if [ "$version" != installed ]; then
        cp -a "$pristine/objs" .
    fi

    run "$configure" "${flags[@]}" "$add"

    # If only the line with the configure arguments has changed, nginx's objects
    # stay valid, except nginx.c, which prints that line.

    if [ "$target" = binary ]; then
        if cmp -s <(grep -v NGX_CONFIGURE objs/ngx_auto_config.h) \
                  <(grep -v NGX_CONFIGURE "$pristine/objs/ngx_auto_config.h")
        then
            for file in ngx_auto_config.h ngx_auto_headers.h; do
                touch -r "$pristine/objs/$file" "objs/$file"
            done
        fi
        rm -f objs/src/core/nginx.o
    fi

    echo "$configured" > configured
fi

# A variable of the command line replaces that of the makefile.

if [ -n "$added" ]; then
    own=$(sed -n 's/^CFLAGS = *//p' objs/Makefile)
    run make -f objs/Makefile -j "$jobs" "$target" CFLAGS="$own $added"
else
    run make -f objs/Makefile -j "$jobs" "$target"
fi
