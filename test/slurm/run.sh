#!/bin/sh
# Programs of test/mpi that Slurm starts, without mpirun: `srun --mpi=pmix` on a cluster of two simulated nodes (cluster.sh). Prints one line
# PASS, FAIL or SKIP per run. No --mca reaches a program that srun starts: parameters come from the environment, BTLs are Open MPI's own choice.
#
#   OVERLAP_BUILD    where the programs are built (in test-mpi) and the cluster writes (in slurm)
#   OVERLAP_PREFIX   a private installation (with env.sh)
#   PML=ob1          run on another PML
# SPDX-License-Identifier: BSD-3-Clause
set -u
level=slurm here=$(cd "$(dirname "$0")/../mpi" && pwd)
nodes=$here/../support/nodes/nodes.sh
work=${OVERLAP_BUILD:?a build folder}/slurm
skip() { echo "SKIP slurm: $*"; exit 0; }

[ "$(id -u)" = 0 ] || skip "two nodes: needs root"
for command in slurmctld slurmd srun munged; do
    command -v $command >/dev/null || skip "$command is not installed"
done
. "$here/level.sh"
trap 'cluster_down; rm -rf "$shared_memory"' EXIT
. "$here/../slurm/cluster.sh"
cluster_up || skip "$cluster_problem"
$in_hub srun --mpi=list 2>&1 | grep -q pmix || skip "this srun has no --mpi=pmix"
# Each node has a /dev/shm and a folder for temporary files of its own.
unset OMPI_MCA_btl_vader_backing_directory TMPDIR
export OMPI_MCA_btl_tcp_if_include=eth0 OVERLAP_TEST_SECONDS=1 OVERLAP_TEST_BARRIERS=2000 OVERLAP_TEST_BOARD="$build"

# started NAME NODES RANKS "PARAMETER=VALUE ..." COMMAND...
started() {
    name=$1 from=$2 tasks=$3 parameters=$4
    shift 4
    log=$work/$(echo "$name" | tr ' ,=/' '____').log
    (for each in $parameters; do export "OMPI_MCA_$each"; done
     within 60 "$name" "$log" $in_hub srun -Q --mpi=pmix -N "$from" -n "$tasks" --distribution=cyclic --overcommit \
         --kill-on-bad-exit=1 "$@")
}

# matrix: rows "what | nodes | ranks | programs | parameters" from the input
matrix() {
    while IFS='|' read -r what on ranks names parameters; do
        what=$(echo $what) on=$(echo $on) ranks=$(echo $ranks)  # without the blanks of the table
        for program in $names; do
            has "$program" || continue
            started "$program on $on node(s), $ranks ranks${what:+, $what}" "$on" "$ranks" "$parameters" "$build/$program"
            result "$name" $? "$log"
        done
    done
}

matrix <<'END'
               | 2 | 4 | completion datatypes matching pt2pt random end end_comms |
               | 1 | 2 | pt2pt random threads                                     |
progress       | 1 | 4 | pt2pt random                                             | common_overlap_progress=on
END
if [ "$pml" = speculative ]; then
    matrix <<'END'
one-sided      | 2 | 4 | rma_data rma_epochs rma_random                           |
END
    [ ! -f "$prefix/lib/openmpi/mca_btl_ring.so" ] || matrix <<'END'
device, progress | 1 | 4 | pt2pt random rma_random                                | btl=ring,self btl_ring_fabric=soft common_overlap_progress=on
END
    [ ! -f "$prefix/lib/openmpi/mca_coll_mq.so" ] || matrix <<'END'
coll/mq        | 2 | 4 | coll_barriers coll_data                                  | coll_mq_priority=100
coll/mq, progress | 2 | 4 | coll_barriers coll_data                               | coll_mq_priority=100 common_overlap_progress=on
END
fi

# No thread copies on processors that are in sight and not granted; a node of the cluster has one.
if [ "$pml" = speculative ]; then
    cc -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -o "$work/many_processors.so" "$here/../slurm/many_processors.c" || exit 1
    shown="LD_PRELOAD=$work/many_processors.so HWLOC_THISSYSTEM=1"
    export HWLOC_SYNTHETIC="numa:1 core:8 pu:1"
    started "processors that are not granted" 1 2 common_overlap_report=1 env -u OMP_NUM_THREADS $shown "$build/pt2pt" &&
        grep -q 'inside MPI calls only: the node has no core to spare' "$log"
    result "$name are not spare" $? "$log"
    started "processors that may be anybody's" 1 2 common_overlap_report=1 env -u SLURM_CPUS_ON_NODE -u OMP_NUM_THREADS $shown "$build/pt2pt" &&
        grep -q 'by a thread of each process: the node has a core to spare' "$log"
    result "$name are" $? "$log"
    unset HWLOC_SYNTHETIC
fi

# A step that ends in the middle ends at once.
for how in abort kill; do
    began=$(date +%s)
    started "$how in the middle" 2 4 "" "$build/abort" $how
    status=$?
    took=$(($(date +%s) - began))
    [ $status -ne 0 ] && [ $status -ne 124 ] && [ $took -lt 30 ] && grep -q 'in the middle' "$log"
    result "$name ends the step" $? "$log"
done

# What a user ends with scancel is gone, too: the job is found by its name.
(started "forever" 2 4 "common_overlap_progress=on" --job-name=cancelled "$build/forever" 50; exit $?) &
job=$!
for moment in $(seq 100); do
    [ "$($in_hub squeue -h -t running -n cancelled -o %i)" = "" ] || break
    sleep 0.1
done
sleep 2
$in_hub scancel -n cancelled
wait $job
status=$?
[ $status -ne 0 ] && [ $status -ne 124 ]
result "scancel ends the job" $? "$work/forever.log"

# Files that jobs left in the nodes' /dev/shm, and processes that they left there.
left=$(timeout 30 $in_hub srun -Q --mpi=none -N 2 -n 2 sh -c 'find /dev/shm -mindepth 1; ps -e -o comm= | grep -E "overlap|progressd|forever|abort"; :' 2>&1)
if [ -z "$left" ]; then pass "nothing is left on the nodes"; else fail "nothing is left on the nodes:" $left; fi
exit $failed
