#!/bin/sh
# Bad input: each kind ends with one clear message or MPI error code, or is got over; nothing is left behind.
# Prints "PASS name", "FAIL name" or "SKIP name: reason" per case.
#
#   OVERLAP_BUILD   a build folder; programs and logs go to bad_input/ in it
#   OVERLAP_PREFIX  a private installation with env.sh
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
prefix=${OVERLAP_PREFIX:?a private installation}
work=${OVERLAP_BUILD:?a build folder}/bad_input
mkdir -p "$work" || exit 1
# A name for this run that its processes carry on their command lines.
programs=$work/run-$$
segments=$(mktemp -d /dev/shm/overlap-bad-XXXXXX) && mkdir "$programs" || exit 1
trap 'rm -rf "$segments" "$programs"' EXIT
failed=0

# shellcheck source=/dev/null
. "$prefix/env.sh" || exit 1
unset OMPI_MCA_pml
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_backing_directory="$segments"

pass() { echo "PASS bad input: $1"; }
fail() {
    echo "FAIL bad input: $1: $2"
    # Of a crash, who crashed and where: the end of the log alone does not show it.
    grep -hE -A 8 'received signal|Signal: |Segmentation fault' "$log" | head -n 40 | sed 's/^/    /'
    echo "exit status $status; end of $log:" >&2
    tail -n 25 "$log" >&2
    failed=1
}

# ended LIMIT_S: has $job ended within that time?
ended() { timeout "$1" tail -s 0.05 -f /dev/null --pid="$job"; }

