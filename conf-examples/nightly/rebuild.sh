#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# rebuild.sh: builds a zone's image from a database or a published list and has
# nginx load it
#
# Usage: rebuild.sh [again]
#
# With "again" the script builds from the keys that SOURCE printed for the last
# image (KEEP_KEYS), and from the KEY_FILES and EXCEPTIONS of now.
#
# A new image replaces the old one only if it is whole, has about as many keys
# (MAX_LOSS, MAX_GROWTH), is of the same kind (CHANGE), and finds the right
# samples (MUST_HAVE, MUST_NOT_HAVE). If nginx refuses it, the script puts the
# old image back.
#
# Run it as a user of its own, such as ngx-bloom. It refuses an IMAGE, and
# KEEP_KEYS, in a directory where another user can plant links.
#
# docs/nightly.md explains each step.
#
# Settings, from the environment:
#
#   SOURCE          a command that prints every key, one a line, and exits with
#                   a status other than 0 if it could not print them all
#   KEYS_MATCH      an extended regular expression that each of these lines has
#                   to match as a whole, such as [0-9]+ (default: none)
#   KEY_FILES       files with further keys, with spaces between their names;
#                   with "--from auto" each may have a format of its own, which
#                   may differ from that of SOURCE; a file that is empty, or
#                   with "--from" has only comments (# or !), is left out
#                   (default: none)
#   EXCEPTIONS      a file of keys, one a line, that the image is built without,
#                   whichever list has them and in whichever spelling: see
#                   --without of `ngx-bloom build` (default: none)
#   KEEP_KEYS       a file in which to keep the keys that SOURCE printed for the
#                   last image, for "again", and for the examples of keys that
#                   are gone if MAX_LOSS refuses an image; only the user of this
#                   script can read it (default: none)
#   IMAGE           the file that "file=" of the zone names
#   BUILD_OPTIONS   options of `ngx-bloom build`: "-n" above all, and "--form" if
#                   the zone needs a key form
#   ZONE_URL        the zone at an endpoint with "write=on", such as
#                   http://127.0.0.1:8080/bloom/zones/ids; without it the script
#                   runs NGINX_RELOAD and cannot tell which image serves
#   NGINX_RELOAD    a command that tests the configuration and reloads nginx,
#                   run if the image is too large for the zone's memory, or if
#                   there is no ZONE_URL (default: nginx -q -t && nginx -s
#                   reload; empty: print the commands instead)
#   MIN_KEYS        fewer keys than this are an error (default: 1)
#   MAX_LOSS        fewer keys than the old image has, by more than this
#                   percentage or number of keys, are an error (default: 1%;
#                   off: any loss passes, also the guard of the zone)
#   MAX_GROWTH      more keys than the old image has, by more than this
#                   percentage or number of keys, are an error (default: 50%;
#                   off: any growth passes, also the guard of the zone)
#   CHANGE          1: the new image may have any number of keys from MIN_KEYS
#                   on, another key form, hash, layout or rate than the old one,
#                   and an earlier time; for one run
#   MUST_HAVE       a file of keys, one a line, that the new image has to find,
#                   such as URLs that were listed for years; see --must-have
#                   of `ngx-bloom build` (default: none)
#   MUST_NOT_HAVE   a file of keys, one a line, that the new image must not
#                   find, such as your own hosts; see --must-not-have
#                   (default: none)
#   CHECK           a command that fails unless nginx does with the new image
#                   what it should, such as a request for a listed URL; the
#                   script repeats it for WAIT seconds (default: none)
#   AS_OF           a command, run after SOURCE, that prints the time up to
#                   which the keys are complete, in seconds since 1970 (default:
#                   the time before SOURCE)
#   LAG             seconds by which SOURCE may lag behind the database, as on a
#                   replica (default: 0)
#   WAIT            seconds to wait for the new image after NGINX_RELOAD, and
#                   for CHECK (default: 300)
#   TMPDIR          a directory with room for the keys (default: /tmp)
#
# Files beside the image: IMAGE.new, the image that is built, which stays there
# if it does not replace the old one; IMAGE.saved, the old image until the new
# one serves; IMAGE.previous, the old image from then on; IMAGE.build-id, the
# build ids of the last image and of the one before, by which the script notices
# that somebody replaced IMAGE; IMAGE.lock, which lets one rebuild run at a time
# and names its directory below TMPDIR.
#
# Exit status: 0 the new image serves (without ZONE_URL: nginx was told to
# load it; for a first image, if nginx does not run: it is in place); 1 nothing
# was changed; 2 the new image is in place, and nginx may not serve it, or CHECK
# fails.

