#!/bin/bash
# Simulated nodes on one Linux host (root): one network, host name, IPC, PID and mount namespace per node, joined by a bridge. The bridge
# has a network namespace of its own, the hub: other jobs on the host never see an address that comes and goes.
#
#   nodes.sh up DIR COUNT [RATE]   make COUNT nodes; RATE (for instance 1gbit) limits what each node sends; state is kept in DIR
#   nodes.sh run DIR ARGS...       mpirun ARGS over the nodes of DIR (slots per node: SLOTS, default 1)
#   nodes.sh hub DIR COMMAND...    run COMMAND on the host, with the network of the hub, from which the nodes can be reached
#   nodes.sh down DIR              remove the nodes of DIR and DIR itself
#   nodes.sh sweep                 remove nodes whose owner process is gone
#
# Several sets can exist at the same time: set K has the nodes ovKn1.., the hub ovKhub and the addresses 10.77.K.0/24. A set belongs
# to the process that called `up` (or to NODES_OWNER=pid); `up` and `sweep` remove sets whose owner has ended.
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
registry=/run/overlap-nodes
fail() { echo "nodes.sh: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail "needs root (network namespaces)"

remove_set() { # K
  local node pid
  for node in $(ip netns list | awk -v p="^ov$1(n[0-9]+|hub)$" '$1 ~ p {print $1}'); do
    for pid in $(ip netns pids "$node" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
    ip netns del "$node" 2>/dev/null
  done
  rm -f "$registry/$1"
}

sweep() {
  local file owner
  for file in "$registry"/*; do
    [ -f "$file" ] || continue
    owner=$(cat "$file" 2>/dev/null)
    [ -n "$owner" ] && [ ! -d "/proc/$owner" ] && remove_set "$(basename "$file")"
  done
  return 0
}

claim_set() { # prints K
  local k
  mkdir -p "$registry"
  for k in $(seq 0 99); do
    # noclobber makes taking a number atomic
    if (set -o noclobber; echo "${NODES_OWNER:-$PPID}" >"$registry/$k") 2>/dev/null; then echo "$k"; return; fi
  done
  fail "100 sets exist already; see $registry"
}

up() { # DIR COUNT RATE
  local dir=$1 count=$2 rate=$3 k i node hub
  [ "$count" -ge 1 ] 2>/dev/null && [ "$count" -le 250 ] || fail "COUNT must be 1 to 250, is '$count'"
  [ ! -e "$dir/set" ] || fail "$dir already holds a set"
  sweep
  k=$(claim_set) || exit 1
  mkdir -p "$dir" && echo "$k" >"$dir/set" && : >"$dir/hosts"
  trap 'remove_set "$k"; rm -f "$dir/set" "$dir/hosts"; exit 1' ERR INT TERM
  set -E
  hub=ov${k}hub
  ip netns add "$hub"
  ip -n "$hub" link set lo up
  ip -n "$hub" link add bridge type bridge
  ip -n "$hub" addr add "10.77.$k.254/24" dev bridge
  ip -n "$hub" link set bridge up
  for i in $(seq "$count"); do
    node=ov${k}n$i
    ip netns add "$node"
    ip -n "$hub" link add "port$i" type veth peer name eth0 netns "$node"
    ip -n "$hub" link set "port$i" master bridge up
    ip -n "$node" addr add "10.77.$k.$i/24" dev eth0
    ip -n "$node" link set eth0 up
    ip -n "$node" link set lo up
    # by default a new connection takes in about 124 KiB while its reader computes; with these, about 3.9 MiB each way
    ip netns exec "$node" sysctl -q -w net.ipv4.tcp_rmem="4096 4194304 33554432" net.ipv4.tcp_wmem="4096 4194304 33554432"
    # token bucket: a transfer takes time on the wire and not on a processor
    [ -z "$rate" ] || tc -n "$node" qdisc add dev eth0 root tbf rate "$rate" burst 64kb latency 20ms
    echo "$node slots=${SLOTS:-1}" >>"$dir/hosts"
  done
  trap - ERR INT TERM
}

# in_hub DIR COMMAND...: becomes the command
in_hub() {
  local dir=$1
  shift
  [ -f "$dir/set" ] || fail "no nodes in $dir (nodes.sh up)"
  exec nsenter --net="/run/netns/ov$(cat "$dir/set")hub" "$@"
}

case ${1:-} in
  up) [ $# -ge 3 ] || fail "usage: nodes.sh up DIR COUNT [RATE]"; up "$2" "$3" "${4:-}" ;;
  run)
    dir=$2; shift 2
    [ -f "$dir/set" ] || fail "no nodes in $dir (nodes.sh up)"
    net=10.77.$(cat "$dir/set").0/24
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # From the environment, so that an --mca of the caller wins: mpirun refuses one parameter with two values.
    export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle:-1}
    # --leave-session-attached: a daemon that detaches would lose its PID namespace
    in_hub "$dir" mpirun --hostfile "$dir/hosts" --map-by node --mca plm_rsh_agent "$here/node-agent.sh" --mca oob_tcp_if_include "$net" \
      --mca btl_tcp_if_include "$net" --leave-session-attached --mca plm_rsh_no_tree_spawn 1 --mca plm_rsh_num_concurrent 64 \
      --bind-to none "$@"
    ;;
  hub) shift; in_hub "$@" ;;
  down)
    [ -f "${2:-}/set" ] || exit 0
    remove_set "$(cat "$2/set")"
    rm -f "$2/set" "$2/hosts"; rmdir "$2" 2>/dev/null || true
    ;;
  sweep) sweep ;;
  *) sed -n '2,12s/^# \{0,1\}//p' "$0"; [ "${1:-}" = -h ] || exit 1 ;;
esac
