#!/bin/sh
# btl/ring on the software device of this host: the MPI programs of test/mpi under both PMLs and many settings, then faults.
#
#   OVERLAP_BUILD    where the programs are built (in test-mpi, shared with test/mpi)
#   OVERLAP_PREFIX   a private installation (with env.sh)
#
# One line PASS, FAIL or SKIP per run. Verbs are tested in test/vm.
# SPDX-License-Identifier: BSD-3-Clause
set -u
ring=$(cd "$(dirname "$0")" && pwd)
here=$(cd "$ring/../mpi" && pwd)
build=${OVERLAP_BUILD:?a build folder}/test-mpi
prefix=${OVERLAP_PREFIX:?a private installation}
mkdir -p "$build" || exit 1
. "$prefix/env.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_ring_fabric=soft
# As in level.sh: threads for all cores, and huge pages.
export OMP_NUM_THREADS="$(nproc --all)" GLIBC_TUNABLES=glibc.malloc.hugetlb=1
# Not another test's device.
domain=test-ring-$$
export OMPI_MCA_btl_ring_soft_domain=$domain
failed=0

pass() { echo "PASS ring: $*"; }
fail() { echo "FAIL ring: $*"; failed=1; }
result() { # NAME STATUS LOG
    if [ "$2" -eq 0 ]; then pass "$1"; return; fi
    fail "$1"
    echo "$1: exit status $2 (124: time limit); end of $3:" >&2
    tail -n 25 "$3" >&2
}

. "$here/build.sh"
. "$here/../support/within"

# matrix: rows "what | numbers of ranks | PMLs | programs | arguments of mpirun" from the input. BTLs: ring and self, unless btl is set.
matrix() {
    while IFS='|' read -r what numbers pmls names arguments; do
        what=$(echo $what)  # without the blanks of the table
        case $what in '#'*) continue ;; esac
        for ranks in $numbers; do
            for pml in $pmls; do
                for program in $(eval "echo $names"); do
                    name="$program $pml np $ranks${what:+, $what}"
                    log=$build/ring_$(echo "$name" | tr ' ,=/' '____').log
                    # shellcheck disable=SC2086
                    OVERLAP_TEST_SECONDS=1 within 90 "$name" "$log" mpirun -n "$ranks" --mca pml "$pml" --mca btl "${btl:-ring,self}" $arguments \
                        "$build/$program"
                    result "$name" $? "$log"
                done
            done
        done
    done
}

# ob1 of 4.1 writes behind the buffer of a truncated receive: completion is left out. In place: buffers that count as used often at once.
# Large slots: messages of 4 KB go eagerly. At once: every buffer counts as used often, nearly all messages go from where they lie.
matrix <<'END'
#                     | np | PMLs            | programs                                                                         | arguments
                      | 2  | speculative     | pt2pt completion matching probe_cancel datatypes random threads speculation chained |
                      | 4  | speculative     | pt2pt completion matching random threads                                         |
                      | 8  | speculative     | random                                                                           |
                      | 2  | ob1             | pt2pt matching probe_cancel datatypes random threads                             |
                      | 4  | ob1             | random                                                                           |
in place              | 2  | speculative     | completion chained                                                               | --mca btl_ring_costs 1,0,1000000000,0,0
eager_flag            | 2  | speculative     | random speculation chained                                                       | --mca pml_speculative_hazard_control eager_flag
not chained           | 2  | speculative     | random speculation chained                                                       | --mca btl_ring_chained 0
no inline data        | 2  | speculative     | pt2pt random chained                                                             | --mca btl_ring_soft_inline 0 --mca btl_ring_send_buffers 4 --mca common_overlap_progress on
16 in the polling set | 20 | speculative     | ring_crowd                                                                       |
no rings              | 4  | speculative     | ring_deaf                                                                        | --mca btl_ring_rings off
                      | 20 | speculative     | ring_deaf                                                                        |
4 in the polling set  | 12 | ob1             | ring_crowd                                                                       | --mca btl_ring_polling_set 4
                      | 9  | speculative     | ring_completions                                                                 |
                      | 4  | speculative     | ring_onesided                                                                    |
                      | 3  | ob1             | ring_onesided                                                                    |
