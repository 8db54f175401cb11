#!/bin/sh
# Faults of btl/ring on the software device: each one message that says what happened, no hanging, nothing left behind.
# Called by run.sh, which has set the environment.
# SPDX-License-Identifier: BSD-3-Clause
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

# killed_unseen HOW MPIRUN-ARGUMENTS...: kill a peer of "forever 30 HOW" that the launcher cannot notice: it is stopped meanwhile, or its own
# notification would end the survivor first, now and then. So the survivor's message does not pass through it either. Sets status.
killed_unseen() {
    how=$1
    shift
    rm -f "$build"/survivor.*
    # shellcheck disable=SC2016,SC2086
    job 2 $ring "$@" sh -c 'echo $$ >"$1/survivor.pid$OMPI_COMM_WORLD_RANK"; exec "$1/forever" 30 $2 2>"$1/survivor.said$OMPI_COMM_WORLD_RANK"' sh "$build" $how &
    pid=$!
    for rank in 0 1; do wait_for grep -q exchanging "$build/survivor.said$rank"; done
    launcher=$(ps -o ppid= -p "$(cat "$build/survivor.pid1")" | tr -d ' ')
    kill -STOP "$launcher"
    : >"$build/survivor.lonely"
    kill -KILL "$(cat "$build/survivor.pid1")"
    wait_for grep -q "is lost" "$build/survivor.said0"
    kill -CONT "$launcher"
    wait $pid
    status=$?
    cat "$build/survivor.said0" >>"$log"
}

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2086
{
    job 2 $ring "$build/abort" kill
    judge "a peer is killed" $? error "in the middle"

    killed_unseen ""
    judge "a peer is killed, seen by the connection" $status any "the connection to process .* is lost: the peer process ended"

    # Its requests are flushed, and nobody says why: the survivor goes on sending.
    shim=$build/withhold_events.so
    cc -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -o "$shim" "$here/withhold_events.c" || exit 1
    killed_unseen one_way -x LD_PRELOAD="$shim" -x WITHHELD_EVENTS="$build/survivor.lonely"
    judge "a peer is killed, and no event says so" $status any "the connection to process .* is lost: the connection had failed before \(flushed\)"

    job 2 $ring "$build/forever" 30 &
    pid=$!
    wait_for connected
    sleep 1
    pkill -KILL -f "overlap-softdevice --domain $domain" || echo "no device to kill" >>"$log"
    wait $pid
    judge "the device process is killed" $? error "software device process ended"

    if [ -f "$prefix/lib/openmpi/mca_coll_mq.so" ]; then
        # Over shared memory: nobody but coll/mq uses the device.
        job 3 --mca pml speculative --mca btl vader,self --mca coll_mq_priority 100 -x OVERLAP_TEST_BARRIER_SECONDS=30 "$build/coll_device" "Barriers until*" &
        pid=$!
        wait_for connected
        sleep 1
        "$device" --domain "$domain" --quit >/dev/null
        wait $pid
        judge "the device process ends in a barrier" $? error "coll/mq: the device cannot carry out the barriers" "software device process ended"

        # The launcher may be the first to notice.
        job 3 --mca pml speculative --mca btl vader,self --mca coll_mq_priority 100 -x OVERLAP_TEST_BARRIER_SECONDS=30 \
            sh -c 'echo $$ >"$1/barrier.pid$OMPI_COMM_WORLD_RANK"; exec "$1/coll_device" "Barriers until*"' sh "$build" &
        pid=$!
        wait_for connected
        sleep 1
        kill -KILL "$(cat "$build/barrier.pid1")"
        wait $pid
        judge "a rank is killed in a barrier" $? error
    fi

    OVERLAP_TEST_SECONDS=4 job 2 $ring "$build/random" &
    pid=$!
    wait_for connected
    numbers=$("$device" --domain "$domain" --list | awk '$1 ~ /^[0-9]+$/ {print $1}')
    for number in $numbers; do "$device" --domain "$domain" --stall "$number" >/dev/null; done
    sleep 1
    for number in $numbers; do "$device" --domain "$domain" --resume "$number" >/dev/null; done
    wait $pid
    judge "every queue pair is stalled for a second" $? ok

    # Whoever looks at a ring too early finds a message without its end.
    OVERLAP_TEST_SECONDS=4 job 2 $ring "$build/random" &
    pid=$!
    wait_for connected
    for number in $("$device" --domain "$domain" --list | awk '$1 ~ /^[0-9]+$/ {print $1}'); do
        "$device" --domain "$domain" --tear "$number" 200000 >/dev/null
    done
    wait $pid
    judge "the end of every message comes late" $? ok

    OVERLAP_TEST_SECONDS=4 job 2 $ring "$build/random" &
    pid=$!
    wait_for connected
    "$device" --domain "$domain" --link-down 0 >/dev/null
    sleep 1
    "$device" --domain "$domain" --link-up 0 >/dev/null
    wait $pid
    judge "the link is down for a second" $? ok

    # mpirun of 4.1 loses now and then what a rank has said when another one has aborted: a job without the sentence is run once more.
    for _ in 1 2; do
        OVERLAP_TEST_SECONDS=10 job 2 $ring "$build/random" &
        pid=$!
        wait_for connected
        for number in $("$device" --domain "$domain" --list | awk '$1 ~ /^[0-9]+$/ {print $1}'); do
            "$device" --domain "$domain" --fail-next "$number" 5 >/dev/null
        done
        wait $pid
        status=$?
        ! grep -q "does not answer" "$log" || break
    done
    judge "a completion reports an error" $status error "the connection to process .* is lost: .*the peer's device does not answer"

    # Connections are tried again: three requests to each rank get lost, the others arrive 30 ms late.
    for pml in speculative ob1; do
        go=$build/ring_connect.go
        rm -f "$go"
        own=$domain-$pml
        OMPI_MCA_btl_ring_soft_domain=$own job 3 --mca pml $pml --mca btl ring,self "$build/ring_connect" "$go" &
        pid=$!
        for client in 1 2 3; do
            wait_for "$device" --domain "$own" --lose-requests $client 3 30000000 || echo "no fault" >>"$log"
        done
        : >"$go"
        wait $pid
        judge "connection requests get lost and come late, $pml" $? ok "^0 numbers wrong"
        ! grep -q 'no fault' "$log" || fail "connection requests get lost and come late, $pml" "no fault was injected"
    done

    # The same while both ranks compute: their threads try again.
    rm -f "$go"
    own=$domain-thread
    OMPI_MCA_btl_ring_soft_domain=$own job 2 --mca pml speculative --mca btl ring,self --mca common_overlap_progress on "$build/ring_connect" "$go" computes &
    pid=$!
    for client in 1 2; do
        wait_for "$device" --domain "$own" --lose-requests $client 2 30000000 || echo "no fault" >>"$log"
    done
    : >"$go"
    wait $pid
    judge "connection requests get lost while both ranks compute" $? ok "^0 numbers wrong"
    ! grep -q 'no fault' "$log" || fail "connection requests get lost while both ranks compute" "no fault was injected"

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

    shim=$build/refuse_registration.so exchange=$build/exchange
    cc -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -o "$shim" "$here/refuse_registration.c" &&
        mpicc -std=gnu11 -O1 -o "$exchange" "$here/../mpi/bad/exchange.c" || exit 1
    for pml in speculative ob1; do
        job 2 --mca pml $pml --mca btl ring,self --mca btl_ring_verbose 1 -x LD_PRELOAD="$shim" "$exchange" 20
        judge "out of registered memory, $pml: sent otherwise" $? ok "all bytes right" "registering [0-9]+ bytes was refused"
    done

    if [ -f "$prefix/lib/openmpi/mca_osc_newrma.so" ]; then
        job 2 --mca pml speculative --mca osc newrma --mca btl ring,self --mca btl_ring_verbose 1 -x LD_PRELOAD="$shim" "$build/rma_data"
        judge "windows that cannot be registered: messages instead" $? ok "registering [0-9]+ bytes was refused"
    else
        echo "SKIP ring fault: windows that cannot be registered: there is no mca_osc_newrma.so in $prefix/lib/openmpi"
    fi

    # Memory of its own is refused three times; registrations that are only kept are given up for it. Processes of one node need no atomic
    # operations of the device.
    if unshare -u true 2>/dev/null; then
        job 2 -H ring-node-1,ring-node-2 --map-by node --mca plm_rsh_agent "$here/host-agent.sh" --mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include lo \
            --mca pml ob1 --mca osc rdma --mca btl ring,self -x LD_PRELOAD="$shim" -x REFUSED_BYTES=512 "$build/ring_reclaim" "*next time*"
        judge "what is only kept registered makes room" $? ok "All tests passed"
        # Open MPI gives up what has been freed all at once.
        job 2 -H ring-node-1,ring-node-2 --map-by node --mca plm_rsh_agent "$here/host-agent.sh" --mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include lo \
            --mca pml ob1 --mca osc rdma --mca btl ring,self -x LD_PRELOAD="$shim" -x REFUSED_BYTES=512 -x REFUSED_TIMES=1 "$build/ring_reclaim" "*freed*"
        judge "what has been freed makes room" $? ok "All tests passed"
    else
        echo "SKIP ring fault: what is only kept registered makes room: host names of its own (unshare -u) need root"
    fi

    # Three queue pairs of each process are refused, then none; then all.
    shim=$build/refuse_queue_pairs.so
    cc -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -o "$shim" "$here/refuse_queue_pairs.c" || exit 1
    for pml in speculative ob1; do
        job 2 --mca pml $pml --mca btl ring,self -x LD_PRELOAD="$shim" -x REFUSED_QUEUE_PAIRS=3 "$exchange" 20
        judge "queue pairs are refused for a while, $pml" $? ok "all bytes right"
    done
    job 2 $ring -x LD_PRELOAD="$shim" -x REFUSED_QUEUE_PAIRS=1000000 "$exchange" 20
    judge "queue pairs are refused for good" $? error "the connection to process .* on .* is lost: no memory for a send queue .*Cannot allocate memory"

    # A /dev/shm of its own, of few KiB: the default buffers of two processes take 2.1 MiB, a ring 200 KiB.
    small_job() { # SIZE MPIRUN-ARGUMENTS...
        size=$1
        shift
        timeout -k 5 "$limit" unshare -m sh -c 'mount -t tmpfs -o "size=$0" tmpfs /dev/shm && exec mpirun -n 2 "$@"' "$size" "$@" >"$log" 2>&1 </dev/null
    }
    if unshare -m sh -c 'mount -t tmpfs -o size=64k tmpfs /dev/shm' 2>/dev/null; then
        small_job 1024k $ring "$build/pt2pt" "[short]"
        judge "no room in /dev/shm for the buffers" $? error "btl/ring is not used: .*cannot have [0-9]+ bytes of shared memory: No space left.*/dev/shm"
        small_job 2304k $ring "$build/random"
        judge "no room in /dev/shm for rings" $? ok "/dev/shm has no room for a ring of [0-9]+ bytes"
    else
        echo "SKIP ring fault: no room in /dev/shm: mounting a small one needs root"
    fi

    job 2 $ring --mca btl_ring_ring_slots 3 "$build/pt2pt" "[short]"
    judge "too few slots" $? error "btl_ring_ring_slots is 3, too small"
    job 2 $ring --mca btl_ring_costs 1,2,3 "$build/pt2pt" "[short]"
    judge "costs that are not five numbers" $? error 'btl_ring_costs is "1,2,3"; write the five numbers'
    job 2 $ring --mca btl_ring_polling_sets 3 --mca btl_ring_rings force "$build/pt2pt" "[short]"
    judge "a tunable that does not exist" $? ok "no tunable btl_ring_polling_sets.*Did you mean btl_ring_polling_set"
}
exit $failed
