#!/bin/sh
# MPI programs beside the helper of the node, ompi-progressd: messages through shared memory, while it watches, when it is killed or stopped,
# and started by a job. Needs OVERLAP_BUILD and an environment in which the components and ompi-progressd are found. One line per case.
# SPDX-License-Identifier: BSD-3-Clause
set -u
build=${OVERLAP_BUILD:?a build folder}
programs=$build/test-mpi
work=$build/helper
failed=0
mkdir -p "$work"
log=$work/log

if ! command -v ompi-progressd >/dev/null; then
    echo "SKIP mpi: helper: ompi-progressd was not built (libhwloc-dev libcli11-dev nlohmann-json3-dev)"
    exit 0
fi
if ompi-progressd --status >/dev/null 2>&1; then
    echo "SKIP mpi: helper: this user runs one already, which tests must not disturb"
    exit 0
fi
trap 'ompi-progressd --stop >/dev/null 2>&1' EXIT

# Two ranks on shared memory with the interrupt thread; their counters at the end.
run() { # PROGRAM ARGUMENT-OF-MPIRUN...
    program=$programs/$1
    shift
    OVERLAP_TEST_SECONDS=2 timeout -k 5 90 mpirun -n 2 --mca btl vader,self --mca common_overlap_progress on \
        --mca pml_speculative_shared_memory auto --mca pml_speculative_stats 1 "$@" "$program" >"$log" 2>&1 </dev/null
}
pid_of_helper() { ompi-progressd --status 2>/dev/null | sed -n 's/^ompi-progressd .* process \([0-9]*\),.*/\1/p'; }
# sum NAME: of a counter over the ranks, from the table
sum() { awk -v name="$1" '$1 == name { print $5 }' "$log"; }
pass() { echo "PASS mpi: helper: $*"; }
fail() {
    echo "FAIL mpi: helper: $*"
    tail -n 25 "$log" >&2
    failed=1
}

# It watches for as long as somebody waits, also where ranks fill the node.
start() { ompi-progressd --share-core --spin-ms 10000; }

start
if run progress && [ "$(sum wakes_handed_on)" -gt 0 ]; then
    pass "senders leave their envelopes to it"
else
    fail "senders leave their envelopes to it"
fi
ompi-progressd --stop

start
run progress &
sleep 1
kill -9 "$(pid_of_helper)"
if wait $!; then pass "killed while it watches"; else fail "killed while it watches"; fi

start
helper=$(pid_of_helper)
run random &
sleep 1
kill -STOP "$helper"
if wait $!; then pass "stopped while it watches"; else fail "stopped while it watches"; fi
kill -CONT "$helper"
ompi-progressd --stop

if run progress --mca common_overlap_helper start && ! grep -q 'cannot be started' "$log"; then
    pass "started by a job"
else
    fail "started by a job"
fi
for _ in $(seq 50); do
    [ -n "$(pid_of_helper)" ] || break
    sleep 0.2
done
if [ -z "$(pid_of_helper)" ]; then pass "ends with its last job"; else fail "ends with its last job"; fi
exit $failed