set -euo pipefail

SOURCE=${SOURCE-}
IMAGE=${IMAGE-}
case $IMAGE in -*) IMAGE=./$IMAGE ;; esac
BUILD_OPTIONS=${BUILD_OPTIONS-}
KEYS_MATCH=${KEYS_MATCH-}
KEY_FILES=${KEY_FILES-}
EXCEPTIONS=${EXCEPTIONS-}
KEEP_KEYS=${KEEP_KEYS-}
AS_OF=${AS_OF-}
CHANGE=${CHANGE:-0}
ZONE_URL=${ZONE_URL-}
ZONE_URL=${ZONE_URL%/}
NGINX_RELOAD=${NGINX_RELOAD-nginx -q -t && nginx -s reload}
MIN_KEYS=${MIN_KEYS:-1}
MAX_LOSS=${MAX_LOSS:-1%}
MAX_GROWTH=${MAX_GROWTH:-50%}
LAG=${LAG:-0}
MUST_HAVE=${MUST_HAVE-}
MUST_NOT_HAVE=${MUST_NOT_HAVE-}
CHECK=${CHECK-}
WAIT=${WAIT:-300}

new=$IMAGE.new
saved=$IMAGE.saved
previous=$IMAGE.previous
build_ids=$IMAGE.build-id
written=    # the content of that file before this run
old_id=     # the build id of the old image
again=


fail() {
    echo "rebuild: $1; nothing was changed$(old_image)" >&2
    exit 1
}

# is_ours DIRECTORY: no other user but root can put files and links there; a
# group of this user's own can, too

is_ours() {
    [ -n "$(find "$1/" -prune -type d '(' -uid "$EUID" -o -uid 0 ')' \
                 ! -perm /002 '(' ! -perm /020 -o -gid "$(id -g)" ')')" ]
}

# Prints which image stays.

old_image() {
    local info of

    info=$(ngx-bloom info --json "$IMAGE" 2> /dev/null) || return 0
    of=$(value as_of <<< "$info")
    [ "$of" != null ] || of=$(value created <<< "$info")
    echo ": $IMAGE, of $of, stays"
}

# put_back WHY [STATUS]: puts the old image back. A first image stays, since
# nginx needs it to start; the script then exits with STATUS, or else with 2.

put_back() {
    if [ ! -e "$saved" ]; then
        keep_keys
        echo "rebuild: $1; $IMAGE is the first image: start or reload nginx"
        exit "${2-2}"
    fi

    ln -f "$IMAGE" "$new"
    mv -f "$saved" "$IMAGE"
    write_build_ids "$written"
    fail "$1; the image that was built is $new"
}

# Exits when nginx may or may not load the new image. It does not put the old
# image back: nginx may already have removed keys from its journal that only the
# new image has, and would then refuse the old one.

unsure() {
    keep_keys
    echo "rebuild: $1; the new image is in place: read nginx's error log" >&2
    exit 2
}

# Keeps the keys of SOURCE, once their image is in place.

keep_keys() {
    [ ! -e "$work/kept" ] || mv -f "$KEEP_KEYS.new" "$KEEP_KEYS"
    rm -f "$work/kept"
}

write_build_ids() {
    if [ -z "$1" ]; then
        rm -f "$build_ids"
    else
        echo "$1" > "$build_ids.new" && mv -f "$build_ids.new" "$build_ids"
    fi
}

clean_up() {
    [ ! -e "$work/kept" ] || rm -f "$KEEP_KEYS.new"
    rm -rf "$work"
    : > "$IMAGE.lock"
}

# value NAME: prints the first member of that name in JSON, text or a number

value() {
    grep -oE "\"$1\": *\"?[^\",}]*" | sed -n '1s/^[^:]*: *"\{0,1\}//p'
}

# Prints the message of the endpoint's response.

message() {
    grep -oE '"message":"([^"\\]|\\.)*"' "$work/answer" \
    | sed -n '1{s/^"message":"\(.*\)"$/\1/; s/\\\(.\)/\1/g; p}'
}

serves_new() {
    curl -sS -o "$work/state" "$ZONE_URL" 2> /dev/null \
    && [ "$(value build_id < "$work/state")" = "$build_id" ]
}

