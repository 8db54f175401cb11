#!/bin/sh
# Run the programs of test/mpi that are about collectives over a matrix of configurations (level.sh there): one line PASS, FAIL or SKIP per run.
# SPDX-License-Identifier: BSD-3-Clause
set -u
level=coll here=$(cd "$(dirname "$0")/../mpi" && pwd)
. "$here/level.sh"

# Collectives. Every other program calls barriers, too.
if [ "$pml" != speculative ]; then
    :
elif [ ! -f "$prefix/lib/openmpi/mca_coll_mq.so" ]; then
    echo "SKIP coll: coll_barriers and others over coll/mq: there is no mca_coll_mq.so in $prefix/lib/openmpi"
else
    matrix <<'END'
coll/mq              | 2 4   | - tcp,self              | coll_barriers coll_comms coll_data coll_threads  | 2 | --mca coll_mq_priority 100
coll/mq              | 3 7   | vader,self tcp,self     | coll_barriers coll_comms coll_data               | 2 | --mca coll_mq_priority 100
coll/mq              | 4     | vader,self tcp,self     | coll_plans                                       | 1 | --mca coll_mq_priority 100
coll/mq, steps       | 4     | vader,self              | coll_plans                                       | 1 | --mca coll_mq_priority 100 --mca coll_mq_straight_max 0
coll/mq, steps       | 3 4 7 | vader,self tcp,self     | coll_barriers coll_data                          | 2 | --mca coll_mq_priority 100 --mca coll_mq_straight_max 0
coll/mq, radix 3     | 5     | vader,self              | coll_barriers coll_comms                         | 2 | --mca coll_mq_priority 100 --mca coll_mq_radix 3 --mca coll_mq_straight_max 0
coll/mq, window 4    | 3     | vader,self              | coll_barriers coll_data coll_threads             | 2 | --mca coll_mq_priority 100 --mca coll_mq_window 4 --mca coll_mq_straight_max 0
coll/mq, little room | 4     | vader,self tcp,self     | coll_barriers coll_comms coll_data               | 2 | --mca coll_mq_priority 100 --mca btl_vader_free_list_max 16 --mca btl_tcp_free_list_max 16
coll/mq, two links   | 2     | tcp,self                | coll_barriers coll_data                          | 1 | --mca coll_mq_priority 100 --mca btl_tcp_links 2
coll/mq, progress    | 2 4   | tcp,self vader,self     | coll_barriers coll_comms coll_data coll_threads coll_progress | 2 | --mca coll_mq_priority 100 --mca common_overlap_progress on
coll/mq, progress    | 3 5   | vader,self              | coll_progress                                    | 2 | --mca coll_mq_priority 100 --mca common_overlap_progress on
coll/mq, newrma      | 4     | vader,self              | coll_barriers                                    | 1 | --mca coll_mq_priority 100 --mca osc newrma
coll/mq, no blocking | 2     | vader,self              | coll_barriers pt2pt                              | 1 | --mca coll_mq_priority 20
coll/mq              | 2 4   | vader,tcp,self tcp,self | comms                                            | 2 | --mca coll_mq_priority 100
coll/mq              | 2     | vader,self              | $general                                         | 1 | --mca coll_mq_priority 100
Open MPI's own       | 2     | vader,self              | coll_barriers coll_comms coll_data coll_threads  | 1 |
END
fi
if [ "$pml" = speculative ] && [ -f "$prefix/lib/openmpi/mca_coll_mq.so" ]; then
    export OMPI_MCA_coll_mq_priority=100  # for those that are spawned
    matrix <<'END'
coll/mq, spawn       | 2 3   | vader,tcp,self tcp,self | coll_spawn                                       | 1 |
coll/mq, spawn, progress | 2 | vader,tcp,self          | coll_spawn                                       | 1 | --mca common_overlap_progress on
END
    unset OMPI_MCA_coll_mq_priority
fi
check_shared_memory
exit $failed
