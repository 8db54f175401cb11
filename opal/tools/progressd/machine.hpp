// What this machine offers, and where processes are bound.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <vector>

#include "opal/tools/progressd/placement.hpp"

namespace overlap::progressd {

/// The cores that this process may use, by hwloc. @throws std::runtime_error
[[nodiscard]] std::vector<Core> cores_of_this_machine();

/// Where the threads of a process may run. @returns  empty: it has gone, or the kernel refuses
[[nodiscard]] Processors binding_of(pid_t process);

/// Bind the calling thread. @param processors  empty: to all of `cores`
void bind_this_thread(const Processors& processors, const std::vector<Core>& cores) noexcept;

}  // namespace overlap::progressd
