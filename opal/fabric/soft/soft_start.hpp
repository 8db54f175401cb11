// Finding, starting and reaching the device process.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "opal/fabric/fabric.hpp"
#include "shared_memory.hpp"

namespace overlap::fabric::soft {

/// Path of the device's program: the option, else $OVERLAP_SOFTDEVICE, else where it was installed,
/// else beside this library.
/// @throws Error: system, naming the places looked at
[[nodiscard]] std::string find_program(const std::string& option);

/// Start a device process for the domain, unless there is one; wait until it (or the other)
/// listens.
/// @throws Error: system
void start_device(const std::string& program, const std::string& domain);

}  // namespace overlap::fabric::soft
