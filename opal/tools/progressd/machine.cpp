// Cores by hwloc, bindings by the kernel.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/machine.hpp"

#include <dirent.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

namespace overlap::progressd {
namespace {

constexpr unsigned cpus_max = 8192;

/// A set of processors as the kernel wants it.
class CpuSet {
 public:
  CpuSet() : set_(CPU_ALLOC(cpus_max)) {
    if (set_ == nullptr) throw std::bad_alloc();
    CPU_ZERO_S(bytes(), set_);
  }
  ~CpuSet() { CPU_FREE(set_); }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;
  [[nodiscard]] static std::size_t bytes() { return CPU_ALLOC_SIZE(cpus_max); }
  [[nodiscard]] cpu_set_t* get() { return set_; }

 private:
  cpu_set_t* set_;
};

void add_affinity(pid_t thread, Processors& to) {
  CpuSet set;
  if (sched_getaffinity(thread, CpuSet::bytes(), set.get()) != 0) return;
  for (unsigned i = 0; i < cpus_max; ++i) {
    if (CPU_ISSET_S(i, CpuSet::bytes(), set.get())) to.insert(i);
  }
}

}  // namespace

std::vector<Core> cores_of_this_machine() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) throw std::runtime_error("hwloc gives no topology");
  const std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)> owner(topology,
                                                                          hwloc_topology_destroy);
  if (hwloc_topology_load(topology) != 0) throw std::runtime_error("hwloc gives no topology");
  std::vector<Core> cores;
  hwloc_obj_t at = nullptr;
  while ((at = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, at)) != nullptr) {
    Core core;
    unsigned each = 0;
    hwloc_bitmap_foreach_begin(each, at->cpuset) core.processors.insert(each);
    hwloc_bitmap_foreach_end();
    const int node = at->nodeset != nullptr ? hwloc_bitmap_first(at->nodeset) : 0;
    core.numa_node = node > 0 ? static_cast<unsigned>(node) : 0;
    if (!core.processors.empty()) cores.push_back(std::move(core));
  }
  if (!cores.empty()) return cores;
  // Machines that do not tell their cores (some containers and virtual machines).
  Processors all;
  add_affinity(0, all);
  for (const unsigned each : all) cores.push_back({.processors = {each}, .numa_node = 0});
  return cores;
}

namespace {

/// The interrupt thread may run on more cores than its process is bound to.
bool is_interrupt_thread(const std::string& task) {
  std::ifstream file(task + "/comm");
  std::string name;
  return std::getline(file, name) && name == "overlap";
}

}  // namespace

Processors binding_of(pid_t process) {
  Processors found;
  if (process <= 0) return found;
  const std::string path = "/proc/" + std::to_string(process) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir(path.c_str()), closedir);
  if (tasks == nullptr) return found;
  constexpr unsigned threads_max = 1024;
  for (unsigned i = 0; i < threads_max; ++i) {
    const dirent* entry = readdir(tasks.get());
    if (entry == nullptr) break;
    const int thread = std::atoi(entry->d_name);
    if (thread > 0 && !is_interrupt_thread(path + "/" + entry->d_name)) add_affinity(thread, found);
  }
  return found;
}

void bind_this_thread(const Processors& processors, const std::vector<Core>& cores) noexcept try {
  CpuSet set;
  const auto add = [&](const Processors& some) {
    for (const unsigned each : some) CPU_SET_S(each, CpuSet::bytes(), set.get());
  };
  add(processors);
  if (processors.empty())
    std::for_each(cores.begin(), cores.end(), [&](const Core& core) { add(core.processors); });
  // Where the kernel refuses, the helper runs where it is.
  static_cast<void>(sched_setaffinity(0, CpuSet::bytes(), set.get()));
} catch (const std::bad_alloc&) {
  return;
}

}  // namespace overlap::progressd
