#!/bin/sh
# Run the MPI programs of this folder over a matrix of configurations: one line PASS, FAIL or SKIP per run.
#
#   OVERLAP_BUILD    where the programs are built (in test-mpi)
#   OVERLAP_PREFIX   a private installation (with env.sh)
#   PML=ob1          run on another PML: what is only true for this one is left out
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${OVERLAP_BUILD:?a build folder}/test-mpi
prefix=${OVERLAP_PREFIX:?a private installation}
pml=${PML:-speculative}
mkdir -p "$build" || exit 1
. "$prefix/env.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
failed=0
shared_memory=$(mktemp -d /dev/shm/overlap-test-XXXXXX) || exit 1
export TMPDIR="$build/tmp"
mkdir -p "$TMPDIR"
# Spawned processes inherit the environment, not the command line.
export OMPI_MCA_pml="$pml" OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_backing_directory="$shared_memory"
trap 'rm -rf "$shared_memory"' EXIT

pass() { echo "PASS mpi: $*"; }
fail() { echo "FAIL mpi: $*"; failed=1; }

# result NAME STATUS LOG
result() {
    if [ "$2" -eq 0 ]; then pass "$1"; return; fi
    fail "$1"
    echo "$1: exit status $2 (124: time limit); end of $3:" >&2
    tail -n 25 "$3" >&2
}

# run NAME LIMIT_S RANKS BTL COMMAND...
run() {
    name=$1 limit_s=$2 ranks=$3 btl=$4
    shift 4
    log=$build/$(echo "$name" | tr ' ,=/' '____').log
    timeout -k 5 "$limit_s" mpirun -n "$ranks" --mca btl "$btl" "$@" >"$log" 2>&1 </dev/null
    result "$name" $? "$log"
}

. "$here/build.sh"
has() { [ -x "$build/$1" ] && [ -f "$here/$1.cpp" ]; }

for btl in vader,self tcp,self; do
    for ranks in 2 4; do
        for program in $programs; do
            case $program in abort | forever | ring_*) continue ;; esac
            btls=$btl
            case $program in
                speculation | chained) [ $ranks = 2 ] || continue ;;
                # vader does not reach the processes of another job
                comms) [ $btl = tcp,self ] || btls=vader,tcp,self ;;
            esac
            OVERLAP_TEST_SECONDS=3 run "$program $btls np $ranks" 60 $ranks $btls "$build/$program"
        done
    done
    for ranks in 1 3 8; do
        ! has random || OVERLAP_TEST_SECONDS=1 run "random $btl np $ranks" 60 $ranks $btl "$build/random"
    done
done
! has pt2pt || run "pt2pt self sends np 1" 60 1 vader,self "$build/pt2pt" "[short]"

# Other settings of the component; on another PML the names mean nothing.
variant() { # NAME MCA_PARAMETER VALUE
    for program in pt2pt completion probe_cancel random speculation; do
        ! has $program || OVERLAP_TEST_SECONDS=1 run "$program vader,self np 2, $1" 90 2 vader,self --mca "$2" "$3" "$build/$program"
    done
}
if [ "$pml" = speculative ]; then
    variant "no speculation" pml_speculative_speculation 0
    variant "eager_flag" pml_speculative_hazard_control eager_flag
    variant "no adaptation" pml_speculative_adaptation 0
    variant "eager_limit 64" pml_speculative_eager_limit 64
fi
variant "no single copy" btl_vader_single_copy_mechanism none

# Two simulated nodes with two ranks each: vader and tcp in one job.
nodes=$here/../support/nodes/nodes.sh
state=$build/nodes
if [ "$(id -u)" -ne 0 ]; then
    echo "SKIP mpi: two nodes: needs root"
elif ! SLOTS=2 NODES_OWNER=$$ bash "$nodes" up "$state" 2 >"$build/nodes.log" 2>&1; then
    echo "SKIP mpi: two nodes: $(tail -n 1 "$build/nodes.log")"
else
    for program in pt2pt completion matching random; do
        has $program || continue
        log=$build/${program}_nodes.log
        # each node has its own private /dev/shm
        (unset OMPI_MCA_btl_vader_backing_directory TMPDIR
         OVERLAP_TEST_SECONDS=2 timeout -k 5 90 bash "$nodes" run "$state" -n 4 --mca btl vader,tcp,self -x OMPI_MCA_pml \
             -x OMPI_MCA_mca_base_component_path -x OVERLAP_TEST_SECONDS "$build/$program" >"$log" 2>&1 </dev/null)
        result "$program two nodes x 2, vader,tcp,self" $? "$log"
    done
    bash "$nodes" down "$state"
fi

# A job that ends in the middle ends at once, and leaves nothing behind.
if has abort; then
    for how in abort kill; do
        for btl in vader,self tcp,self; do
            log=$build/abort_$how.log
            began=$(date +%s)
            timeout -k 5 60 mpirun -n 2 --mca btl $btl "$build/abort" $how >"$log" 2>&1 </dev/null
            status=$?
            took=$(($(date +%s) - began))
            if [ $status -ne 0 ] && [ $status -ne 124 ] && [ $took -lt 20 ] && grep -q 'in the middle' "$log"; then
                pass "$how in the middle ends the job, $btl"
            else
                fail "$how in the middle ends the job, $btl"
                echo "exit status $status after $took s" >&2
                tail -n 25 "$log" >&2
            fi
        done
    done
fi
left=$(find "$shared_memory" -mindepth 1)
if [ -z "$left" ]; then
    pass "nothing is left in /dev/shm"
else
    fail "nothing is left in /dev/shm"
    echo "$left" >&2
fi
# bad_input.sh has its own lines
if [ -f "$here/bad_input.sh" ] && [ "$pml" = speculative ]; then sh "$here/bad_input.sh" || failed=1; fi
exit $failed
