// Exchanges of several messages at a time with one process.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap {

/// The last one that was timed: since when, and which way its messages go.
struct ExchangeRun {
  const void* owner = nullptr;  ///< whose exchanges are timed; compared only
  std::uint32_t others = 0;     ///< exchanges of others since the owner's last one
  std::uint32_t group = 0;      ///< of exchanges that all go one way; 0: of none
  std::uint64_t began_ns = 0;
  std::uint64_t bytes = 0;  ///< of its first message
  bool tells = false;       ///< its time is that of its way
  bool reads = false;
};

}  // namespace overlap
