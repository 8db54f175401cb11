#!/bin/bash
# plm_rsh_agent of nodes.sh: node-agent.sh HOST COMMAND... runs COMMAND on the simulated node HOST.
# Each call has its own host name, IPC, PID and mount namespace with a private /dev/shm and TMPDIR: nothing stays behind.
# SPDX-License-Identifier: BSD-3-Clause
while [[ $1 == -* ]]; do shift; done
node=$1; shift
exec ip netns exec "$node" unshare -u -i -p -f -m --propagation private --mount-proc --kill-child bash -c '
  hostname "$0"
  mount -t tmpfs tmpfs /dev/shm
  mkdir -p /tmp/overlap-node && mount -t tmpfs tmpfs /tmp/overlap-node
  export TMPDIR=/tmp/overlap-node
  eval "$*"' "$node" "$@"
