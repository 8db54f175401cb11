// The command line of ompi-progressd.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "opal/tools/progressd/placement.hpp"

namespace overlap::progressd {

enum class Command : std::uint8_t { serve, status, on, off, stop, help, version };

struct Options {
  Command command = Command::serve;
  bool json = false;
  bool foreground = false;
  bool exit_when_idle = false;
  unsigned spin_ms = 20;
  PlacementWish placement;
  std::string name;  ///< empty: the user's usual helper
  std::string help;  ///< of Command::help
};

/// The command line is wrong; one sentence says what to change.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// @throws UsageError
[[nodiscard]] Options parse(int count, const char* const* arguments);

}  // namespace overlap::progressd
