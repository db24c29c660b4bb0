#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# test-deb-chroot.sh [reference|autopkgtest]
#
# The part of test-deb.sh that runs in the chroot. /test has the packages, in
# now/, and packages of a higher version, in next/. With "reference" it installs
# only what the packages depend on, and writes the listing of all files that the
# purge of our packages has to lead back to. With "autopkgtest" it runs the tests
# in debian/tests, in /test/source, by Debian's program of that name.

set -eu
cd /test

export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
state=/var/lib/nginx/bloom
conf=/etc/nginx/conf.d/bloom-example.conf
examples=/usr/share/doc/ngx-bloom/examples
ours="libnginx-mod-http-bloom ngx-bloom"

ok() { echo "ok - $1"; }
not_ok() { echo "not ok - $1"; exit 1; }

# holds NAME COMMAND...

holds() {
    local name=$1
    shift
    if "$@"; then ok "$name"; else not_ok "$name"; fi
}

# step TITLE
step() { printf '\n==== %s\n' "$1"; }

apt() {
    apt-get -o Acquire::http::Proxy=DIRECT -o Dpkg::Use-Pty=0 -q --yes \
            --no-install-recommends "$@" 2>&1 | tee apt.log
    return "${PIPESTATUS[0]}"
}

# said TEXT: tests what the last apt printed

said() {
    if grep -qF -- "$1" apt.log; then
        ok "apt says: $1"
    else
        not_ok "apt says: $1"
    fi
}

# Lists all files with types, modes, owners and targets of links; files in /etc
# also with their contents.

listing() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /test \
                    -o -path /tmp -o -path /run -o -path /var/cache \
                    -o -path /var/lib/apt -o -path '/var/log/*' \) -prune \
         -o ! -path '/var/lib/dpkg/*-old' ! -path '*/ld.so.cache' \
         -printf '%y %m %u:%g %p %l\n' | sort
    find /etc -type f ! -name ld.so.cache -exec md5sum {} + | sort -k 2
}

# answers EXPECTED PATH CURL_OPTION...: waits until nginx answers so

answers() {
    local expected=$1 url=http://127.0.0.1:8080$2 answer
    shift 2

    for _ in {1..40}; do
        answer=$(curl -s -w '%{http_code}' "$@" "$url") || true

        # shellcheck disable=SC2053
        if [[ $answer == $expected ]]; then
            ok "$url $* answers $expected"
            return
        fi
        sleep 0.25
    done
    not_ok "$url $* answers $expected, not $answer"
}

# Configures nginx with the example, as its README says.

configure() {
    sed '1,/^http {/d; /^}/,$d; /include local.conf;/d' \
        $examples/endpoint.conf > $conf
    ngx-bloom build -q -o /etc/nginx/ids.bloom -p 1e-6 -n 100k \
        $examples/keys/ids.txt
    nginx -t
    service nginx reload
}

unconfigure() {
    rm -f $conf /etc/nginx/ids.bloom
    service nginx reload
}

# Waits until the workers that an earlier configuration started have exited.

settled() {
    for _ in {1..80}; do
        if ! grep -qs 'is shutting down' /proc/[0-9]*/cmdline; then return; fi
        sleep 0.25
    done
    not_ok "the old workers exit"
}

ip link set lo up
printf '127.0.0.1 localhost\n' > /etc/hosts


