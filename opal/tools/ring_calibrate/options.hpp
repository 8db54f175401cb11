// The command line of ring-calibrate.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace overlap::ring_calibrate {

enum class Fabric { automatic, verbs, soft };

struct Options {
  Fabric fabric = Fabric::automatic;
  std::string device;           ///< "" takes the fastest active port
  std::uint32_t fraction = 25;  ///< percent, as btl_ring_frequent_fraction
  std::uint32_t ring_slots = 100;
  std::uint32_t slot_bytes = 2048;
  bool csv = false;
  bool quick = false;
  bool help = false;
  bool version = false;
};

/// What is wrong with the command line, in one sentence.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// @throws UsageError
[[nodiscard]] Options parse(int count, char** arguments);

/// The text of --help.
[[nodiscard]] const char* usage() noexcept;

}  // namespace overlap::ring_calibrate
