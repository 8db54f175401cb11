#!/bin/sh
# Faults of btl/ring on the software device: each one message that says what happened, no hanging, nothing left behind.
# Called by run.sh, which has set the environment.
set -u
build=${OVERLAP_BUILD:?}/test-mpi
prefix=${OVERLAP_PREFIX:?}
device=$prefix/libexec/overlap/overlap-softdevice
domain=${OMPI_MCA_btl_ring_soft_domain:?}
log=$build/ring_fault.log
failed=0

pass() { echo "PASS ring fault: $1"; }
fail() {
    echo "FAIL ring fault: $1: $2"
    tail -n 25 "$log" >&2
    failed=1
}

# judge NAME STATUS ok|error|any TEXT...: exit status and texts (extended regular expressions) that the output must hold.
judge() {
    name=$1 status=$2 wanted=$3 complaint=
    shift 3
    case $wanted:$status in
        *:124) complaint="did not end" ;;
        ok:0 | any:*) ;;
        ok:*) complaint="exit status $status" ;;
        error:0) complaint="should have failed" ;;
    esac
    ! grep -qE 'Signal: Seg|Segmentation fault' "$log" || complaint="crashed"
    for text in "$@"; do grep -qE "$text" "$log" || complaint="does not say: $text"; done
    left=$(find /dev/shm -name "overlap-ring.$(id -u).*" 2>/dev/null | while read -r file; do
        flock -n "$file" true && echo "$file"
    done)
    [ -z "$left" ] || complaint="left $left"
    if [ -z "$complaint" ]; then pass "$name"; else fail "$name" "$complaint"; fi
}
job() { timeout -k 5 "$limit" mpirun -n "$@" >"$log" 2>&1 </dev/null; }
limit=40
ring="--mca pml speculative --mca btl ring,self"
# The time that a fault needs to be injected in.
wait_for() { # COMMAND...: until it succeeds, ten seconds at most
    i=0
    until "$@" >/dev/null 2>&1; do
        i=$((i + 1))
        [ $i -lt 100 ] || return 1
        sleep 0.1
    done
}
connected() { [ "$("$device" --domain "$domain" --list | grep -c .)" -ge 3 ]; }

# shellcheck disable=SC2086
{
    job 2 $ring "$build/abort" kill
    judge "a peer is killed" $? error "in the middle"

    # One that the launcher does not notice: only the connection tells.
    job 2 $ring --enable-recovery "$build/abort" kill
    judge "a peer is killed, seen by the connection" $? any "the connection to process .* is lost: the peer process ended"

    job 2 $ring "$build/forever" 30 &
    pid=$!
    wait_for connected
    sleep 1
    pkill -KILL -f "overlap-softdevice --domain $domain" || echo "no device to kill" >>"$log"
    wait $pid
    judge "the device process is killed" $? error "software device process ended"

    OVERLAP_TEST_SECONDS=4 job 2 $ring "$build/random" &
    pid=$!
    wait_for connected
    numbers=$("$device" --domain "$domain" --list | awk '$1 ~ /^[0-9]+$/ {print $1}')
    for number in $numbers; do "$device" --domain "$domain" --stall "$number" >/dev/null; done
    sleep 1
    for number in $numbers; do "$device" --domain "$domain" --resume "$number" >/dev/null; done
    wait $pid
    judge "every queue pair is stalled for a second" $? ok

    OVERLAP_TEST_SECONDS=4 job 2 $ring "$build/random" &
    pid=$!
    wait_for connected
    "$device" --domain "$domain" --link-down 0 >/dev/null
    sleep 1
    "$device" --domain "$domain" --link-up 0 >/dev/null
    wait $pid
    judge "the link is down for a second" $? ok

    OVERLAP_TEST_SECONDS=10 job 2 $ring "$build/random" &
    pid=$!
    wait_for connected
    for number in $("$device" --domain "$domain" --list | awk '$1 ~ /^[0-9]+$/ {print $1}'); do
        "$device" --domain "$domain" --fail-next "$number" 5 >/dev/null
    done
    wait $pid
    judge "a completion reports an error" $? error "the connection to process .* is lost: .*the peer's device does not answer"

    # A job that is killed with everything it has leaves its segments; the next one removes them.
    job 2 $ring "$build/forever" 30 &
    pid=$!
    wait_for connected
    pkill -KILL -f "$build/forever 30"
    wait $pid
    job 2 $ring "$build/pt2pt" "[short]"
    judge "what a crashed job has left is removed" $? ok

    job 2 --mca pml speculative --mca btl ring,self --mca btl_ring_fabric verbs "$build/pt2pt" "[short]"
    if ls /sys/class/infiniband/* >/dev/null 2>&1; then
        echo "SKIP ring fault: no verbs device: this machine has one"
    else
        judge "no verbs device" $? error "btl/ring is not used: .*"
        job 2 --mca pml speculative --mca btl ring,self --mca btl_ring_fabric auto "$build/pt2pt" "[short]"
        judge "auto finds no device" $? error "btl/ring is not used: .*btl_ring_fabric is auto"
        job 2 --mca pml speculative --mca btl_ring_fabric auto "$build/pt2pt" "[short]"
        judge "auto without a device is silent when nobody has asked for it" $? ok
        ! grep -q 'btl/ring' "$log" || fail "auto without a device is silent when nobody has asked for it" "says something"
    fi

    here=$(cd "$(dirname "$0")" && pwd)
    shim=$build/refuse_registration.so exchange=$build/exchange
    cc -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -o "$shim" "$here/refuse_registration.c" &&
        mpicc -std=gnu11 -O1 -o "$exchange" "$here/../mpi/bad/exchange.c" || exit 1
    for pml in speculative ob1; do
        job 2 --mca pml $pml --mca btl ring,self --mca btl_ring_verbose 1 -x LD_PRELOAD="$shim" "$exchange" 20
        judge "out of registered memory, $pml: sent otherwise" $? ok "all bytes right" "registering [0-9]+ bytes was refused"
    done

    job 2 $ring --mca btl_ring_ring_slots 3 "$build/pt2pt" "[short]"
    judge "too few slots" $? error "btl_ring_ring_slots is 3, too small"
    job 2 $ring --mca btl_ring_polling_sets 3 --mca btl_ring_rings 1 "$build/pt2pt" "[short]"
    judge "a tunable that does not exist" $? ok "no tunable btl_ring_polling_sets.*Did you mean btl_ring_polling_set"
}
exit $failed
