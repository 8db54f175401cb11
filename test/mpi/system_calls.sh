#!/bin/sh
# The command line without any --mca btl: a blocked call must not turn the event loop of BTLs that no message goes through.
#
# Needs OVERLAP_BUILD (its test-mpi has idle_calls) and an environment that finds the components. One line PASS or FAIL.
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${OVERLAP_BUILD:?a build folder}/test-mpi
pml=${PML:-speculative}
name="mpi: poll(2) calls of 20,000 small round trips, default command line"
${CC:-cc} -shared -fPIC -O1 "$here/bad/count_poll.c" -o "$build/count_poll.so" -ldl || { echo "FAIL $name"; exit 1; }
log=$build/system_calls.log
timeout -k 5 120 mpirun -n 2 --mca pml "$pml" env LD_PRELOAD="$build/count_poll.so" "$build/idle_calls" >"$log" 2>&1 </dev/null
status=$?
# Ten in a hundred round trips: the runtime's own thread and a look every 10 ms stay far below, one in each turn far above.
calls=$(sed -n 's/^poll calls //p' "$log" | sort -n | tail -n 1)
if [ $status -eq 0 ] && [ "$(grep -c '^poll calls' "$log")" -eq 2 ] && [ "$calls" -lt 2000 ]; then
    echo "PASS $name"
else
    echo "FAIL $name"
    tail -n 10 "$log" >&2
    exit 1
fi