if [ "${1-}" = reference ]; then
    mapfile -t names < <(apt-get -s --no-install-recommends install curl \
                                 ./now/*.deb | sed -n 's/^Inst \([^ ]*\).*/\1/p')
    for name in $ours; do names=("${names[@]/#$name/}"); done

    # shellcheck disable=SC2068
    apt install ${names[@]}
    service nginx restart
    service nginx stop
    listing > listing
    exit
fi


if [ "${1-}" = autopkgtest ]; then
    apt install autopkgtest

    # nothing follows these tests in this chroot, which they may break

    autopkgtest --ignore-restrictions=isolation-container,breaks-testbed \
                --summary-file=summary ./now/*.deb source// -- null || true
    cat summary

    for name in $(sed -n 's/^Tests: //p' source/debian/tests/control); do
        if grep -q "^$name  *PASS" summary; then
            ok "autopkgtest passes $name"
        else
            not_ok "autopkgtest passes $name"
        fi
    done
    exit
fi


step "install"
apt install curl ./now/*.deb
service nginx status
ok "apt installs both packages, and nginx runs"
ls -l /etc/nginx/modules-enabled

# the units are there for instances that the administrator enables

unit=$(dpkg -L ngx-bloom | grep '/system/ngx-bloom-follow@\.service$')
timer=$(dpkg -L ngx-bloom | grep '/system/ngx-bloom-pull@\.timer$')
if grep '^ExecStart=/usr/bin/ngx-bloom follow ' "$unit" \
   && grep '^ExecStart=/usr/bin/ngx-bloom-pull ' "${timer%.timer}.service" \
   && [ -z "$(find /etc/systemd /var/lib/systemd -name '*bloom*')" ]
then
    ok "the units start the package's tools, and are not enabled"
else
    not_ok "the units start the package's tools, and are not enabled"
fi

follow=/etc/systemd/system/multi-user.target.wants/ngx-bloom-follow@ids.service
pull=/etc/systemd/system/timers.target.wants/ngx-bloom-pull@ids.timer
made=
for link in $follow $pull; do
    if [ ! -d ${link%/*} ]; then made="$made ${link%/*}"; mkdir -p ${link%/*}; fi
done
ln -s "$unit" $follow
ln -s "$timer" $pull

step "serve"
configure
answers '*200' /item/1001
answers '*404' /item/9999
answers '*404' /item/1004
answers '*"added":1*200' '/bloom/zones/ids/keys?durable=true' -d 1004
answers '*200' /item/1004

step "upgrade while nginx serves"
old=$(dpkg-query -W -f '${Version}' libnginx-mod-http-bloom)
master=$(cat /run/nginx.pid)
answers "*\"version\":\"$old\"*200" /bloom/
(
    while [ ! -e /test/stop ]; do
        curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/item/1004 \
        || true
    done
) > requests.log &
requests=$!
apt install ./next/*.deb
new=$(dpkg-query -W -f '${Version}' libnginx-mod-http-bloom)
settled
answers "*\"version\":\"$new\"*200" /bloom/
touch stop
wait $requests
rm stop
sort requests.log | uniq -c

if [ "$(cat /run/nginx.pid)" != "$master" ]; then
    ok "a new master serves with version $new"
else
    not_ok "a new master serves with version $new"
fi

if [ "$(sort -u requests.log)" = 200 ]; then
    ok "all requests during the upgrade got 200 ($(wc -l < requests.log))"
else
    not_ok "all requests during the upgrade got 200"
fi
answers '*200' /item/1004
answers '*404' /item/9999

step "upgrade with a broken configuration"
echo 'bloom_nonsense on;' > /etc/nginx/conf.d/broken.conf
apt install --allow-downgrades ./now/*.deb
said "nginx still runs the module of version $new"
answers "*\"version\":\"$new\"*200" /bloom/
answers '*200' /item/1004
rm /etc/nginx/conf.d/broken.conf
invoke-rc.d nginx upgrade
settled
answers "*\"version\":\"$old\"*200" /bloom/
answers '*200' /item/1004

step "purge while nginx uses the state"
apt remove ngx-bloom
holds "removing keeps the links of enabled instances" [ -L $follow -a -L $pull ]
apt purge $ours
holds "purging removes the links of enabled instances" [ ! -L $follow -a ! -L $pull ]
for directory in $made; do rmdir -p --ignore-fail-on-non-empty "$directory"; done
said "nginx still uses $state, so it is kept"
answers '*200' /item/1004
holds "the state is kept" [ -d $state/ids ]
rm -f $conf /etc/nginx/ids.bloom
service nginx restart
settled
rm -r $state

step "a state directory that is a link"
mkdir -p /srv/bloom
chmod 711 /srv/bloom
ln -s /srv/bloom $state
apt install ./now/*.deb
service nginx restart
configure
answers '*"added":1*200' '/bloom/zones/ids/keys?durable=true' -d 1004
holds "the state is behind the link" [ -d /srv/bloom/ids ]
unconfigure
settled
apt remove $ours
holds "removing keeps the link" [ -L $state ]
apt purge $ours
said "/srv/bloom keeps the added and removed keys"
holds "purging removes the link" [ ! -e $state ]
holds "purging keeps what is behind it" [ -d /srv/bloom/ids ]
rm -r /srv/bloom

step "a state directory of another owner"
install -d -o www-data -m 777 $state
apt install ./now/*.deb
said "$state does not belong to root"
apt purge $ours
holds "it is purged" [ ! -e $state ]

step "remove and install again"
apt install ./now/*.deb
service nginx restart
configure
answers '*"added":1*200' '/bloom/zones/ids/keys?durable=true' -d 1004
unconfigure
apt remove $ours
holds "removing keeps the state" [ -d $state/ids ]
apt install ./now/*.deb
configure
answers '*200' /item/1004

step "purge"
unconfigure
settled
apt purge $ours
service nginx restart
service nginx stop
listing > listing

if diff reference listing; then
    ok "both packages are purged without a trace"
else
    not_ok "both packages are purged without a trace"
fi
