# Sourced: what levels of MPI programs over a matrix of configurations share. Needs level (their name) and here (this folder).
#
#   OVERLAP_BUILD    where the programs are built (in test-mpi)
#   OVERLAP_PREFIX   a private installation (with env.sh)
#   PML=ob1          run on another PML: what is only true for this one is left out
# SPDX-License-Identifier: BSD-3-Clause
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
# Speculation over shared memory too, where it is off by default; the default command line has rows of its own.
export OMPI_MCA_pml_speculative_shared_memory=always
# What common_overlap_progress chooses for shared memory by itself must not depend on the cores of this machine: threads for all of them.
export OMP_NUM_THREADS="$(nproc --all)"
# Fresh memory costs some virtual machines 20 us and more for each small page: most of the time of some programs.
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1
trap 'rm -rf "$shared_memory"' EXIT

pass() { echo "PASS $level: $*"; }
fail() { echo "FAIL $level: $*"; failed=1; }

# result NAME STATUS LOG
result() {
    if [ "$2" -eq 0 ]; then pass "$1"; return; fi
    fail "$1"
    echo "$1: exit status $2 (124: time limit); end of $3:" >&2
    tail -n 25 "$3" >&2
}

# run NAME LIMIT_S RANKS BTL COMMAND...   BTL "": the default
run() {
    name=$1 limit_s=$2 ranks=$3 btl=$4
    shift 4
    log=$build/$(echo "$name" | tr ' ,=/' '____').log
    within "$limit_s" "$name" "$log" mpirun -n "$ranks" ${btl:+--mca btl "$btl"} "$@"
    result "$name" $? "$log"
}

. "$here/build.sh"
. "$here/../support/within"
has() { [ -x "$build/$1" ] && [ -f "$here/$1.cpp" ]; }

# Programs that have rows of their own, or no place in a matrix.
general=
for program in $programs; do
    case $program in
        abort | eager_probes | eager_reads | early_sends | exchange | exits | foreign_windows | blocking_copies | cancel_local | fragment_room | chained | coll_* | comms | forever | idle_calls | new_connections | onesided | polled | progress | speculation | ring_* | rma_*) ;;
        *) general="$general $program" ;;
    esac
done
settings="pt2pt completion probe_cancel random speculation"

# matrix: rows "what | numbers of ranks | BTLs, - for mpirun's own choice | programs | seconds | arguments of mpirun" from the input.
# cases: which test cases of the programs, as Catch2's command line names them; all when it is empty.
cases=
matrix() {
    while IFS='|' read -r what numbers lists names seconds arguments; do
        what=$(echo $what) seconds=$(echo $seconds)  # without the blanks of the table
        case $what in '#'*) continue ;; esac
        names=$(eval "echo $names")
        for ranks in $numbers; do
            for list in $lists; do
                for program in $names; do
                    [ -f "$here/$program.cpp" ] || fail "$program: a row names it, and there is no such program"
                    has "$program" || continue  # build.sh has said why
                    btl=$list
                    [ "$list" != - ] || btl=
                    # shellcheck disable=SC2086
                    OVERLAP_TEST_SECONDS=$seconds run "$program${btl:+ $btl} np $ranks${what:+, $what}" 90 "$ranks" "$btl" $arguments "$build/$program" $cases
                done
            done
        done
    done
}
# A job that has ended leaves nothing in shared memory.
check_shared_memory() {
    left=$(find "$shared_memory" -mindepth 1)
    if [ -z "$left" ]; then
        pass "nothing is left in /dev/shm"
    else
        fail "nothing is left in /dev/shm:" $left
    fi
}
