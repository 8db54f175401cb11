#!/bin/sh
# Random traffic for a while: run.sh [SECONDS] (grades: 3, 30, 300; default 30). Needs OVERLAP_BUILD and OVERLAP_PREFIX.
#
# SEED (default: the time) chooses the traffic and is printed; a failure names the seed of its round.
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
if ! [ "$build/random" -nt "$source/random.cpp" ] || ! [ "$build/random" -nt "$source/mpi_test.cpp" ]; then
    mpicxx -std=c++20 -O1 "$source/random.cpp" "$source/mpi_test.cpp" -o "$build/random" || exit 1
fi
failed=0
for btl in vader,self tcp,self; do
    for hazard_control in envelope_sequence eager_flag; do
        name="stress: random $btl $hazard_control ${seconds} s seed $OVERLAP_TEST_SEED"
        if timeout -k 5 $((seconds * 2 + 60)) mpirun --oversubscribe --bind-to none -n "${RANKS:-3}" --mca pml "${PML:-speculative}" --mca btl $btl \
            --mca mpi_yield_when_idle 1 --mca pml_speculative_hazard_control $hazard_control "$build/random" >"$build/stress.log" 2>&1; then
            echo "PASS $name"
        else
            echo "FAIL $name"
            tail -n 30 "$build/stress.log" >&2
            failed=1
        fi
    done
done
exit $failed
