// Options of the verbs provider: what they mean and whether they can hold. Nothing here needs a
// device.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "opal/fabric/fabric.hpp"

namespace overlap::fabric::verbs {

/// What VerbsOptions::device names.
struct PortName {
  std::string device;     ///< "": any
  std::uint8_t port = 0;  ///< 0: the fastest active one
};

/// @param text  "", "mlx5_0" or "mlx5_0:1"
/// @throws Error: bad_option
[[nodiscard]] PortName parse_port_name(const std::string& text);

/// Refuse values that verbs cannot express, before anything is opened.
/// @throws Error: bad_option, with the name of the option and its range
void check(const VerbsOptions& options);

}  // namespace overlap::fabric::verbs
