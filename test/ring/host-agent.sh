#!/bin/sh
# plm_rsh_agent: host-agent.sh HOST COMMAND... runs COMMAND on this host under the name HOST, so that Open MPI takes it for a node of its own.
# SPDX-License-Identifier: BSD-3-Clause
while case $1 in -*) true ;; *) false ;; esac; do shift; done
exec unshare -u sh -c 'hostname "$0" && eval "$*"' "$@"
