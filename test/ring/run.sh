#!/bin/sh
# btl/ring on the software device of this host: the MPI programs of test/mpi under both PMLs and many settings, then faults.
#
#   OVERLAP_BUILD    where the programs are built (in test-mpi, shared with test/mpi)
#   OVERLAP_PREFIX   a private installation (with env.sh)
#
# One line PASS, FAIL or SKIP per run. Verbs are tested in test/vm.
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

# run NAME RANKS PML "PROGRAM [ARGUMENT]" [MCA ARGUMENTS...]
run() {
    name=$1 ranks=$2 pml=$3 program=${4%% *} filter=
    case $4 in *" "*) filter=${4#* } ;; esac
    shift 4
    log=$build/ring_$(echo "$name" | tr ' ,=/' '____').log
    OVERLAP_TEST_SECONDS=${seconds:-1} timeout -k 5 90 mpirun -n "$ranks" --mca pml "$pml" --mca btl "${btl:-ring,self}" "$@" "$build/$program" ${filter:+"$filter"} \
        >"$log" 2>&1 </dev/null
    result "$name" $? "$log"
}

for program in pt2pt completion matching probe_cancel datatypes random threads speculation chained; do
    run "$program speculative np 2" 2 speculative $program
done
for program in pt2pt completion matching random threads; do run "$program speculative np 4" 4 speculative $program; done
run "random speculative np 8" 8 speculative random
# ob1 of 4.1 writes behind the buffer of a truncated receive: completion is left out.
for program in pt2pt matching probe_cancel datatypes random threads; do run "$program ob1 np 2" 2 ob1 $program; done
run "random ob1 np 4" 4 ob1 random

# Buffers that count as used often at once, the paper's hazard control, DONE after the end.
for program in completion chained; do
    run "$program speculative np 2, in place" 2 speculative $program --mca btl_ring_cost_register 1000 --mca btl_ring_cost_copy_kib 1000 \
        --mca btl_ring_cost_copy 100 --mca btl_ring_cost_lookup 1
done
for program in random speculation chained; do
    run "$program speculative np 2, eager_flag" 2 speculative $program --mca pml_speculative_hazard_control eager_flag
    run "$program speculative np 2, not chained" 2 speculative $program --mca btl_ring_chained 0
done

run "ring_crowd speculative np 20, 16 in the polling set" 20 speculative ring_crowd
run "ring_crowd ob1 np 12, 4 in the polling set" 12 ob1 ring_crowd --mca btl_ring_polling_set 4
run "ring_onesided speculative np 4" 4 speculative ring_onesided
run "ring_onesided ob1 np 3" 3 ob1 ring_onesided
btl=ring
run "pt2pt speculative np 2, to itself too" 2 speculative pt2pt
btl=

# Every buffer counts as used often at once: nearly all messages go from where they lie.
frequent="--mca btl_ring_slot_bytes 12288 --mca btl_ring_channel_bytes 16384 --mca btl_ring_cost_register 1 --mca btl_ring_cost_copy 1000000"
for pml in speculative ob1; do
    OVERLAP_TEST_FREQUENT=1
    export OVERLAP_TEST_FREQUENT
    # shellcheck disable=SC2086
    run "ring_frequent $pml np 2" 2 $pml ring_frequent $frequent
done

# Spawned processes inherit the environment, not the command line.
log=$build/ring_comms.log
(export OMPI_MCA_btl=ring,tcp,self OMPI_MCA_pml=speculative
 timeout -k 5 90 mpirun -n 2 "$build/comms" >"$log" 2>&1 </dev/null)
result "comms speculative np 2, ring and tcp" $? "$log"

# Settings at their limits: the same programs, the same bytes.
variant() { # NAME MCA-PARAMETER VALUE...
    name=$1
    shift
    arguments=
    while [ $# -gt 0 ]; do
        arguments="$arguments --mca btl_ring_$1 $2"
        shift 2
    done
    for pml in speculative ob1; do
        # shellcheck disable=SC2086
        run "random $pml np 3, $name" 3 $pml random $arguments
    done
    # shellcheck disable=SC2086
    run "pt2pt speculative np 2, $name" 2 speculative pt2pt $arguments
}
variant "no rings" rings 0
variant "5 slots" ring_slots 5
variant "slots of 256 bytes" slot_bytes 256
variant "one peer in the polling set, by traffic" polling_set 1 polling_policy traffic polling_review 16
variant "sequential polling" polling_order sequential
variant "circular polling" polling_order circular
variant "queues of 8" send_queue 8 receive_buffers 8 send_buffers 4
variant "no chained completion" chained 0
variant "frequent buffers at once, large slots" slot_bytes 12288 channel_bytes 16384 cost_register 1 cost_copy 1000 cost_lookup 1
variant "a fast wire" soft_bandwidth 12000 soft_latency 1000

sh "$ring/faults.sh" || failed=1
exit $failed