progress on           | 2  | speculative     | progress pt2pt completion random probe_cancel speculation chained                | --mca common_overlap_progress on
progress on           | 4  | speculative     | progress random                                                                  | --mca common_overlap_progress on
progress on, no RTRs  | 2  | speculative     | progress                                                                         | --mca common_overlap_progress on --mca pml_speculative_speculation 0
progress on, no rings | 2  | speculative     | progress                                                                         | --mca common_overlap_progress on --mca btl_ring_rings off
progress on           | 2  | speculative     | ring_sleeper                                                                     | --mca common_overlap_progress on
progress on, windows of Open MPI | 2 | speculative | ring_sleeper                                                               | --mca common_overlap_progress on --mca osc ^newrma
                      | 2  | speculative     | freed_comms back_pressure threads_flood end end_comms end_requests comms             |
                      | 2  | ob1             | back_pressure                                                                    |
                      | 2  | speculative     | ring_lending                                                                     | --mca btl_ring_slot_bytes 65536 --mca btl_ring_channel_bytes 65536 --mca btl_ring_frequent_fraction 1
large slots           | 2  | speculative     | freed_comms back_pressure threads_flood                                          | --mca btl_ring_slot_bytes 8192 --mca btl_ring_channel_bytes 12288
at once               | 2  | speculative ob1 | ring_frequent                                                                    | -x OVERLAP_TEST_FREQUENT=1 --mca btl_ring_slot_bytes 12288 --mca btl_ring_channel_bytes 16384 --mca btl_ring_costs 1,0,1000000000,0,0
END
if [ -f "$prefix/lib/openmpi/mca_osc_newrma.so" ]; then
    if [ ! -f "$prefix/include/mpix_overlap.h" ]; then
        echo "SKIP ring: $nonblocking over osc/newrma: there is no mpix_overlap.h in $prefix/include"
        nonblocking=
    fi
    matrix <<'END'
osc/newrma            | 2  | speculative     | rma_data rma_ops rma_types rma_epochs rma_locks rma_windows rma_random rma_threads | --mca osc newrma
osc/newrma            | 4  | speculative     | rma_data rma_epochs rma_locks rma_random                                         | --mca osc newrma
osc/newrma, progress  | 2  | speculative     | rma_progress rma_epochs rma_locks                                                | --mca osc newrma --mca common_overlap_progress on
osc/newrma, 512 bytes | 2  | speculative     | rma_ops rma_random                                                               | --mca osc newrma --mca btl_ring_slot_bytes 256 --mca btl_ring_channel_bytes 512
osc/newrma, no thread | 2  | speculative     | rma_passive                                                                      | --mca osc newrma --mca common_overlap_progress off -x OVERLAP_TEST_ACCUMULATES=0
osc/newrma            | 3  | speculative     | $nonblocking                                                                     | --mca osc newrma
END
else
    echo "SKIP ring: rma programs and $nonblocking over osc/newrma: there is no mca_osc_newrma.so in $prefix/lib/openmpi"
fi
if [ -f "$prefix/lib/openmpi/mca_coll_mq.so" ]; then
    matrix <<'END'
coll/mq               | 2  | speculative     | coll_barriers coll_comms coll_data coll_threads coll_device pt2pt                | --mca coll_mq_priority 100
coll/mq               | 5 8 | speculative    | coll_barriers coll_comms coll_data coll_device                                   | --mca coll_mq_priority 100
coll/mq, little room  | 4  | speculative     | coll_barriers coll_comms                                                         | --mca coll_mq_priority 100 --mca coll_mq_window 4 --mca coll_mq_radix 3
coll/mq, no device    | 2  | speculative     | coll_barriers coll_comms coll_threads                                            | --mca coll_mq_priority 100 --mca coll_mq_device off
coll/mq, progress     | 3  | speculative     | coll_barriers coll_comms                                                         | --mca coll_mq_priority 100 --mca common_overlap_progress on
END
else
    echo "SKIP ring: coll_barriers and others over coll/mq: there is no mca_coll_mq.so in $prefix/lib/openmpi"
fi
btl=ring
matrix <<'END'
to itself too         | 2  | speculative     | pt2pt                                                                            |
END
btl=

# Settings at their limits: the same programs, the same bytes. Rows "what | tunable of btl/ring and value ...".
while IFS='|' read -r what values; do
    arguments=$(echo "$values" | awk '{ for (i = 1; i < NF; i += 2) printf " --mca btl_ring_%s %s", $i, $(i + 1) }')
    matrix <<END
