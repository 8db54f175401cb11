#!/bin/sh
# Run the MPI programs of this folder over a matrix of configurations (level.sh): one line PASS, FAIL or SKIP per run.
# SPDX-License-Identifier: BSD-3-Clause
set -u
level=mpi here=$(cd "$(dirname "$0")" && pwd)
. "$here/level.sh"

# vader does not reach the processes of another job (comms). Default command line: what users run, no --mca btl at all. Little room: what
# BTLs cannot take waits with its request. coll/adapt: collectives whose completion callbacks communicate under a mutex of their own. Two
# links: large messages are striped, each share ends with a DONE of its own. No last meeting: MPI_Finalize makes no progress at all. osc/pt2pt,
# which Debian leaves out, stands on the PML alone. Without the C library's thread cache what is used behind its end damages the heap at once.
matrix <<'END'
#                    | np    | BTLs                    | programs                                         | s | arguments
                     | 2 4   | vader,self tcp,self     | $general                                         | 3 |
                     | 2     | vader,self tcp,self     | speculation chained                              | 3 |
                     | 2 4   | vader,self tcp,self     | progress                                         | 3 |
                     | 2     | tcp,self                | cancel_local                                     | 3 |
                     | 2 4   | vader,tcp,self tcp,self | comms                                            | 3 |
                     | 1 3 8 | vader,self tcp,self     | random                                           | 1 |
default command line | 2     | -                       | pt2pt completion random send_status back_pressure | 2 | --mca pml_speculative_shared_memory auto
little room          | 2     | vader,self tcp,self     | back_pressure completion random                  | 2 | --mca btl_vader_free_list_max 16 --mca btl_tcp_free_list_max 16
no last meeting      | 2 4   | vader,self tcp,self     | end_requests                                     | 2 | -x MALLOC_PERTURB_=165 -x GLIBC_TUNABLES=glibc.malloc.tcache_count=0 --mca async_mpi_finalize 1
coll/adapt           | 2 3   | vader,self              | threads_flood                                    | 2 | --mca coll_adapt_priority 100
two links            | 2     | tcp,self                | pt2pt completion random threads probe_cancel cancel_local progress | 2 | --mca btl_tcp_links 2
osc/pt2pt            | 2 3   | vader,self              | onesided                                         | 2 | --mca osc pt2pt
no single copy       | 2     | vader,self              | $settings                                        | 1 | --mca btl_vader_single_copy_mechanism none
END
# One-sided communication. [stricter]: cases that the standard asks for and osc/pt2pt of 4.1 fails. It declines MPI_THREAD_MULTIPLE, and at
# more than two ranks random never ends there (MPI_Win_unlock, several targets locked); osc/rdma dies in MPI_Compare_and_swap. rma_errors:
# only osc/newrma names the errors as MPI does.
rma="rma_data rma_ops rma_types rma_epochs rma_locks rma_windows rma_random"
cases='~[stricter]'
matrix <<'END'
osc/pt2pt            | 2     | vader,self              | $rma                                             | 2 | --mca osc pt2pt,sm
osc/rdma             | 2 4   | vader,self              | rma_threads                                      | 2 | --mca osc rdma,sm
END
cases=
if [ "$pml" != speculative ]; then
    :
elif [ ! -f "$prefix/lib/openmpi/mca_osc_newrma.so" ]; then
    echo "SKIP mpi: $rma rma_threads rma_errors $nonblocking over osc/newrma: there is no mca_osc_newrma.so in $prefix/lib/openmpi"
else
    if [ ! -f "$prefix/include/mpix_overlap.h" ]; then
        echo "SKIP mpi: $nonblocking over osc/newrma: there is no mpix_overlap.h in $prefix/include"
        nonblocking=
    fi
    matrix <<'END'
