# Sourced: a Slurm cluster of two simulated nodes on this host, with everything it writes in $work. Needs work (a folder) and nodes (nodes.sh).
# Its controller and munge run on the host (in_hub: with a network that reaches the nodes), a slurmd in each node.
# SPDX-License-Identifier: BSD-3-Clause
node_agent=$(dirname "$nodes")/node-agent.sh
in_hub="bash $nodes hub $work/nodes"

# cluster_up: start it, and wait until both nodes are idle; sets cluster_problem where that fails. Sets SLURM_CONF for srun.
cluster_up() {
    rm -rf "$work"
    mkdir -p "$work/controller"
    SLOTS=2 NODES_OWNER=$$ bash "$nodes" up "$work/nodes" 2 >"$work/nodes.log" 2>&1 ||
        { cluster_problem=$(tail -n 1 "$work/nodes.log"); return 1; }
    set=$(cat "$work/nodes/set")
    for node in 1 2; do mkdir -p "$work/spool.ov${set}n$node"; done
    (umask 077 && head -c 128 /dev/urandom >"$work/munge.key")
    # --force: a build folder need not be as private as munge wants its folders.
    munged --force --key-file="$work/munge.key" --seed-file="$work/munge.seed" --socket="$work/munge.socket" \
        --pid-file="$work/munge.pid" --log-file="$work/munge.log" 2>>"$work/start.log"
    cluster_settings >"$work/slurm.conf"
    # A node's namespaces have no cgroup file system mounted; this one is content without.
    echo 'CgroupPlugin=cgroup/v1' >"$work/cgroup.conf"
    # The nodes share the host's /tmp, in which each would make the same folder.
    export SLURM_CONF="$work/slurm.conf" SLURM_PMIX_TMPDIR=/tmp/overlap-node
    $in_hub slurmctld -f "$SLURM_CONF" >>"$work/start.log" 2>&1
    for node in 1 2; do
        bash "$node_agent" "ov${set}n$node" slurmd -D -f "$SLURM_CONF" >"$work/slurmd.$node.out" 2>&1 &
    done
    for moment in $(seq 60); do
        [ "$(timeout 10 $in_hub sinfo -h -t idle -o %D 2>/dev/null)" != 2 ] || return 0
        sleep 0.5
    done
    cluster_problem="the nodes are not idle after 30 s: $(cat "$work/start.log" "$work"/*.out | grep -i error | tail -n 1)"
    return 1
}

cluster_settings() {
    cat <<END
ClusterName=overlap
SlurmctldHost=$(hostname -s)(10.77.$set.254)
SlurmctldPort=$((17000 + set))
SlurmdPort=$((17200 + set))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/controller
SlurmdSpoolDir=$work/spool.%n
SlurmctldPidFile=$work/controller.pid
SlurmdPidFile=$work/slurmd.%n.pid
SlurmctldLogFile=$work/controller.log
SlurmdLogFile=$work/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/linear
ReturnToService=2
KillWait=5
NodeName=ov${set}n1 NodeAddr=10.77.$set.1 CPUs=1 State=UNKNOWN
NodeName=ov${set}n2 NodeAddr=10.77.$set.2 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
}

# cluster_down: end it, also where it is half up. With the nodes go all of their processes.
cluster_down() {
    for each in controller munge; do
        [ ! -f "$work/$each.pid" ] || kill "$(cat "$work/$each.pid")" 2>/dev/null
    done
    bash "$nodes" down "$work/nodes"
}
