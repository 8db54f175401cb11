#!/bin/sh
# The README's two commands in an empty Debian 12: nothing is installed by hand, and only what is meant to be skipped is skipped.
#
#   OVERLAP_FRESH_FOLDER   where Debian goes (default: a new folder below /tmp, removed at the end); an existing one is used as it is
#   OVERLAP_FRESH_LEVELS   levels of test/run.sh (default: all of them, about 25 minutes)
#
# Needs root and debootstrap. Not one of the default levels of test/run.sh, which it runs. Prints one line PASS, FAIL or SKIP per case.
# SPDX-License-Identifier: BSD-3-Clause
set -u
source_folder=$(cd "$(dirname "$0")/../.." && pwd)

skip() { echo "SKIP fresh: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "needs root (debootstrap, chroot)"
sh "$source_folder/test/support/install-packages" fresh >&2 || skip "debootstrap is not installed"
# In a mount namespace of its own: whatever is mounted goes away with this process.
if [ "${OVERLAP_FRESH_MOUNTS:-}" != private ]; then
    unshare --mount --propagation private true 2>/dev/null || skip "this system does not allow mount namespaces"
    export OVERLAP_FRESH_MOUNTS=private
    exec unshare --mount --propagation private sh "$0" "$@"
fi

if [ -n "${OVERLAP_FRESH_FOLDER:-}" ]; then
    debian=$OVERLAP_FRESH_FOLDER
    mkdir -p "$debian" || exit 1
else
    debian=$(mktemp -d /tmp/overlap-fresh-XXXXXX) || exit 1
    trap 'umount -R "$debian" 2>/dev/null; rm -rf --one-file-system "$debian"' EXIT
fi
trap 'exit 1' INT TERM
if [ ! -f "$debian/etc/debian_version" ]; then
    debootstrap --variant=minbase bookworm "$debian" "${OVERLAP_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >&2 ||
        skip "debootstrap could not fetch Debian 12"
fi
cp /etc/resolv.conf "$debian/etc/" 2>/dev/null
# The folder becomes a mount point: namespaces of simulated nodes change the propagation of their root.
mount --bind "$debian" "$debian" && mount -t proc proc "$debian/proc" && mount -t sysfs sysfs "$debian/sys" && mount --rbind /dev "$debian/dev" &&
    mount -t tmpfs tmpfs "$debian/dev/shm" || { echo "FAIL fresh: mounts"; exit 1; }

tree=/root/overlap
rm -rf "$debian$tree" && mkdir -p "$debian$tree" || exit 1
# What is, or could be, committed: no product of a build.
if git -C "$source_folder" rev-parse >/dev/null 2>&1; then
    git -C "$source_folder" ls-files -z --cached --others --exclude-standard
else
    cd "$source_folder" && find . -path ./_build -prune -o -path ./_install -prune -o ! -type d -print0
fi | tar -C "$source_folder" -cf - --null -T - | tar -C "$debian$tree" -xf - || exit 1

inside() { chroot "$debian" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
failed=0
verdict() { # NAME ok|WHAT IS WRONG
    if [ "$2" = ok ]; then echo "PASS fresh: $1"; else echo "FAIL fresh: $1: $2"; failed=1; fi
}

log=$debian/root/quickstart.log
if inside sh -c "cd $tree && sh examples/quickstart.sh" >"$log" 2>&1; then wrong=ok; else wrong="exit status $?"; fi
grep -q '  halo iteration  ' "$log" && grep -q '  overlap receiver_early.receiver  ' "$log" || wrong="no table"
inside sh -c "cd $tree && grep -q '^VERBS_LIBS = *-l' _build/quickstart/build/Makefile" || wrong="built without verbs"
[ "$wrong" = ok ] || tail -n 40 "$log" >&2
verdict "sh examples/quickstart.sh" "$wrong"

log=$debian/root/test.log
inside sh -c "cd $tree && ${OVERLAP_FRESH_LEVELS:+OVERLAP_TEST_LEVELS='$OVERLAP_FRESH_LEVELS'} sh test/run.sh" >"$log" 2>&1
status=$?
tail -n 1 "$log" >&2
if [ $status = 0 ]; then wrong=ok; else wrong="exit status $status"; tail -n 60 "$log" >&2; fi
verdict "sh test/run.sh" "$wrong"

# Open MPI 5.0 is asked for by a variable of its own, and says so; nothing else may be left out where this test runs at all.
unmeant=$(grep '^SKIP ' "$log" | grep -vE '^SKIP openmpi5: set OVERLAP_TEST_OPENMPI5=1' | sort -u)
[ "$(uname -m)" = x86_64 ] || unmeant=$(echo "$unmeant" | grep -v '^SKIP vm: the guests are x86_64')
if [ -z "$unmeant" ]; then wrong=ok; else wrong="skipped too"; echo "$unmeant" >&2; fi
verdict "only the skips that are meant" "$wrong"
exit $failed