reload_nginx() {
    bash -c "$NGINX_RELOAD" 9>&- \
    || put_back "nginx does not accept the new image: see above" \
                "$([ -n "$ZONE_URL" ] && echo 2 || echo 0)"
}

# wait_for COMMAND...: repeats a command until it succeeds, for WAIT seconds

wait_for() {
    local tries

    for ((tries = 0; tries < WAIT * 2; tries++)); do
        "$@" && return
        sleep 0.5
    done

    return 1
}

# Has nginx load the new image, after a reload if the zone is too small. A bound
# that is off here is off for the zone's guard, too.

load() {
    local status error=0 bank force=

    case "$MAX_LOSS $MAX_GROWTH" in
        *off*) force="?force=true" ;;
    esac

    status=$(curl -sS -o "$work/answer" -w '%{http_code}' -X POST \
                  "$ZONE_URL/reload$force") || error=$?

    case $error in
        0)   ;;
        6|7) put_back "nginx does not answer at $ZONE_URL" 0 ;;
        *)   serves_new || unsure "the endpoint did not finish its answer"
             return ;;
    esac

    case $status in
        200) [ "$(value build_id < "$work/answer")" = "$build_id" ] \
             || put_back "the zone at $ZONE_URL does not load $IMAGE"
             return ;;
        507) ;;
        4??) put_back "nginx refuses the new image: $status $(message)" ;;
        *)   serves_new || unsure "the endpoint answers $status $(message)"
             return ;;
    esac

    # There is no room. A larger zone helps, unless the machine is short of
    # memory.

    bank=$(value bank_bytes < "$work/answer") || bank=0

    if [ $((bits / 8)) -le "$bank" ]; then
        put_back "$(message)"
    fi

    if [ -z "$NGINX_RELOAD" ]; then
        echo "rebuild: $(message)" >&2
        put_back "the new image is too large for the zone's memory; raise the \
zone's size if one is configured, then run as root: \
\`mv $new $IMAGE && nginx -t && nginx -s reload\`"
    fi

    echo "rebuild: the new image is too large for the zone's memory;" \
         "reloading nginx"
    reload_nginx

    wait_for serves_new \
    || unsure "nginx was reloaded, and does not serve the new image after \
$WAIT s"
}


# check_old: the old image can be read, and is the last one that this script put
# in place, or the one before. A comparison with another image says nothing.

check_old() {
    ngx-bloom info --json "$IMAGE" > "$work/old" \
    || fail "the old image cannot be read: put $previous back; or remove \
$IMAGE, and the next run compares with nothing but MIN_KEYS"

    old_id=$(value build_id < "$work/old")

    case " $written " in
        "  "|*" $old_id "*) return ;;
    esac

    echo "rebuild: $IMAGE is not the one that this job wrote last (build id \
$old_id, not ${written%% *}): somebody replaced it; put $previous back, or run \
this once with CHANGE=1; nothing was changed" >&2
    exit 1
}

# check_kind: the new image has the parameters of the old one, and no earlier
# time. With an earlier time, nginx would reject requests for keys that exist,
# or pass keys that are on a block list.

check_kind() {
    local name new old once="or run this once with CHANGE=1"

    for name in hash layout fpr; do
        new=$(value $name < "$work/new")
        old=$(value $name < "$work/old")
        [ "$new" = "$old" ] \
        || fail "the new image has $name $new, the old one has $old: correct \
BUILD_OPTIONS, $once"
    done

    new=$(value as_of < "$work/new")
    old=$(value as_of < "$work/old")
    [ "$old" = null ] || [[ ! $new < $old ]] \
    || fail "the as_of of the new image, $new, is earlier than that of the old \
image, $old: load newer keys, $once"
}


# excerpt FILE: prints the file, without its middle if it is long

excerpt() {
    local lines

    lines=$(wc -l < "$1")

    if [ "$lines" -le 30 ]; then
        cat "$1"
    else
        head -n 20 "$1"
        echo "... $((lines - 30)) lines are left out"
        tail -n 10 "$1"
    fi
}

# has_keys FILE: the file is not empty, and has not only comments. Without
# "--from" there are no comments, and without the file the build says so.

has_keys() {
    local line=. status=0

    case " $BUILD_OPTIONS" in
        *" --from"*) line='^[[:space:]]*[^[:space:]#!]' ;;
    esac

    LC_ALL=C grep -aq -e "$line" "$1" 2> /dev/null || status=$?
    [ $status != 1 ]
}