osc/newrma           | 2     | - tcp,self              | $rma rma_threads rma_errors                      | 2 |
osc/newrma           | 4     | - tcp,self              | rma_epochs rma_locks rma_lock_order rma_lock_random rma_random rma_threads rma_errors | 2 |
osc/newrma           | 4     | tcp,self                | rma_data rma_ops rma_types rma_windows           | 2 |
osc/newrma           | 3 8   | vader,self              | rma_epochs rma_locks rma_lock_order rma_random   | 2 | --mca osc newrma
osc/newrma           | 2 3   | vader,self tcp,self     | rma_asked rma_gaps rma_rows                      | 1 | --mca osc newrma
osc/newrma, asked only | 2 3 | vader,self              | rma_asked rma_gaps rma_rows                      | 1 | --mca osc newrma --mca btl_vader_single_copy_mechanism none
osc/newrma, asked, progress | 2 | vader,self              | rma_asked rma_gaps rma_rows                      | 1 | --mca osc newrma --mca common_overlap_progress on
osc/newrma, no thread | 2 3  | vader,self              | rma_passive                                      | 1 | --mca osc newrma --mca common_overlap_progress off
osc/newrma           | 2     | vader,self              | rma_refused rma_sandboxed rma_sandboxed_owner rma_keys | 1 | --mca osc newrma
osc/newrma, copies timed | 2 | vader,self              | rma_data rma_ops rma_epochs rma_random rma_fences rma_refused rma_sandboxed | 1 | --mca osc newrma --mca mpi_yield_when_idle 0
osc/newrma, sent     | 2 3   | vader,self              | rma_data rma_ops rma_epochs rma_random rma_fences | 1 | --mca osc newrma --mca osc_newrma_active_copies messages
osc/newrma, not sent | 3     | vader,self              | rma_fences                                       | 1 | --mca osc newrma --mca osc_newrma_active_copies kernel
osc/newrma           | 2 3   | vader,self tcp,self     | rma_limits                                       | 2 | --mca osc newrma
osc/newrma, copied   | 2     | vader,self              | rma_data rma_types rma_locks rma_random          | 1 | --mca osc newrma --mca btl_vader_single_copy_mechanism none
osc/newrma, emulated | 2     | vader,self              | rma_data rma_types rma_locks rma_random          | 1 | --mca osc newrma --mca btl_vader_single_copy_mechanism emulated
osc/newrma, two links | 2    | tcp,self                | rma_data rma_locks rma_random                    | 1 | --mca osc newrma --mca btl_tcp_links 2
osc/newrma, 512 bytes | 2    | tcp,self                | rma_ops rma_random                               | 1 | --mca osc newrma --mca btl_tcp_eager_limit 512 --mca btl_tcp_max_send_size 512
osc/newrma, no thread | 2 3  | tcp,self                | rma_locks rma_lock_order rma_lock_random rma_epochs | 1 | --mca osc newrma --mca common_overlap_progress off
osc/newrma, no thread | 3    | tcp,self                | rma_deferred                                     | 1 | --mca osc newrma --mca common_overlap_progress off
osc/newrma, copied    | 3    | vader,self              | rma_deferred                                     | 1 | --mca osc newrma --mca common_overlap_progress off --mca btl_vader_single_copy_mechanism none
osc/newrma, progress | 2     | tcp,self vader,self     | rma_progress rma_epochs rma_locks rma_random rma_threads | 2 | --mca osc newrma --mca common_overlap_progress on
osc/newrma           | 2 3 4 | - tcp,self              | $nonblocking                                     | 2 | --mca osc newrma
END
fi
# On another PML the names mean nothing.
[ "$pml" != speculative ] || matrix <<'END'
no speculation       | 2     | vader,self              | $settings                                        | 1 | --mca pml_speculative_speculation 0
eager_flag           | 2     | vader,self              | $settings                                        | 1 | --mca pml_speculative_hazard_control eager_flag
eager_flag           | 2     | tcp,self                | probe_cancel cancel_local speculation            | 1 | --mca pml_speculative_hazard_control eager_flag --mca common_overlap_progress off
cancel by the sender | 2     | tcp,self                | probe_cancel progress                            | 1 | --mca pml_speculative_cancel sender
progress off         | 2     | tcp,self                | $settings chained cancel_local progress          | 1 | --mca common_overlap_progress off
progress on          | 2     | vader,self              | $general chained cancel_local progress           | 2 | --mca common_overlap_progress on
progress on, no RTRs | 2 4   | vader,self              | $settings progress back_pressure                 | 2 | --mca common_overlap_progress on --mca pml_speculative_shared_memory auto
progress on, default | 2     | -                       | progress pt2pt completion                        | 1 | --mca common_overlap_progress on --mca pml_speculative_shared_memory auto
progress on, windows | 2     | vader,self              | onesided                                         | 2 | --mca common_overlap_progress on --mca osc rdma,sm
progress on, windows | 2     | vader,self tcp,self vader,tcp,self | foreign_windows                                  | 2 | --mca common_overlap_progress on --mca osc_newrma_priority 0 --mca pml_speculative_shared_memory auto
progress on, no osc/newrma | 2 | vader,self tcp,self vader,tcp,self | foreign_windows                                | 2 | --mca common_overlap_progress on --mca osc ^newrma --mca pml_speculative_shared_memory auto
progress on, spawn   | 2     | vader,tcp,self          | comms                                            | 2 | --mca common_overlap_progress on
progress on, copied  | 2     | vader,self              | $settings progress                               | 1 | --mca common_overlap_progress on --mca btl_vader_single_copy_mechanism none
without RTRs         | 2     | vader,self              | speculation cancel_local blocking_copies eager_reads exchange | 1 | --mca pml_speculative_shared_memory auto
copies measured      | 2     | -                       | blocking_copies eager_reads eager_probes exchange threads threads_flood completion back_pressure | 1 | --mca pml_speculative_shared_memory auto --mca mpi_yield_when_idle 0
copies by reads      | 2     | vader,self              | blocking_copies eager_reads eager_probes $general             | 1 | --mca pml_speculative_shared_memory auto --mca pml_speculative_blocking_copy read --mca mpi_yield_when_idle 0
copies by fragments  | 2     | -                       | blocking_copies eager_reads exchange $settings datatypes threads threads_flood send_status | 1 | --mca pml_speculative_shared_memory auto --mca pml_speculative_blocking_copy fragments
copies by reads, progress | 2 | vader,self             | eager_reads eager_probes pt2pt threads           | 1 | --mca pml_speculative_shared_memory auto --mca pml_speculative_blocking_copy read --mca mpi_yield_when_idle 0 --mca common_overlap_progress on
copies by reads, no single copy | 2 | vader,self       | eager_reads eager_probes                         | 1 | --mca pml_speculative_shared_memory auto --mca pml_speculative_blocking_copy read --mca mpi_yield_when_idle 0 --mca btl_vader_single_copy_mechanism none
copies by fragments  | 3 4   | vader,self              | random matching blocking_copies                                | 1 | --mca pml_speculative_shared_memory auto --mca pml_speculative_blocking_copy fragments
copies by fragments, progress | 2 | vader,self         | blocking_copies progress random                  | 1 | --mca pml_speculative_shared_memory auto --mca pml_speculative_blocking_copy fragments --mca common_overlap_progress on
copies by fragments, little room | 2 3 | vader,self     | random back_pressure                             | 1 | --mca pml_speculative_shared_memory auto --mca pml_speculative_blocking_copy fragments --mca btl_vader_free_list_max 16
room for fragments   | 3 4   | - tcp,self              | fragment_room                                    | 1 | --mca pml_speculative_shared_memory auto
room for fragments, RTRs | 3 | vader,self              | fragment_room                                    | 1 |
room for fragments, no single copy | 3 4 | vader,self  | fragment_room                                    | 1 | --mca pml_speculative_shared_memory auto --mca btl_vader_single_copy_mechanism none
room for fragments, progress | 3 | vader,self          | fragment_room                                    | 1 | --mca pml_speculative_shared_memory auto --mca common_overlap_progress on
room for fragments, few of them | 3 | vader,self       | fragment_room                                    | 1 | --mca pml_speculative_shared_memory auto --mca btl_vader_free_list_max 64 --mca btl_vader_free_list_num 8
no adaptation        | 2     | vader,self              | $settings                                        | 1 | --mca pml_speculative_adaptation 0
eager_limit 64       | 2     | vader,self              | $settings                                        | 1 | --mca pml_speculative_eager_limit 64
no meeting in MPI_Init | 2   | tcp,self                | early_sends                                      | 1 | --mca async_mpi_init 1
END
! has pt2pt || run "pt2pt self sends np 1" 60 1 vader,self "$build/pt2pt" "[short]"
# The thread that the benchmarks compare with, on Open MPI's own PML too.
if has polled && BENCH_CXXFLAGS="-O1 -Wall -Wextra -Werror" sh "$here/../../examples/bench/build.sh" "$build" progress_thread >/dev/null; then
    for each in ob1 $pml; do
        run "polled tcp,self np 2, $each" 90 2 tcp,self --mca pml "$each" --mca common_overlap_progress off \
            -x LD_PRELOAD="$build/libprogressthread.so" "$build/polled"
    done
