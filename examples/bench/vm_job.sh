#!/bin/sh
# vm_job.sh PROGRAMS [PAIRS]: measure btl/ring on a real verbs device, two ranks on this host through the adapter, and print lines for
# run.py --vm (runlib/vm.py). PROGRAMS is the folder of the built benchmarks. Made for a virtual machine with Soft-RoCE (test/vm boots
# one; vm.sh beside this script does both), and useful wherever there is an RDMA device. Needs mpirun and the components in the search path.
#
# The variants take turns. Everything is short: on an emulated processor a message takes 30 to 200 us.
# SPDX-License-Identifier: BSD-3-Clause
set -u
programs=${1:?folder of the built benchmarks}
pairs=${2:-5}
device=${VM_DEVICE:-rxe0}
timeout_s=${VM_TIMEOUT_S:-60}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Room for 8 KiB in a slot, so that all sizes go eagerly, as they do in UCX.
ring="--mca pml speculative --mca btl ring,self --mca btl_ring_fabric verbs --mca btl_ring_device $device \
--mca btl_ring_slot_bytes 12288 --mca btl_ring_channel_bytes 12288"
arguments() { # VARIANT
    case $1 in
        ring) echo "$ring" ;;
        channel) echo "$ring --mca btl_ring_rings off" ;;
        copied) echo "$ring --mca btl_ring_frequent 0" ;;
        ring_ob1) echo "$ring --mca pml ob1" ;;
        # An address that is not its own gateway fails the check of the destination in UCX; the variable switches it off.
        ucx) echo "--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any -x UCX_TLS=rc_verbs,ud_verbs:aux,self \
-x UCX_NET_DEVICES=$device:1 -x UCX_UD_VERBS_ETH_DGID_CHECK=n -x UCX_LOG_LEVEL=error" ;;
    esac
}

# once BENCHMARK VARIANTS VARIANT PAIR PROGRAM ARGUMENTS... Each rank has a processor: two that spin on one take turns of 4 ms.
once() {
    name=$1 variants=$2 variant=$3 pair=$4 program=$5
    shift 5
    # shellcheck disable=SC2046  # a list of words
    timeout -k 5 "$timeout_s" mpirun --bind-to core -n 2 --mca mpi_yield_when_idle 0 $(arguments "$variant") \
        "$programs/$program" "$@" >"$work/out" 2>&1
    status=$?
    if [ $status = 0 ]; then
        sed -n "s/^row,/vm,$name,$variants,$variant,$pair,row,/p" "$work/out"
    else
        echo "failed,$name,$variant,exit code $status: $(grep -v '^row,\|^--\|^$' "$work/out" | head -n 3 | tr '\n,' '  ')"
    fi
}

# compare BENCHMARK VARIANTS PROGRAM ARGUMENTS...: variants with a + between them, the reference first
compare() {
    benchmark=$1 list=$2
    shift 2
    turn=0
    while [ $turn -lt "$pairs" ]; do
        names=$(echo "$list" | tr + ' ')
        if [ $((turn % 2)) = 1 ]; then
            backwards=
            for one in $names; do backwards="$one $backwards"; done
            names=$backwards
        fi
        for one in $names; do once "$benchmark" "$list" "$one" $turn "$@"; done
        turn=$((turn + 1))
    done
}

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
ulimit -l unlimited 2>/dev/null
echo "fact,system,$(uname -sr), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)"
echo "fact,processor,$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) of them"
echo "fact,Open MPI,$(ompi_info --version 2>/dev/null | head -n 1)"
echo "fact,device,$device $(cat "/sys/class/infiniband/$device/node_desc" 2>/dev/null)"
for variant in ring channel copied ucx; do echo "fact,variant $variant,$(arguments $variant)"; done

compare ring_latency channel+ring+ucx pingpong --sizes 8,128,1k,4k,8k --budget-ms "${VM_BUDGET_MS:-400}" --samples 60
compare ring_rate channel+ring+ucx message_rate --window 100 --budget-ms "${VM_BUDGET_MS:-400}"
compare frequent_latency copied+ring pingpong --sizes 1k,8k --budget-ms "${VM_BUDGET_MS:-400}" --samples 60
echo "fact,ended,yes"
