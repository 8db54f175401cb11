#!/bin/sh
# Random traffic for a while: run.sh [SECONDS] (grades: 3, 30, 300; default 30). Needs OVERLAP_BUILD and OVERLAP_PREFIX.
#
# SEED (default: the time) chooses the traffic and is printed; a failure names the seed of its round. Messages, then programs of one-sided
# communication on osc/newrma, where it is installed: 300 seconds are some thousand of those.
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-30}
build=${OVERLAP_BUILD:?a build folder}/test-mpi
. "${OVERLAP_PREFIX:?a private installation}/env.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OVERLAP_TEST_SECONDS="$seconds" OVERLAP_TEST_SEED="${SEED:-$(date +%s)}"
mkdir -p "$build"
source=$here/../mpi
for program in random rma_random; do
    if ! [ "$build/$program" -nt "$source/$program.cpp" ] || ! [ "$build/$program" -nt "$source/mpi_test.cpp" ]; then
        mpicxx -std=c++20 -O1 "$source/$program.cpp" "$source/mpi_test.cpp" -o "$build/$program" || exit 1
    fi
done
failed=0
# stress PROGRAM RANKS BTLS WHAT ARGUMENT...
stress() {
    program=$1 ranks=$2 btl=$3
    name="stress: $program np $ranks $btl $4 ${seconds} s seed $OVERLAP_TEST_SEED"
    shift 4
    if timeout -k 5 $((seconds * 2 + 60)) mpirun --oversubscribe --bind-to none -n "$ranks" --mca pml "${PML:-speculative}" --mca btl "$btl" \
        --mca mpi_yield_when_idle 1 "$@" "$build/$program" >"$build/stress.log" 2>&1; then
        echo "PASS $name$(sed -n 's/^  \([0-9]*\) rounds$/\1/p' "$build/stress.log" | awk '{ n += $1 } END { if (n > 0) print ": " n " programs" }')"
    else
        echo "FAIL $name"
        tail -n 30 "$build/stress.log" >&2
        failed=1
    fi
}
for btl in vader,self tcp,self; do
    for hazard_control in envelope_sequence eager_flag; do
        stress random "${RANKS:-3}" $btl $hazard_control --mca pml_speculative_hazard_control $hazard_control
    done
done
if [ -f "$OVERLAP_PREFIX/lib/openmpi/mca_osc_newrma.so" ] && [ "${PML:-speculative}" = speculative ]; then
    for btl in vader,self tcp,self; do
        for ranks in ${RANKS:-2 3 5 8}; do
            stress rma_random "$ranks" $btl osc/newrma --mca osc newrma
        done
    done
    stress rma_random "${RANKS:-3}" vader,self "osc/newrma, progress" --mca osc newrma --mca common_overlap_progress on
    stress rma_random "${RANKS:-3}" tcp,self "osc/newrma, progress off" --mca osc newrma --mca common_overlap_progress off
fi
exit $failed
