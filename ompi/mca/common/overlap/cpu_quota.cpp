// How much processor time the control groups of this process allow it.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/cpu_quota.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace overlap {
namespace {

/// Microseconds of processor time in each period, of one group. @returns  nullopt: no limit, or the
/// group is not in sight
std::optional<double> quota_of(const std::filesystem::path& group) {
  double quota_us = 0, period_us = 0;
  if (std::ifstream both(group / "cpu.max"); both) {  // version 2; "max" is no number
    both >> quota_us >> period_us;
  } else {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota_us;  // -1: no limit
    std::ifstream(group / "cpu.cfs_period_us") >> period_us;
  }
  if (quota_us <= 0 || period_us <= 0) return {};
  return quota_us / period_us;
}

/// Does a list "cpu,cpuacct" of version 1 have it?
bool has_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

std::optional<double> cpu_quota(std::istream& membership, const std::filesystem::path& mounted) {
  std::optional<double> smallest;
  // "4:cpu,cpuacct:/user.slice" with version 1, "0::/user.slice" with version 2.
  for (std::string number, controllers, path; std::getline(membership, number, ':') &&
                                              std::getline(membership, controllers, ':') &&
                                              std::getline(membership, path);) {
    if (!controllers.empty() && !has_cpu(controllers)) continue;
    const std::filesystem::path root = controllers.empty() ? mounted : mounted / "cpu";
    // In a container the path may be the host's, and the container's own group the root in sight.
    std::filesystem::path group = std::filesystem::path(path).relative_path();
    for (bool at_root = false; !at_root; group = group.parent_path()) {
      at_root = group.empty();
      const auto quota = quota_of(root / group);
      if (quota) smallest = std::min(smallest.value_or(*quota), *quota);
    }
  }
  return smallest;
}

}  // namespace overlap
