// When a sender waits for an RTR, and for how long.
// SPDX-License-Identifier: BSD-3-Clause
#include "patience.hpp"

#include <algorithm>

namespace overlap::speculative {
namespace {

// No wait is longer than its message would take at this rate: 1 byte per ns.
constexpr std::uint64_t ns_per_byte = 1;

}  // namespace

void Patience::came(std::uint64_t waited_ns) noexcept {
  took_ns = took_ns == 0 ? static_cast<std::uint32_t>(waited_ns)
                         : static_cast<std::uint32_t>((std::uint64_t{took_ns} * 3 + waited_ns) / 4);
  took_ns = std::max(took_ns, 1U);
  needed = 0;
}

void Patience::in_vain(const PatienceRules& rules) noexcept {
  crossings = 0;
  took_ns = 0;
  needed = std::min(std::max(needed, rules.crossings_min) * 2, crossings_max);
}

std::uint64_t Patience::wait_ns(const PatienceRules& rules,
                                std::uint64_t length_bytes) const noexcept {
  if (!rules.enabled || crossings < std::max(needed, rules.crossings_min)) return 0;
  const std::uint64_t bound_ns = std::min(rules.wait_max_ns, length_bytes * ns_per_byte);
  if (took_ns == 0) return bound_ns;
  return took_ns <= bound_ns ? std::min(bound_ns, 2 * std::uint64_t{took_ns}) : 0;
}

}  // namespace overlap::speculative
