#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# test-deb.sh: checks the packages in build/deb (`make test-deb`)
#
# It checks that
#   - lintian has no complaint;
#   - a second build, in another directory, at another time, with another umask,
#     time zone and locale, makes the same bytes;
#   - the packages can be installed, upgraded and purged in a minimal chroot of
#     this machine's Debian release: see test-deb-chroot.sh, whose output is in
#     build/deb/chroot.log;
#   - Debian's autopkgtest passes the tests in debian/tests, in another such
#     chroot; its output is in build/deb/autopkgtest.log.
#
# It needs root. The chroot is made from the package sources of this machine's
# apt; what runs in it has processes and a network of its own, the loopback.

set -eu
cd "$(dirname "$0")/.."

deb=$PWD/build/deb
work=$PWD/build/deb-test
root=$work/root

if [ "$(id -u)" != 0 ]; then
    echo "$0: making a chroot needs root; run: sudo make test-deb" >&2
    exit 1
fi

failed=0
ok() { echo "ok - $1"; }
not_ok() { echo "not ok - $1"; failed=1; }

rm -rf "$work"
mkdir -p "$work"


# ---- lintian ----

if lintian -EviIL +pedantic --fail-on error,warning,info,pedantic,experimental \
           "$deb"/*.changes > "$deb/lintian.log" 2>&1
then
    ok "lintian has no complaint"
else
    grep -E '^[A-Z]: ' "$deb/lintian.log" | sed 's/^/# /' || true
    not_ok "lintian has no complaint; see build/deb/lintian.log"
fi


# ---- the same bytes ----

locale=$(locale -a | grep -Evx 'C|POSIX|C\.(UTF-8|utf8)' | head -n 1)
again=$work/built-again-in-another-directory

(
    umask 0027
    export TZ=Pacific/Kiritimati LC_ALL="${locale:-C.UTF-8}" USER=other \
           HOME=/nonexistent DEB_BUILD_OPTIONS="nocheck parallel=3"
    faketime -f +400d scripts/build-deb.sh "$again" > /dev/null
)

for file in "$deb"/*.deb; do
    if cmp "$file" "$again/${file##*/}"; then
        ok "a second build of ${file##*/} has the same bytes"
    else
        not_ok "a second build of ${file##*/} has the same bytes"
    fi
done


# ---- the chroot ----

version=$(dpkg-parsechangelog -l debian/changelog -S Version)
DEB_BUILD_OPTIONS=nocheck scripts/build-deb.sh "$work/next" "$version+next" \
    > /dev/null

packages=("$deb"/libnginx-mod-http-bloom_*.deb "$deb"/ngx-bloom_*.deb)
codename=$(. /etc/os-release; echo "$VERSION_CODENAME")

apt-get indextargets --format 'deb $(SITE) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' \
| grep -E " $codename(-[a-z]+)? " | sort -u > "$work/sources.list"

apt-config dump | grep -E '^Acquire::(Check|Retries|http|https)' \
    > "$work/apt.conf" || true

if ! mmdebstrap --mode=root --variant=apt --quiet \
        --aptopt="$work/apt.conf" --aptopt='APT::Install-Recommends "false"' \
        --skip=cleanup/apt,cleanup/tmp --include=iproute2 \
        --customize-hook="APT_CONFIG=\$MMDEBSTRAP_APT_CONFIG apt-get install \
            --yes --download-only curl autopkgtest dpkg-dev dpkg-repack ${packages[*]}" \
        "$codename" "$root" - < "$work/sources.list" > "$work/mmdebstrap.log" 2>&1
then
    tail -n 40 "$work/mmdebstrap.log" >&2
    echo "$0: mmdebstrap could not make the chroot" >&2
    exit 1
fi

mkdir -p "$root/test/now" "$root/test/next"
cp "${packages[@]}" "$root/test/now"
cp "$work"/next/{libnginx-mod-http-bloom,ngx-bloom}_*.deb "$root/test/next"
cp scripts/test-deb-chroot.sh "$root/test"
mkdir "$root/test/source"
cp -a debian "$root/test/source"
ln -sfn /proc/self/fd "$root/dev/fd"

# without an init system, packages start services only if this allows it
printf '#!/bin/sh\nexit 0\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
cp -a "$root" "$work/reference"
cp -a "$root" "$work/autopkgtest"

# in DIR COMMAND...: runs a command in a chroot, in namespaces of its own

in_chroot() {
    local dir=$1
    shift

    unshare --mount --net --pid --fork --kill-child /bin/bash -c \
        'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$dir" "$@"
}

# what is there without our packages

in_chroot "$work/reference" /test/test-deb-chroot.sh reference \
    > "$work/reference.log" 2>&1 \
|| { tail -n 40 "$work/reference.log" >&2; exit 1; }
cp "$work/reference/test/listing" "$root/test/reference"

in_chroot "$root" /test/test-deb-chroot.sh > "$deb/chroot.log" 2>&1 < /dev/null \
|| not_ok "the packages can be installed, upgraded and purged; see build/deb/chroot.log"

in_chroot "$work/autopkgtest" /test/test-deb-chroot.sh autopkgtest \
    > "$deb/autopkgtest.log" 2>&1 < /dev/null \
|| not_ok "autopkgtest passes; see build/deb/autopkgtest.log"

cat "$deb/chroot.log" "$deb/autopkgtest.log" | grep -E '^(not )?ok ' || true
if grep -q '^not ok ' "$deb/chroot.log" "$deb/autopkgtest.log"; then failed=1; fi
if [ $failed = 0 ]; then rm -rf "$work"; fi

exit $failed
