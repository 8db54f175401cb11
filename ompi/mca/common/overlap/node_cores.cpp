// Cores of this node, by hwloc.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/node_cores.hpp"

#include "ompi/mca/common/overlap/cpu_quota.hpp"
#include "ompi/mca/common/overlap/openmpi.hpp"
#include "ompi/mca/common/overlap/protocol/spare_core.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"

#if OVERLAP_HAVE_HWLOC
#include <hwloc.h>
#endif
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>

namespace overlap {

#if OVERLAP_HAVE_HWLOC

namespace {

struct TopologyFree {
  void operator()(hwloc_topology* topology) const noexcept { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyFree>;

/// Cores and NUMA nodes alone: Open MPI's own topology has all devices in it too, and takes three
/// times as long, tens of milliseconds. @returns  nullptr: the system does not tell
Topology load_topology() noexcept {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  Topology owner(topology);
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(topology) != 0) return nullptr;
  return owner;
}
std::optional<Topology>& topology_read = never_destroyed<std::optional<Topology>>();

hwloc_topology_t topology_of_node() noexcept {
  if (!topology_read) topology_read.emplace(load_topology());
  return topology_read->get();
}

struct BitmapFree {
  void operator()(hwloc_bitmap_s* bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapFree>;

Bitmap make_bitmap() noexcept { return Bitmap(hwloc_bitmap_alloc()); }

/// What the job may use of this node: its launcher's share (taskset, a batch system, a container).
/// Under Slurm without control groups that is the whole node, whatever has been granted.
Bitmap cores_of_job(hwloc_topology_t topology) noexcept {
  Bitmap set = make_bitmap();
  if (!set) return set;
  if (hwloc_get_proc_cpubind(topology, getppid(), set.get(), 0) != 0) hwloc_bitmap_fill(set.get());
  hwloc_bitmap_and(set.get(), set.get(), hwloc_topology_get_allowed_cpuset(topology));
  return set;
}

unsigned count_cores(hwloc_topology_t topology, const hwloc_bitmap_s* set) noexcept {
  const int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, set, HWLOC_OBJ_CORE);
  return cores > 0 ? static_cast<unsigned>(cores) : 0;
}

unsigned count_processors(const hwloc_bitmap_s* set) noexcept {
  return static_cast<unsigned>(std::max(0, hwloc_bitmap_weight(set)));
}

/// No fewer than cores. @returns  nullopt: more than the C library's sets hold
std::optional<unsigned> count_units_of_job() noexcept {
  cpu_set_t set;
  if (sched_getaffinity(getppid(), sizeof set, &set) != 0) return {};
  return static_cast<unsigned>(CPU_COUNT(&set));
}

unsigned count_online() noexcept {
  return static_cast<unsigned>(std::max(0L, sysconf(_SC_NPROCESSORS_ONLN)));
}

/// @returns  0: the environment does not say
unsigned number_in_environment(const char* name) noexcept {
  const char* text = std::getenv(name);
  const int number = text != nullptr ? std::atoi(text) : 0;
  return number > 0 ? static_cast<unsigned>(number) : 0;
}

/// Threads of a hybrid program, as far as its environment says.
unsigned count_threads() noexcept { return std::max(1U, number_in_environment("OMP_NUM_THREADS")); }

/// Whole processors that the quota of a container allows; as many as there are where it has none.
unsigned count_within_quota() noexcept {
  constexpr unsigned all = std::numeric_limits<int>::max();
  try {
    std::ifstream membership("/proc/self/cgroup");
    const double quota = cpu_quota(membership, "/sys/fs/cgroup").value_or(all);
    return static_cast<unsigned>(std::min<double>(quota, all));
  } catch (...) {
    return all;  // what cannot be read limits nobody
  }
}

}  // namespace

const char* why_no_core_to_spare() noexcept {
  constexpr const char* full = "the node has no core to spare";
  const unsigned processes = processes_of_node(), threads = count_threads();
  // Most nodes are full, and need no topology to say so.
  const std::optional<unsigned> units = count_units_of_job();
  if (units && !leaves_core_to_spare({.cores = *units, .processes = processes, .threads = threads}))
    return full;
  hwloc_topology_t topology = topology_of_node();
  if (topology == nullptr) return full;
  const Bitmap all = cores_of_job(topology);
  const Bitmap mine = make_bitmap();
  if (!all || !mine || hwloc_get_cpubind(topology, mine.get(), 0) != 0) return full;
  // Time, which says nothing of whose the cores are.
  const unsigned quota = count_within_quota();
  if (!leaves_core_to_spare({.cores = quota, .processes = processes, .threads = threads})) {
    return "the quota of processor time of this container or control group (cpu.max) has no core "
           "to spare";
  }
  const CoreUse use{.cores = count_cores(topology, all.get()),
                    .processes = processes,
                    .bound_cores = count_cores(topology, mine.get()),
                    .threads = threads,
                    .processors = count_processors(all.get()),
                    .granted = number_in_environment("SLURM_CPUS_ON_NODE"),
                    .online = count_online()};
  if (may_see_others_cores(use)) {
    return "the node has no core to spare, as far as Slurm says: it has granted fewer than are in "
           "sight (SLURM_CPUS_ON_NODE)";
  }
  return leaves_core_to_spare(use) ? nullptr : full;
}

void forget_cores() noexcept { topology_read.reset(); }

void widen_binding(pthread_t thread) noexcept {
  hwloc_topology_t topology = topology_of_node();
  if (topology == nullptr) return;
  const Bitmap all = cores_of_job(topology);
  const Bitmap mine = make_bitmap();
  const Bitmap memory = make_bitmap();
  if (!all || !mine || !memory) return;
  if (hwloc_get_cpubind(topology, mine.get(), HWLOC_CPUBIND_THREAD) != 0) return;
  hwloc_cpuset_to_nodeset(topology, mine.get(), memory.get());
  hwloc_cpuset_from_nodeset(topology, mine.get(), memory.get());
  hwloc_bitmap_and(mine.get(), mine.get(), all.get());
  hwloc_set_thread_cpubind(topology, thread, mine.get(), 0);
}

#else

const char* why_no_core_to_spare() noexcept {
  return "this build knows nothing of cores (hwloc was missing)";
}
void forget_cores() noexcept {}

void widen_binding(pthread_t) noexcept {}

#endif

}  // namespace overlap
