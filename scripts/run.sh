#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# run.sh [--check]: the body of `make run`
#
# Makes an image of all Debian package names that this machine knows, and
# serves a shield with it on localhost, in the foreground, until Ctrl-C. With
# --check (or RUN_CHECK=1) it makes the requests that it suggests itself, says
# whether they were answered as they should be, and stops.
#
# It listens on the first free port from $PORT (8080) on: make run PORT=9000

set -eu
cd "$(dirname "$0")/.."

check=${RUN_CHECK:-0}
case ${1:-} in
    --check) check=1 ;;
    "") ;;
    *) echo "usage: $0 [--check]" >&2
       exit 2 ;;
esac

nginx=${NGINX:-$(command -v nginx || echo /usr/sbin/nginx)}
tool=build/ngx-bloom
module=build/ngx_http_bloom_module.so
out=build/run

for file in "$nginx" $tool $module; do
    if [ ! -e "$file" ]; then
        echo "$0: $file is missing; \`make run\` builds and installs first" >&2
        exit 1
    fi
done

mkdir -p $out


# Prints the names from apt's lists. If there are no lists, it fetches them, and
# if that is not allowed, it prints the names of the installed packages.

known_to_apt() { apt-cache pkgnames 2> /dev/null || true; }

names() {
    local found

    found=$(known_to_apt)

    if [ "$(wc -l <<< "$found")" -lt 1000 ]; then
        echo "apt knows few packages; fetching its lists" >&2

        if [ "$(id -u)" = 0 ]; then
            apt-get update -q >&2 || true
        else
            sudo -n apt-get update -q >&2 || true
        fi

        found=$(known_to_apt; dpkg-query -W -f '${Package}\n' || true)
    fi

    LC_ALL=C sort -u <<< "$found" | sed '/^$/d'
}

# replaced by a rename, because another run may be reading it

new=$out/names.$$
trap 'rm -f $new' EXIT
names > "$new"
mv "$new" $out/packages.txt

if [ ! -s $out/packages.txt ]; then
    echo "$0: neither apt-cache nor dpkg-query knows any package name" >&2
    exit 1
fi

echo "Building an image of $(wc -l < $out/packages.txt) Debian package names:"
$tool build -o $out/packages.bloom -p 0.001 $out/packages.txt
echo


# A name that the filter has, and one that it answers "absent" for.

present=$(grep -x nginx $out/packages.txt || head -n 1 $out/packages.txt)
absent=no-such-package

while $tool test $out/packages.bloom $absent > /dev/null; do
    absent=$absent-either
done


# Two free ports, one for the shield and one for the backend.

free_port() {
    local port

    for ((port = $1; port < 65536; port++)); do
        if ! (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then
            echo $port
            return
        fi
    done

    echo "$0: no port from $1 on is free on 127.0.0.1" >&2
    exit 1
}

port=$(free_port "${PORT:-8080}")
backend=$(free_port $((port + 1)))


# Each run has its own directory, so that several can run at a time. The workers
# keep the user who runs this script, because they serve localhost alone.

dir=$PWD/$out/$port
mkdir -p "$dir"

user=
if [ "$(id -u)" = 0 ]; then
    user="user root;"
fi

cat > "$dir/nginx.conf" << END
# written by scripts/run.sh

load_module ../../${module##*/};

daemon off;
$user
pid nginx.pid;
error_log stderr warn;

events {}

http {
    access_log off;
    default_type text/plain;

    client_body_temp_path temp-body;
    proxy_temp_path temp-proxy;
    fastcgi_temp_path temp-fastcgi;
    uwsgi_temp_path temp-uwsgi;
    scgi_temp_path temp-scgi;

    bloom_zone zone=packages file=../packages.bloom;

    # for /status/: the filter's answer in words

    bloom_lookup \$name \$known zone=packages;

    map \$known \$answer {
        0        "absent";
        1        "maybe present";
        default  "unknown";
    }

    server {
        listen 127.0.0.1:$port;

        location ~ ^/package/(?<name>[^/]+)\$ {
            bloom_log_level warn;
            bloom_reject absent \$name zone=packages status=404;
            rewrite ^ \$uri break;
            proxy_pass http://127.0.0.1:$backend;
            add_header X-Bloom-Status \$bloom_status always;
        }

        location ~ ^/status/(?<name>[^/]+)\$ {
            return 200 "\$name: \$answer\n";
        }

        location /bloom/ {
            bloom_api;
        }

        location = / {
            return 200 "try /package/$present, /package/$absent, /status/$present, /bloom/\n";
        }
    }

    # the backend

    server {
        listen 127.0.0.1:$backend;

        location ~ ^/package/(?<name>[^/]+)\$ {
            return 200 "\$name is a Debian package, says the backend\n";
        }
    }
}
END


# nginx runs as a child, so that this script can report when nginx serves.

started=
stop() {
    if [ -n "$started" ]; then
        kill "$started" 2> /dev/null || true
        wait "$started" || true
    fi
    rm -rf "$dir"
}
trap stop EXIT
trap 'echo; echo stopped; exit 0' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

"$nginx" -e stderr -p "$dir" -c nginx.conf &
started=$!

until [ -s "$dir/nginx.pid" ] \
      && (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null
do
    if ! kill -0 $started 2> /dev/null; then
        echo "$0: nginx did not start, see above" >&2
        exit 1
    fi
    sleep 0.05
done

url=http://127.0.0.1:$port
cat << END
nginx serves a shield in front of a small backend: only requests for names that
may exist reach the backend. Try from another terminal:

  curl -i $url/package/$present
      200: the name is maybe present, and the backend answers

  curl -i $url/package/$absent
      404: the name is absent; nginx answers, and logs a line here

  curl $url/status/$present
      "$present: maybe present"; another name may be "absent"

A browser shows the filter at work at $url/bloom/.

Ctrl-C stops it. \`make run PORT=N\` takes the first free port from N on.

END


# expect NAME STATUS TEXT ARGUMENTS...: makes a request by curl and compares the
# answer

failed=0
expect() {
    local answer what=$1 status=$2 text=$3

    shift 3
    answer=$(curl -s --noproxy '*' -w '\n%{http_code}' "$@") || true

    if [ "${answer##*$'\n'}" = "$status" ] && [[ $answer == *"$text"* ]]; then
        echo "ok - $what"
    else
        echo "not ok - $what: expected $status with \"$text\", got: $answer"
        failed=1
    fi
}

if [ "$check" = 1 ]; then
    expect "present" 200 "$present is a Debian package" "$url/package/$present"
    expect "absent" 404 "404 Not Found" "$url/package/$absent"
    expect "status" 200 "$present: maybe present" "$url/status/$present"
    expect "page" 200 "<!doctype html>" "$url/bloom/" -H "Accept: text/html"
    exit $failed
fi

status=0
wait $started || status=$?
started=

if [ $status = 0 ]; then
    echo "nginx stopped, as it was told to"
else
    echo "$0: nginx ended with status $status, see above" >&2
fi

exit $status
