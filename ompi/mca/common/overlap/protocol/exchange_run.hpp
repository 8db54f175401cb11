// Exchanges of several messages at a time with one process.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap {

/// The present one: since when it lasts, and which way its messages go.
struct ExchangeRun {
  std::uint64_t began_ns = 0;
  std::uint32_t group = 0;   ///< of exchanges that all go one way; 0: of none
  std::uint32_t rounds = 0;  ///< exchanges of the group that have begun
  bool reads = false;
};

}  // namespace overlap