# lines FILE: prints the sorted lines of the file, of a list without comments

lines() {
    local comment='^$'

    case " $BUILD_OPTIONS" in
        *" --from"*) comment='^[[:space:]]*([#!]|$)' ;;
    esac

    LC_ALL=C grep -avE -e "$comment" "$1" | LC_ALL=C sort -u -T "$work"
}

# lost: prints five lines that SOURCE printed for the old image, and not now

lost() {
    local shown count

    if [ -z "$KEEP_KEYS" ] || [ ! -e "$KEEP_KEYS" ]; then
        echo "to see some of them next time, set KEEP_KEYS"
        return
    fi

    LC_ALL=C comm -23 <(lines "$KEEP_KEYS") <(lines "$work/keys") \
        > "$work/lost"
    shown=$(head -n 5 "$work/lost" | cut -c 1-100 | cat -v \
            | sed 's/.*/"&"/' | paste -sd ' ')

    count=$(wc -l < "$work/lost")

    case $count in
        0) echo "no line of SOURCE is gone: look at KEY_FILES and EXCEPTIONS" ;;
        1) echo "1 line of SOURCE is gone, $shown" ;;
        *) echo "$count lines of SOURCE are gone, such as $shown" ;;
    esac
}

# refused: says which guard of the build refuses the new image

refused() {
    local message keys limit once='' s=s

    message='.* keys?, ([0-9]+) (fewer|more) .* --max-(loss|growth) allows .*'
    read -r keys limit <<< "$(sed -nE "s/$message/\1 \3/p" "$work/errors")"
    [ "$keys" != 1 ] || s=

    case $limit in
        loss) fail "the new image is refused: it has $keys key$s fewer than \
the old one, and MAX_LOSS allows $MAX_LOSS; $(lost); correct SOURCE or, if the \
loss is right, run this once with MAX_LOSS=off" ;;
        growth) fail "the new image is refused: it has $keys key$s more than \
the old one, and MAX_GROWTH allows $MAX_GROWTH; correct SOURCE or, if the \
growth is right, run this once with MAX_GROWTH=off" ;;
    esac

    grep -qE -e '--(min-keys|must-have|must-not-have) ' "$work/errors" \
    || once=", or run this once with CHANGE=1"

    fail "the new image is refused: correct SOURCE or, if the image is right, \
MIN_KEYS, MUST_HAVE or MUST_NOT_HAVE, whichever is named above$once"
}


case "$#$*" in
    0)      ;;
    1again) again=1 ;;
    *)      echo "usage: rebuild.sh [again]" >&2
            exit 1 ;;
esac

[ -n "$SOURCE" ] || fail "SOURCE is not set"
[ -n "$IMAGE" ] || fail "IMAGE is not set"
[ -n "$ZONE_URL$NGINX_RELOAD" ] || fail "give ZONE_URL or NGINX_RELOAD"
[ -z "${MAX_CHANGE-}" ] || fail "MAX_CHANGE is no setting: set MAX_LOSS and \
MAX_GROWTH"

case " $BUILD_OPTIONS" in
    *" --as-of"*) fail "BUILD_OPTIONS cannot have --as-of: set AS_OF" ;;
esac

if [ -n "$again" ]; then
    [ -n "$KEEP_KEYS" ] || fail "\"again\" needs the setting KEEP_KEYS"
    [ -e "$KEEP_KEYS" ] || fail "KEEP_KEYS=$KEEP_KEYS does not exist: no image \
was built with this setting yet"
fi

for name in "$IMAGE" ${KEEP_KEYS:+"$KEEP_KEYS"}; do
    folder=$(dirname "$name")
    is_ours "$folder" || fail "other users can replace files in $folder: run \
this as the owner of that directory, and let only its owner write there"
done

exec 9>> "$IMAGE.lock"
flock -n 9 || fail "another rebuild of $IMAGE is running"

# A run that was killed left its directory.

work=$(cat "$IMAGE.lock")
case $work in */rebuild.??????) [ ! -O "$work" ] || rm -rf "$work" ;; esac

work=$(mktemp -d "${TMPDIR:-/tmp}/rebuild.XXXXXX")
echo "$work" > "$IMAGE.lock"
trap clean_up EXIT

if [ -e "$build_ids" ]; then
    written=$(cat "$build_ids")
fi

