// Cores of this node, by Open MPI's hwloc topology.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/node_cores.hpp"

#include "ompi/mca/common/overlap/openmpi.hpp"

namespace overlap {

#if OVERLAP_KNOWS_CORES

namespace {

struct BitmapFree {
  void operator()(hwloc_bitmap_s* bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapFree>;

Bitmap make_bitmap() noexcept { return Bitmap(hwloc_bitmap_alloc()); }

}  // namespace

bool has_core_to_spare() noexcept {
  hwloc_topology_t topology = topology_of_node();
  if (topology == nullptr) return false;
  // Of those that the job may use: a container or a batch system may have given it a part.
  const hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(topology);
  const int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, allowed, HWLOC_OBJ_CORE);
  return cores > 0 && static_cast<unsigned>(cores) > processes_of_node();
}

void widen_binding(pthread_t thread) noexcept {
  hwloc_topology_t topology = topology_of_node();
  const Bitmap mine = make_bitmap();
  const Bitmap memory = make_bitmap();
  if (topology == nullptr || !mine || !memory) return;
  if (hwloc_get_cpubind(topology, mine.get(), HWLOC_CPUBIND_THREAD) != 0) return;
  hwloc_cpuset_to_nodeset(topology, mine.get(), memory.get());
  hwloc_cpuset_from_nodeset(topology, mine.get(), memory.get());
  hwloc_bitmap_and(mine.get(), mine.get(), hwloc_topology_get_allowed_cpuset(topology));
  hwloc_set_thread_cpubind(topology, thread, mine.get(), 0);
}

#else

bool has_core_to_spare() noexcept { return false; }
void widen_binding(pthread_t) noexcept {}

#endif

}  // namespace overlap
