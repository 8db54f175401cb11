# MPI tests over btl/ring; sourced by the jobs. Emulated, all is some twenty times slower: fewer rounds.
# SPDX-License-Identifier: BSD-3-Clause

. "$VM_PREFIX/env.sh"
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_ring_fabric=verbs OVERLAP_TEST_SECONDS=1 OVERLAP_TEST_ROUNDS=15 OVERLAP_TEST_SEEDS=5
programs=$VM_BUILD/test-mpi
