#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fetch-list.sh: fetches a published list into a file
#
# Usage: fetch-list.sh URL FILE
#
# FILE is replaced only by a whole list. It gets the time that the server states
# in Last-Modified, or else the time of the request. If the server has no newer
# list, FILE stays. A list that is compressed by gzip, bzip2, xz or zstd is
# decompressed by the command of that name.
#
# The script trusts nothing that the server sends. rebuild.sh checks the keys.
# Run it as a user of its own, such as ngx-bloom. It refuses a FILE in a
# directory where another user can plant links.
# docs/block-list-job.md explains both.
#
# Settings, from the environment:
#
#   MAX_SIZE        the largest size of the list, also when it is decompressed,
#                   with K, M or G (default: 64M)
#   MAX_TIME        seconds that the transfer may take (default: 300)
#   CURL_OPTIONS    further options of curl, such as --cacert FILE or -H @FILE;
#                   --location follows redirects, to https:// only
#
# Files beside FILE: FILE.header, the header of the response that had the list;
# FILE.new, a directory that exists while the script runs; FILE.lock, which lets
# one run at a time write FILE: another one waits for MAX_TIME seconds.
#
# Exit status: 0 FILE is the newest list; 1 FILE was not changed.

set -euo pipefail
export LC_ALL=C

MAX_SIZE=${MAX_SIZE:-64M}
MAX_TIME=${MAX_TIME:-300}
CURL_OPTIONS=${CURL_OPTIONS-}

if [ $# != 2 ]; then
    echo "usage: fetch-list.sh URL FILE" >&2
    exit 1
fi

url=$1
file=$2
case $file in -*) file=./$file ;; esac
work=$file.new

# Passwords in the URL do not belong into a log.

name=$(sed 's,^\([a-z]*://\)[^/]*@,\1,; s,?.*,,' <<< "$url")

# fail WHY: the server's words may be in it

fail() {
    printf 'fetch-list: %s: %s; %s\n' "$name" "$1" \
        "$([ -e "$file" ] && echo "$file stays" || echo "there is no $file")" \
    | cut -c 1-1000 | cat -v >&2
    exit 1
}

# is_ours DIRECTORY: no other user but root can put files and links there; a
# group of this user's own can, too

is_ours() {
    [ -n "$(find "$1/" -prune -type d '(' -uid "$EUID" -o -uid 0 ')' \
                 ! -perm /002 '(' ! -perm /020 -o -gid "$(id -g)" ')')" ]
}

# limited COMMAND...: no file that the command writes exceeds MAX_SIZE

limited() (
    trap '' XFSZ
    ulimit -f $((max / 1024)) 2> /dev/null || true   # a lower limit holds
    exec "$@"
)

# refuse_if_larger PATH: is called when a command could not write a file

refuse_if_larger() {
    [ "$(stat -c %s "$1")" -lt $((max / 1024 * 1024)) ] \
    || fail "the list is larger than MAX_SIZE=$MAX_SIZE"
}

# field NAME PATH: prints a field of the last response's header in the file. The
# name is in lower case.

field() {
    [ ! -e "$2" ] \
    || tr -d '\r\0' < "$2" | awk -v name="$1:" '
           /^HTTP\// { value = "" }
           index(tolower($0), name) == 1 {
               value = $0
               sub(/^[^:]*:[ \t]*/, "", value)
           }
           END { print value }'
}

# Without a length or chunks, a list that was cut looks like a whole one.

end_is_known() {
    [ "${version%%.*}" -ge 2 ] \
    || [ -n "$(field content-length "$work/header")" ] \
    || [ -n "$(field transfer-encoding "$work/header")" ]
}

max=$(numfmt --from=iec "$MAX_SIZE") \
|| fail "MAX_SIZE=$MAX_SIZE is not a size such as 64M"

[ ! -d "$file" ] || fail "$file is a directory"

folder=$(dirname "$file")
is_ours "$folder" || fail "other users can replace files in $folder: run this \
as the owner of that directory, and let only its owner write there"

# Without the lock, a second run would remove the directory of the first one,
# and the first one could take half of the second one's list.

exec 9>> "$file.lock"
flock -w "$MAX_TIME" 9 || fail "another run fetches the list"

rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
: > "$work/list"

options=(
    -q -sS --globoff --suppress-connect-headers
    --proto '=http,https' --proto-redir '=https' --max-redirs 5
    --connect-timeout 30 --max-time "$MAX_TIME"
    --remote-time -o "$work/list" -D "$work/header"
    -w '%{http_code} %{http_version} %{redirect_url}'
)

# The server is asked whether it has another list than FILE.

if [ -s "$file" ]; then
    for condition in If-None-Match:etag If-Modified-Since:last-modified; do
        value=$(field "${condition#*:}" "$file.header")
        [ -z "$value" ] || options+=(-H "${condition%:*}: $value")
    done
fi

read -ra more <<< "$CURL_OPTIONS"

start=$(date +%s)
error=0

answer=$(limited curl "${options[@]}" "${more[@]}" --url "$url") || error=$?

read -r status version location <<< "$answer" || true

case $error in
    0)   ;;
    23)  refuse_if_larger "$work/list"
         fail "the list cannot be written: see above" ;;
    28)  fail "the list was not complete after MAX_TIME=$MAX_TIME seconds" ;;
    *)   fail "the list cannot be fetched: see above" ;;
esac

case $status in
    200) ;;
    304) [ -s "$file" ] || fail "the server answers 304 to a first request"
         exit 0 ;;
    3??) fail "the server redirects to \"$location\": if that is right, use \
that URL" ;;
    *)   fail "the server answers $status, not 200" ;;
esac

end_is_known || fail "the response has no Content-Length, so a list that was \
cut looks like a whole one"

# All but xz limit the memory that a hostile list can make them take.

case $(head -c 6 "$work/list" | od -An -tx1) in
    " 1f 8b"*)                           decompress=(gzip -dc) ;;
    " 42 5a 68"*)                        decompress=(bzip2 -dcq) ;;
    " fd 37 7a 58 5a 00")                decompress=(xz -dc -M 256MiB) ;;
    " 28 b5 2f fd"* | " 5"?" 2a 4d 18"*) decompress=(zstd -dc) ;;
    *)                                   decompress=() ;;
esac

if [ ${#decompress[@]} != 0 ]; then
    limited "${decompress[@]}" < "$work/list" > "$work/plain" || {
        refuse_if_larger "$work/plain"
        fail "the list cannot be decompressed by ${decompress[0]}: it is \
damaged, unless another reason is above"
    }

    touch -r "$work/list" "$work/plain"
    mv "$work/plain" "$work/list"
fi

[ -s "$work/list" ] || fail "the list is empty"

# A time in the future would make every later list look older.

time=$(stat -c %Y "$work/list")
[ "$time" -le "$start" ] || time=$start

# A list without Last-Modified says nothing about its age.

if [ -e "$file" ] && [ -n "$(field last-modified "$work/header")" ] \
   && [ -n "$(field last-modified "$file.header")" ] \
   && [ "$time" -lt "$(stat -c %Y "$file")" ]
then
    fail "the list is of $(date -u -d "@$time" +%FT%TZ), and $file is of \
$(date -u -r "$file" +%FT%TZ): if the older list is right, remove the file, \
and run rebuild.sh once with CHANGE=1"
fi

touch -d "@$time" "$work/list"
sync "$work/list"
rm -f "$file.header"
mv -fT "$work/list" "$file"
mv -fT "$work/header" "$file.header"