else
    fail "polled: examples/bench/build.sh progress_thread"
fi
! has idle_calls || OVERLAP_BUILD=${build%/test-mpi} PML=$pml sh "$here/system_calls.sh" || failed=1

# Two simulated nodes with two ranks each: vader and tcp in one job.
nodes=$here/../support/nodes/nodes.sh
state=$build/nodes
if [ "$(id -u)" -ne 0 ]; then
    echo "SKIP mpi: two nodes: needs root"
elif ! SLOTS=2 NODES_OWNER=$$ bash "$nodes" up "$state" 2 >"$build/nodes.log" 2>&1; then
    echo "SKIP mpi: two nodes: $(tail -n 1 "$build/nodes.log")"
else
    # one-sided: each copy within a node waits for what goes to the other one
    # Locks of the other node's ranks go by messages, on one node never. [host]: steps that ranks of one host take together.
    locks="rma_locks rma_lock_order rma_lock_random rma_threads rma_deferred"
    for each in $nonblocking; do case $each in rma_nonblocking*) locks="$locks $each" ;; esac; done
    for program in pt2pt completion matching random rma_later rma_data rma_epochs rma_random $locks; do
        has $program || continue
        case $program in
            rma_data | rma_epochs | rma_random) arguments="--mca osc_newrma_later_min 1" ;;
            *) arguments= ;;
        esac
        case $pml-$program in
            speculative-*) ;;
            *-rma_*) continue ;;
        esac
        log=$build/${program}_nodes.log
        # each node has its own private /dev/shm
        (unset OMPI_MCA_btl_vader_backing_directory TMPDIR
         OVERLAP_TEST_SECONDS=2 timeout -k 5 90 bash "$nodes" run "$state" -n 4 --mca btl vader,tcp,self $arguments -x OMPI_MCA_pml \
             -x OMPI_MCA_mca_base_component_path -x OVERLAP_TEST_SECONDS "$build/$program" '~[host]' >"$log" 2>&1 </dev/null)
        result "$program two nodes x 2, vader,tcp,self" $? "$log"
    done
    if [ "$pml" = speculative ] && [ -f "$prefix/lib/openmpi/mca_coll_mq.so" ]; then
        for settings in "common_overlap_progress auto" "common_overlap_progress on" "coll_mq_two_level 1"; do
            for program in coll_barriers coll_comms coll_data; do
                has $program || continue
                log=$build/${program}_nodes.log
                # shellcheck disable=SC2086
                (unset OMPI_MCA_btl_vader_backing_directory TMPDIR
                 OVERLAP_TEST_BARRIERS=5000 OVERLAP_TEST_BOARD=$build timeout -k 5 90 bash "$nodes" run "$state" -n 4 --mca btl vader,tcp,self \
                     --mca coll_mq_priority 100 --mca $settings -x OMPI_MCA_pml -x OMPI_MCA_mca_base_component_path -x OVERLAP_TEST_BARRIERS \
                     -x OVERLAP_TEST_BOARD "$build/$program" >"$log" 2>&1 </dev/null)
                result "$program two nodes x 2, vader,tcp,self, coll/mq, $settings" $? "$log"
            done
        done
    fi
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
# Ends of a program with the thread of common_overlap_progress, and its faults: exit status as with any other program. With one arena
# the thread and an interrupted malloc() want the same lock.
if has exits; then
    for row in static:0 outstanding:3 gone:3 beside:7 handler:7 child:0 vforked:0 fault:0 waited:0; do
        for btl in vader,self tcp,self; do
            name="exits: ${row%:*}, $btl" log=$build/exits_${row%:*}_$btl.log
            timeout -k 5 60 mpirun -n 2 --mca btl $btl --mca common_overlap_progress on --mca pml_speculative_shared_memory auto \
                -x MALLOC_ARENA_MAX=1 "$build/exits" "${row%:*}" >"$log" 2>&1 </dev/null
            status=$?
            [ $status -eq "${row#*:}" ]
            result "$name (exit status $status)" $? "$log"
        done
    done
fi
# Without a thread that knows of it a message stays outside until the next call.
if has new_connections && [ "$pml" = speculative ]; then
    for call in recv wait waitall probe; do
        run "new_connections: made in $call, tcp,self" 90 2 tcp,self "$build/new_connections" $call
    done
fi
check_shared_memory
# These have their own lines.
if [ -f "$prefix/include/mpix_overlap.h" ]; then OVERLAP_BUILD=${build%/test-mpi} sh "$here/mpix.sh" || failed=1; fi
if has progress && [ "$pml" = speculative ]; then OVERLAP_BUILD=${build%/test-mpi} sh "$here/helper.sh" || failed=1; fi
if [ -f "$here/bad_input.sh" ] && [ "$pml" = speculative ]; then sh "$here/bad_input.sh" || failed=1; fi
exit $failed
