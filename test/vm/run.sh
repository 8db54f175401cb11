#!/bin/sh
# What needs a kernel of its own, in virtual machines: the module ompi_wake; real verbs over a Soft-RoCE device. Debian's kernel under
# QEMU, software emulation. One line PASS, FAIL or SKIP per case. Nothing of the host is changed: the guests see its root read-only.
#
#   OVERLAP_BUILD    where the programs are built; kernel and RAM disk are kept in vm/ in it
#   OVERLAP_PREFIX   a private installation (with env.sh)
#   OVERLAP_VM       which guests (default: "wake verbs")
#
#   wake        the kernel module
#   one guest   messages where something is missing, the verbs provider, MPI over btl/ring
#   two guests  the same across a wire: two machines, two kernels
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${OVERLAP_BUILD:?a build folder}
prefix=${OVERLAP_PREFIX:?a private installation}
work=$build/vm
guests=${OVERLAP_VM:-wake verbs}
failed=0
mkdir -p "$work" || exit 1

skip() { echo "SKIP vm: $*"; exit 0; }

[ "$(uname -m)" = x86_64 ] || skip "the guests are x86_64, this is $(uname -m)"
bash "$here/../support/install-packages" vm >"$work/packages" 2>&1 || skip "$(tail -n 1 "$work/packages")"
command -v qemu-system-x86_64 >/dev/null || skip "qemu-system-x86_64 is not installed"
sentence=$(bash "$here/make-initrd.sh" "$work" 2>"$work/make-initrd.err") || skip "$sentence"

pids=
sockets=$(mktemp -d /tmp/overlap-vm-XXXXXX) || exit 1
# A guest's start.sh passes the signal on to nobody: timeout, its child, is what ends qemu.
stop() {
    for pid in $pids; do pkill -P "$pid" 2>/dev/null; done
    rm -rf "$sockets"
}
trap stop EXIT
trap 'exit 1' INT TERM

# prepare NAME JOB: the folder of a guest
prepare() {
    out=$work/$1
    rm -rf "$out" && mkdir -p "$out" || exit 1
    cp "$2" "$out/job.sh"
    echo "export VM_SOURCE='$here' VM_BUILD='$build' VM_PREFIX='$prefix' VM_KERNEL='$work'" >"$out/settings.sh"
    : >"$out/results"
}

# report NAME STATUS: results of a guest; what it said when something failed
report() {
    out=$work/$1
    cat "$out/results"
    if [ "$2" -ne 0 ]; then
        echo "FAIL vm: $1 (exit status $2; 124 is the time limit, 125 that it did not get to its job)"
        tail -n 15 "$out/console" >&2
    fi
    if [ "$2" -ne 0 ] || grep -q '^FAIL' "$out/results"; then
        failed=1
        [ ! -e "$out/log" ] || tail -n 150 "$out/log" >&2
    fi
    [ ! -e "$out/log" ] || grep '^  figure: ' "$out/log"
}

# boot NAME ID LIMIT_S [NETDEV]: a guest in the background; its process is added to $pids, and is $!
boot() {
    bash "$here/start.sh" "$work" "$work/$1" "$2" "$3" ${4:+"$4"} &
    pids="${pids:+$pids }$!"
}

# An emulated machine may stand still before it gets to its job (seen once: two that were started together): what it was to test has not
# begun, so it is tried again. again NAME STATUS ATTEMPT: is it to be?
again() {
    [ "$2" -eq 125 ] && [ "$3" -lt 3 ] || return 1
    echo "vm: $1 did not get to its job; once more. The end of its console:"
    tail -n 15 "$work/$1/console"
}

# alone NAME JOB LIMIT_S: one guest; its results
alone() {
    for attempt in 1 2 3; do
        prepare "$1" "$2"
        boot "$1" 1 "$3"
        wait $!
        status=$?
        pids=
        again "$1" $status $attempt || break
    done
    report "$1" $status
}

# The kernel module needs no adapter.
wake() {
    sentence=$(bash "$here/make-module.sh" "$work" 2>&1)
    case $? in
        0) ;;
        2) echo "FAIL vm: ompi_wake: $sentence" && failed=1 && return ;;
        *) echo "SKIP vm: ompi_wake: $sentence" && return ;;
    esac
    make -C "$build/test/vm" wake_check >"$work/make.log" 2>&1 || { echo "FAIL vm: ompi_wake: build"; tail -n 20 "$work/make.log" >&2; failed=1; return; }
    # The kernel checks what the module allocates and frees.
    export VM_APPEND="slub_debug=FZPU,ompi_wake_file,ompi_wake_space"
    alone wake "$here/guest/wake.sh" 600
    unset VM_APPEND
}
case " $guests " in *" wake "*) wake ;; esac
case " $guests " in *" verbs "*) ;; *) exit $failed ;; esac

grep -q '^VERBS_LIBS = *-l' "$build/test/vm/Makefile" || { echo "SKIP vm: the verbs provider was not built (libibverbs-dev, librdmacm-dev)"; exit $failed; }
[ -e /dev/infiniband ] && echo "vm: this host has RDMA devices of its own; they are not used"

# What the guests run. The MPI programs are the level mpi's, made the same way and kept in the same place.
mpi=$build/test-mpi
compile() { # PROGRAM
    [ "$mpi/$1" -nt "$here/../mpi/$1.cpp" ] && [ "$mpi/$1" -nt "$mpi/mpi_test.o" ] ||
        mpicxx -std=c++20 -O0 "$here/../mpi/$1.cpp" "$mpi/mpi_test.o" -o "$mpi/$1" -pthread
}
make_programs() {
    make -C "$build/test/vm" verbs_check && make -C "$build/opal/fabric" fabric_contract_test || return
    mkdir -p "$mpi"
    [ "$mpi/mpi_test.o" -nt "$here/../mpi/mpi_test.cpp" ] && [ "$mpi/mpi_test.o" -nt "$here/../mpi/mpi_test.hpp" ] ||
        mpicxx -std=c++20 -O1 -c "$here/../mpi/mpi_test.cpp" -o "$mpi/mpi_test.o" || return
    for program in pt2pt completion matching random progress ring_onesided ring_frequent; do compile $program || return; done
}
make_programs >"$work/make.log" 2>&1 || { echo "FAIL vm: build"; tail -n 20 "$work/make.log" >&2; exit 1; }

alone one "$here/guest/one.sh" 600

wire() { echo "dgram,id=net0,local.type=unix,local.path=$sockets/$1,remote.type=unix,remote.path=$sockets/$2"; }
for attempt in 1 2 3; do
    prepare first "$here/guest/pair.sh"
    prepare second "$here/guest/pair.sh"
    boot second 2 240 "$(wire 2 1)"
    server=$!
    boot first 1 230 "$(wire 1 2)"
    wait $!
    first=$?
    # The other one serves only it.
    [ $first -ne 125 ] || pkill -P $server
    wait $server
    second=$?
    pids=
    again first $first $attempt || again second $second $attempt || break
    rm -f "$sockets"/*
done
report first $first
report second $second
exit $failed
