#!/bin/sh
# The command line without any --mca btl: a blocked call must not turn the event loop of BTLs that no message goes through, and a process of
# a full node reads no topology of it.
#
# Needs OVERLAP_BUILD (its test-mpi has idle_calls) and an environment that finds the components. Lines PASS or FAIL.
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${OVERLAP_BUILD:?a build folder}/test-mpi
pml=${PML:-speculative}
failed=0
${CC:-cc} -shared -fPIC -O1 "$here/bad/count_calls.c" -o "$build/count_calls.so" -ldl || { echo "FAIL mpi: count_calls.c"; exit 1; }
log=$build/system_calls.log
# run PML: with so many threads the two processes leave no core to spare
run() {
    timeout -k 5 120 mpirun -n 2 --mca pml "$1" env LD_PRELOAD="$build/count_calls.so" OMP_NUM_THREADS="$(nproc)" "$build/idle_calls" >"$log" 2>&1 \
        </dev/null
}
# most COUNTER: of both processes
most() { sed -n "s/^$1 //p" "$log" | sort -n | tail -n 1; }
# Open MPI itself reads one where processes are not bound.
run ob1 && of_ob1=$(most "topology loads") || { echo "FAIL mpi: idle_calls on ob1"; exit 1; }
run "$pml"
status=$?

# expect NAME COUNTER LIMIT: no process has counted more
expect() {
    if [ $status -eq 0 ] && [ "$(grep -c "^$2" "$log")" -eq 2 ] && [ "$(most "$2")" -le "$3" ]; then
        echo "PASS mpi: $1"
    else
        echo "FAIL mpi: $1"
        tail -n 10 "$log" >&2
        failed=1
    fi
}
# Ten in a hundred round trips: the runtime's own thread and a look every 10 ms stay far below, one in each turn far above.
expect "poll(2) calls of 20,000 small round trips, default command line" "poll calls" 2000
expect "no topology is read on a full node" "topology loads" "$of_ob1"
exit $failed
