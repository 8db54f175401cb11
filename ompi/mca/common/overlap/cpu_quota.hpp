// How much processor time the control groups of this process allow it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <istream>
#include <optional>

namespace overlap {

/// The smallest quota of the process's control group and of those that it lies in, as containers
/// have it (`docker run --cpus`, limits of Kubernetes): all cores are in sight there, and whoever
/// uses more of them stands still until the next period.
///
/// @param membership  the text of /proc/self/cgroup
/// @param mounted  where the control groups of both versions are, /sys/fs/cgroup
/// @returns  processors at a time, for instance 2.5; nullopt: as many as there are
[[nodiscard]] std::optional<double> cpu_quota(std::istream& membership,
                                              const std::filesystem::path& mounted);

}  // namespace overlap