# launch LIMIT_S ARGUMENT...: mpirun; sets log and status.
# Open MPI 4.1's mpirun now and then loses a help message that several ranks send it at once, and says so; or, at its end, when its
# processes have gone, it crashes itself (it says so with its own process number) or waits for itself for ever in
# PMIx_server_finalize: try again then.
launch() {
    limit=$1
    shift
    log=$work/log
    for attempt in 1 2 3; do
        mpirun "$@" >"$log" 2>&1 </dev/null &
        job=$! launcher=well
        if ended "$limit"; then
            wait "$job"
            status=$?
            ! grep -qE ":0*$job\] \*\*\* Process received signal" "$log" || launcher=crashed
        else
            pgrep -f "^$programs/" >/dev/null || launcher=waits
            kill "$job"
            ended 5 || kill -9 "$job"
            wait "$job" 2>/dev/null
            status=124
        fi
        [ $launcher = well ] || rm -rf "${segments:?}"/*
        [ $launcher != well ] || grep -qE 'ORTE_ERROR_LOG: Data unpack .*show_help' "$log" || break
    done
}

# judge NAME ok|error TEXT...: the exit status, texts that the output must hold (extended regular expressions; a leading "!" forbids
# one, "1!" wants it in one line exactly), and nothing left behind.
judge() {
    name=$1 wanted=$2 complaint=
    shift 2
    case $wanted:$status in
        *:124 | *:137) complaint="did not end" ;;
        *:139 | *:134) complaint="crashed" ;;
        ok:0) ;;
        ok:*) complaint="should have worked" ;;
        error:0) complaint="should have failed" ;;
    esac
    ! grep -qE 'Signal: |Segmentation fault' "$log" || complaint="crashed"
    for text in "$@"; do
        case $text in
            !*) ! grep -qE -e "${text#!}" "$log" || complaint="${complaint:-says: ${text#!}}" ;;
            1!*) [ "$(grep -cE -e "${text#1!}" "$log")" = 1 ] || complaint="${complaint:-does not say once: ${text#1!}}" ;;
            *) grep -qE -e "$text" "$log" || complaint="${complaint:-does not say: $text}" ;;
        esac
    done
    left=$(find "$segments" -mindepth 1)
    if [ -n "$left" ]; then
        complaint="${complaint:-left behind: $left}"
        rm -rf "${segments:?}"/*
    fi
    # Killed processes may take a moment to go.
    for moment in 1 2 3 4 5 6; do
        left=$(pgrep -f "^$programs/" | tr '\n' ' ')
        [ -n "$left" ] || break
        sleep 0.5
    done
    [ -z "$left" ] || complaint="${complaint:-processes left: $left}"
    if [ -z "$complaint" ]; then pass "$name"; else fail "$name" "$complaint"; fi
}

for program in exchange arguments spawn epoch; do
    mpicc -std=gnu11 -O1 -Wall -Wextra -Werror -o "$programs/$program" "$here/bad/$program.c" || { echo "FAIL bad input: compile $program"; exit 1; }
done
for shim in refuse_cma other_version device_memory other_architecture refuse_memory; do
    cc -std=gnu11 -O1 -fexceptions -Wall -Wextra -Werror -shared -fPIC -o "$programs/$shim.so" "$here/bad/$shim.c" -ldl || { echo "FAIL bad input: compile $shim"; exit 1; }
done
exchange=$programs/exchange
ours="--mca pml speculative"
right="all bytes right"

# Tunables. Words of $ours are meant to be split.
# shellcheck disable=SC2086
{
    tunable=pml_speculative_fragment_size
    launch 30 -n 2 $ours --mca $tunable 1 "$exchange" 4
    judge "tunable too small" error "1!$tunable is 1, too small; allowed: 1024 \.\. 67108864 bytes" "!$right"
    launch 30 -n 2 $ours --mca pml_speculative_adaptation_threshold 101 "$exchange" 4
    judge "tunable too large" error "1!pml_speculative_adaptation_threshold is 101, too large; allowed: 0 \.\. 100 percent" "!$right"
    launch 30 -n 2 $ours --mca $tunable much "$exchange" 4
    judge "tunable that is no number" error "1!$tunable is .much., which is no number; allowed: 1024 \.\. 67108864 bytes" "!$right"
    launch 30 -n 2 -x OMPI_MCA_$tunable=-1 $ours "$exchange" 4
    judge "tunable below zero" error "1!$tunable is -1, too small; allowed: 1024 \.\. 67108864 bytes" "!$right"
    launch 30 -n 2 $ours --mca pml_speculative_hazard_control eager "$exchange" 4
    judge "tunable that is no choice" error "!invalid value" "!$right" \
        "1!pml_speculative_hazard_control is .eager., which is no choice; allowed: envelope_sequence \| eager_flag"
    launch 30 -n 2 $ours -x OMPI_MCA_pml_speculative_speculaton=0 "$exchange" 4
    judge "unknown tunable" ok "1!no tunable pml_speculative_speculaton" "1!Did you mean pml_speculative_speculation\?" "$right"
    launch 30 -n 2 $ours -x OMPI_MCA_pml_speculative_xyz=0 "$exchange" 4
    judge "unknown tunable, far from any" ok "1!no tunable pml_speculative_xyz" "$right"
}

# Peers. A setting of one rank only goes by env, behind mpirun's own.
one_rank() { echo "-n 1 env $1 $exchange ${2:-4}"; }
# shellcheck disable=SC2046,SC2086
{
    launch 40 $(one_rank OMPI_MCA_pml=speculative) : $(one_rank OMPI_MCA_pml=ob1)
    judge "rank 0 on speculative, rank 1 on ob1" error "speculative" "ob1" "!$right"
    launch 40 $(one_rank OMPI_MCA_pml=ob1) : $(one_rank OMPI_MCA_pml=speculative)
    judge "rank 0 on ob1, rank 1 on speculative" error "speculative" "ob1" "!$right"
    launch 40 $(one_rank OMPI_MCA_pml=speculative) : $(one_rank OMPI_MCA_pml=speculative) : $(one_rank OMPI_MCA_pml=ob1)
    judge "rank 2 of 3 on ob1" error "speculative" "ob1" "!$right"

    # Another job's PML is its own affair.
    launch 60 -n 2 $ours "$programs/spawn" OMPI_MCA_pml=speculative
    judge "spawned processes on speculative" ok "spawned processes: done"
    launch 60 -n 2 $ours "$programs/spawn" OMPI_MCA_pml=ob1
    judge "spawned processes on ob1" error "1!job that runs another PML" "Process: +rank 0 of job 2 on " "Its PML: +ob1" "!spawned processes: done"
    launch 60 -n 2 --mca pml ob1 "$programs/spawn" OMPI_MCA_pml=speculative
    judge "spawned processes on speculative, their parents on ob1" error "1!job that runs another PML" "Process: +rank 0 of job 1 on " \
        "Its PML: +ob1" "!spawned processes: done"

    for btl in vader tcp; do
        alike="--mca pml speculative --mca btl self,$btl"
        launch 40 $alike $(one_rank OMPI_MCA_pml_speculative_speculation=0 40) : $(one_rank OMPI_MCA_pml_speculative_speculation=1 40)
        judge "speculation off on rank 0 only, $btl" ok "$right"
        launch 40 $alike $(one_rank OMPI_MCA_pml_speculative_speculation=1 40) : $(one_rank OMPI_MCA_pml_speculative_speculation=0 40)
        judge "speculation off on rank 1 only, $btl" ok "$right"
        for hazards in "eager_flag envelope_sequence" "envelope_sequence eager_flag"; do
            first=${hazards% *} second=${hazards#* }
            launch 40 $alike $(one_rank OMPI_MCA_pml_speculative_hazard_control=$first 40) : \
                $(one_rank OMPI_MCA_pml_speculative_hazard_control=$second 40)
            name="hazard control $first on rank 0, $second on rank 1, $btl"
            # Either it works or it is refused in order; never wrong bytes, never a hang.
            if [ $status = 0 ]; then
                judge "$name" ok "$right"
            elif [ $status = 17 ]; then  # MPI_ERR_INTERN; mpirun loses the text of such an end now and then
                judge "$name" error "!terminate called" "!bytes wrong"
            else
                judge "$name" error "hazard_control" "!bytes wrong"
            fi
        done
        launch 40 $alike $(one_rank OMPI_MCA_pml_speculative_eager_limit=100 40) : $(one_rank OMPI_MCA_pml_speculative_eager_limit=16384 40)
        judge "different eager limits, $btl" ok "$right"
    done
}

# shellcheck disable=SC2086
{
    launch 30 -n 2 $ours --mca btl self "$exchange" 4
    judge "no BTL to the peer" error "1!found no BTL that connects" "!$right"

    # A kernel that forbids cross-memory attach. vader reports each refusal itself; we speak only when asked to.
    said="pml/speculative: A (read|write) of memory .* was refused"
    launch 40 -n 2 -x LD_PRELOAD="$programs/refuse_cma.so" $ours --mca btl self,vader "$exchange" 30
    judge "CMA refused: falls back, silent" ok "$right" "!pml/speculative"
    launch 40 -n 2 --tag-output -x LD_PRELOAD="$programs/refuse_cma.so" $ours --mca btl self,vader --mca pml_speculative_verbose 1 "$exchange" 30
    judge "CMA refused: says so at verbosity 1" ok "$right" "$said"
    for rank in 0 1; do
        count=$(grep -F "[1,$rank]" "$log" | grep -cE "$said")
        if [ "$count" -le 1 ]; then
            pass "CMA refused: rank $rank says it at most once"
        else
            fail "CMA refused: rank $rank says it at most once" "$count times"
        fi
    done
    launch 40 -n 2 $ours --mca btl self,vader --mca btl_vader_single_copy_mechanism none "$exchange" 30
    judge "CMA switched off" ok "$right"
    # One side only.
    launch 40 $ours --mca btl self,vader -n 1 env LD_PRELOAD="$programs/refuse_cma.so" "$exchange" 30 : -n 1 "$exchange" 30
    judge "CMA refused to one rank" ok "$right"

    launch 40 -n 2 $ours "$programs/arguments"
    judge "invalid arguments and truncation, vader" ok "arguments: done" "!^wrong: "
    launch 40 -n 2 $ours --mca btl self,tcp "$programs/arguments"
    judge "invalid arguments and truncation, tcp" ok "arguments: done" "!^wrong: "

    launch 30 -n 2 -x LD_PRELOAD="$programs/other_version.so" $ours "$exchange" 4
    judge "another version of Open MPI" error "1!pml/speculative is not used" "4\.1\.99" "!$right"

    # Declined: what would be copied or sent wrong.
    launch 30 -n 2 -x LD_PRELOAD="$programs/device_memory.so" $ours "$exchange" 4
    judge "buffers in device memory" error "1!pml/speculative does not take messages from or into the memory of an accelerator" "!$right"
    launch 30 -n 2 -x LD_PRELOAD="$programs/other_architecture.so" $ours "$exchange" 4
    judge "peers of another architecture" error "1!pml/speculative cannot exchange messages with a process of another architecture" "!$right"

    # Memory ends: an MPI call returns an error, or a message says why the job ends.
    for btl in vader tcp; do
        for allowed in 3 12 24 33 36 42 48; do
            launch 30 -n 2 -x LD_PRELOAD="$programs/refuse_memory.so" -x ALLOWED_NEW=$allowed $ours --mca btl self,$btl "$exchange" 6
            name="no memory after $allowed allocations, $btl"
            if [ $status = 0 ]; then
                judge "$name" ok "$right"
            elif [ $status = 17 ]; then  # MPI_ERR_INTERN; mpirun loses the text of such an end now and then
                judge "$name" error "!terminate called" "!bytes wrong"
            else
                judge "$name" error "has run out of memory while it handled messages|MPI_ERR_INTERN" "!terminate called" "!bytes wrong"
            fi
        done
    done
}

# A rank dies inside an epoch: the job ends, and nothing is left.
if [ -f "$prefix/lib/openmpi/mca_osc_newrma.so" ]; then
    for btl in vader tcp; do
        for kind in lock flush fence exposure; do
            # shellcheck disable=SC2086
            launch 40 -n 2 $ours --mca osc newrma --mca btl self,$btl "$programs/epoch" $kind
            ! grep -q 'exited on signal 9' "$log" || status=9  # mpirun's 137 is not that of a time limit
            judge "rank 1 dies in an epoch: $kind, $btl" error "in the middle" "!epochs done"
        done
    done
    # Processes with different parameters: all take the same component, or each would wait for the other in a window of its own.
    live="$programs/epoch lock live"
    # shellcheck disable=SC2086
    {
        launch 40 $ours --mca osc_newrma_verbose 1 -n 1 -x OMPI_MCA_osc=^newrma $live : -n 1 $live
        judge "a rank without osc/newrma" ok "epochs done" "takes no windows: rank 0 of MPI_COMM_WORLD does not have it\\. Give all"
        launch 40 $ours -n 1 $live : -n 1 -x OMPI_MCA_osc_newrma_priority=5 $live
        judge "a rank with another priority of osc/newrma" ok "epochs done"
        launch 40 -n 1 --mca pml ob1 --mca osc newrma $live
        judge "osc/newrma alone, and another PML" error "takes no windows: it works beside pml/speculative only\\. Add --mca pml"
        launch 40 -n 2 $ours --mca osc_newrma_priority abc $live
        judge "osc/newrma with a wrong priority" ok "epochs done" "osc/newrma is not used; what else --mca osc allows takes its place"
    }
else
    echo "SKIP bad input: a rank dies in an epoch, lacks osc/newrma: there is no mca_osc_newrma.so in $prefix/lib/openmpi"
fi
# Out of registered memory: test/ring/faults.sh, where a BTL registers.
exit $failed