if [ "$CHANGE" != 1 ] && [ -e "$IMAGE" ]; then
    check_old
fi

# The time is taken before the query: nginx then keeps the keys that are added
# while the query runs.

as_of=$(date +%s)

if [ -n "$again" ]; then
    cp "$KEEP_KEYS" "$work/keys" || fail "KEEP_KEYS cannot be read"
    as_of=$(date -r "$KEEP_KEYS" +%s)
    AS_OF=
    LAG=0
else
    bash -o pipefail -c "$SOURCE" > "$work/keys" 9>&- \
    || fail "SOURCE failed with status $?"
fi

if [ -n "$AS_OF" ]; then
    as_of=$(bash -o pipefail -c "$AS_OF" 9>&-) \
    || fail "AS_OF failed with status $?"

    [[ $as_of =~ ^[1-9][0-9]*$ ]] \
    || fail "AS_OF prints \"$as_of\", not seconds since 1970"
fi

if [ -n "$KEYS_MATCH" ]; then
    status=0
    LC_ALL=C grep -anvxE -m 3 -e "$KEYS_MATCH" -e '' "$work/keys" \
        > "$work/wrong" || status=$?

    case $status in
        0) cut -c 1-200 "$work/wrong" | cat -v >&2
           fail "these lines of SOURCE do not match KEYS_MATCH=$KEYS_MATCH" ;;
        1) ;;
        *) fail "KEYS_MATCH=$KEYS_MATCH is not a regular expression" ;;
    esac
fi

read -ra options <<< "$BUILD_OPTIONS"
read -ra names <<< "$KEY_FILES"
files=("$work/keys")

for name in "${names[@]}"; do
    if has_keys "$name"; then
        files+=("$name")
    fi
done

[ -z "$EXCEPTIONS" ] || options+=(--without "$EXCEPTIONS")
[ -z "$MUST_HAVE" ] || options+=(--must-have "$MUST_HAVE")
[ -z "$MUST_NOT_HAVE" ] || options+=(--must-not-have "$MUST_NOT_HAVE")

as_of=$((as_of - LAG))

if [ "$CHANGE" = 1 ]; then
    MAX_LOSS=off
    MAX_GROWTH=off
fi

# The exit status 1 says that a guard refuses the image.

status=0
ngx-bloom build "${options[@]}" --as-of "$as_of" -o "$new" \
          --min-keys "$MIN_KEYS" --max-loss "$MAX_LOSS" \
          --max-growth "$MAX_GROWTH" --replaces "$IMAGE" "${files[@]}" \
          > "$work/said" 2> "$work/errors" || status=$?

excerpt "$work/errors" >&2
excerpt "$work/said"

case $status in
    0) ;;
    1) refused ;;
    *) fail "the image cannot be built" ;;
esac

ngx-bloom info --json "$new" > "$work/new"
keys=$(value items < "$work/new")
bits=$(value bits < "$work/new")
build_id=$(value build_id < "$work/new")
s=s; [ "$keys" != 1 ] || s=

if [ -e "$work/old" ]; then
    check_kind
fi

if [ -e "$IMAGE" ]; then
    chmod --reference="$IMAGE" "$new"
    chgrp --reference="$IMAGE" "$new" \
    || fail "the new image cannot have the group of the old one"

    ln -f "$IMAGE" "$saved"
else
    rm -f "$saved"
fi

if [ -n "$KEEP_KEYS" ] && [ -z "$again" ]; then
    : > "$work/kept"

    (umask 077; cp "$work/keys" "$KEEP_KEYS.new"
     touch -d "@$as_of" "$KEEP_KEYS.new") \
    || fail "the keys cannot be written to KEEP_KEYS=$KEEP_KEYS"
fi

write_build_ids "$build_id $old_id" || fail "$build_ids cannot be written"

mv -f "$new" "$IMAGE"

if [ -n "$ZONE_URL" ]; then
    load
else
    reload_nginx
fi

[ ! -e "$saved" ] || mv -f "$saved" "$previous"
keep_keys

[ -z "$CHECK" ] || wait_for bash -c "$CHECK" 9>&- \
|| unsure "nginx was told to load the new image, and CHECK fails"

if [ -n "$ZONE_URL" ]; then
    echo "rebuild: nginx serves $IMAGE with $keys key$s"
else
    echo "rebuild: nginx was told to load $IMAGE with $keys key$s;" \
         "its error log says \"serves generation\" when it has"
fi