$what | 3 | speculative ob1 | random | $arguments
$what | 2 | speculative | pt2pt | $arguments
END
done <<'END'
no rings                                | rings off
rings in any case                       | rings force
5 slots                                 | ring_slots 5
slots of 256 bytes                      | slot_bytes 256
one peer in the polling set, by traffic | polling_set 1 polling_policy traffic polling_review 16
sequential polling                      | polling_order sequential
circular polling                        | polling_order circular
queues of 8                             | send_queue 8 receive_buffers 8 receive_buffers_max 8 send_buffers 4
receive buffers that grow               | send_queue 8 receive_buffers 8 rings off
no chained completion                   | chained 0
frequent buffers at once, large slots   | slot_bytes 12288 channel_bytes 16384 costs 1,0,1000000000,0,0
a fast wire                             | soft_bandwidth 12000 soft_latency 1000
END

# The sender's own parameter does not matter.
for own in auto off; do
    log=$build/ring_sleeper_$own.log
    OMPI_MCA_btl=ring,self OMPI_MCA_pml=speculative timeout -k 5 90 mpirun -x OMPI_MCA_common_overlap_progress=on -n 1 "$build/ring_sleeper" \
        : -x OMPI_MCA_common_overlap_progress=$own -n 1 "$build/ring_sleeper" >"$log" 2>&1 </dev/null
    result "ring_sleeper speculative np 2, progress $own at the sender" $? "$log"
done

# Processes of several nodes, which meet after MPI_Init. Three jobs: who comes when is a matter of chance.
if unshare -u true 2>/dev/null; then
    hosts=ring-node-1,ring-node-2,ring-node-3,ring-node-4,ring-node-5,ring-node-6
    for turn in 1 2 3; do
        name="ring_meetings speculative np 6 on 6 nodes, $turn" log=$build/ring_meetings_$turn.log
        within 30 "$name" "$log" mpirun -n 6 -H "$hosts" --map-by node --mca plm_rsh_agent "$ring/host-agent.sh" --mca plm_rsh_no_tree_spawn 1 \
            --mca oob_tcp_if_include lo --mca pml speculative --mca osc rdma --mca btl ring,self "$build/ring_meetings"
        result "$name" $? "$log"
    done
else
    echo "SKIP ring: ring_meetings: host names of its own (unshare -u) need root"
fi

# Spawned processes inherit the environment, not the command line.
log=$build/ring_comms.log
name="comms speculative np 2, ring and tcp"
(export OMPI_MCA_btl=ring,tcp,self OMPI_MCA_pml=speculative
 within 90 "$name" "$log" mpirun -n 2 "$build/comms")
result "$name" $? "$log"

# What spawned processes have sent last arrives when the job ends (a wire of 10 ms sees to that): nobody above the BTL may be called then.
# The launcher of 4.1 stands still in one of ten spawns (PMIx_Init of the child); such a run says nothing, three others must.
log=$build/ring_goodbye.log
spawned_jobs() { # RANKS
    export OMPI_MCA_btl=ring,tcp,self OMPI_MCA_pml=speculative OMPI_MCA_btl_ring_soft_domain="goodbye-$$"
    ended=0
    for _ in 1 2 3 4 5 6 7 8; do
        timeout -k 5 20 mpirun -n "$1" "$build/ring_goodbye" >"$log" 2>&1 </dev/null
        case $? in
            0) ended=$((ended + 1)) ;;
            124 | 137) ;;
            *) return 1 ;;
        esac
        [ $ended -lt 3 ] || return 0
    done
    return 124
}
(export OMPI_MCA_btl_ring_soft_latency=10000000
 spawned_jobs 1)
result "ring_goodbye speculative, three times" $? "$log"
(export OMPI_MCA_btl_ring_rings=off OMPI_MCA_btl_ring_send_buffers=4 OMPI_MCA_btl_ring_soft_latency=10000000 OMPI_MCA_btl_ring_soft_inline=0
 spawned_jobs 8)
result "ring_goodbye speculative, to 8 processes with 4 buffers, three times" $? "$log"

# Parameters of some processes only: one sentence, and another BTL carries the messages.
log=$build/ring_unlike.log
timeout -k 5 60 mpirun -n 2 --mca pml speculative --mca btl ring,tcp,self \
    sh -c '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || export OMPI_MCA_btl_ring_channel_bytes=16384; exec "$0"' "$build/pt2pt" >"$log" 2>&1 </dev/null &&
    [ "$(grep -c 'btl/ring does not connect to process .*btl_ring_channel_bytes 16384' "$log")" -eq 1 ]
result "channel_bytes of one process differ: says so once, tcp" $? "$log"

sh "$ring/faults.sh" || failed=1
exit $failed
