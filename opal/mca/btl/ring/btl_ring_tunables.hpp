// What users can set, and what is counted.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/tunables.hpp"

#include "protocol/wire.hpp"

namespace overlap::ring {

#define OVERLAP_TUNABLES_FILE "opal/mca/btl/ring/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

extern Tunables tunables;

// Sizes as the tunables say, in whole cache lines.
[[nodiscard]] inline std::uint32_t slot_bytes() noexcept {
  return (tunables.slot_bytes + line_bytes - 1) / line_bytes * line_bytes;
}
[[nodiscard]] inline std::uint32_t channel_bytes() noexcept {
  return (tunables.channel_bytes + line_bytes - 1) / line_bytes * line_bytes;
}
// Of a message that goes that way, at most.
[[nodiscard]] inline std::uint32_t slot_payload_bytes() noexcept {
  return payload_max_bytes(slot_bytes());
}
[[nodiscard]] inline std::uint32_t channel_payload_bytes() noexcept {
  return channel_bytes() - static_cast<std::uint32_t>(sizeof(MessageHeader));
}

struct Counters {
  std::uint64_t ring_sent = 0;
  std::uint64_t ring_received = 0;
  std::uint64_t channel_sent = 0;
  std::uint64_t waking_sent = 0;
  std::uint64_t channel_received = 0;
  std::uint64_t ring_full = 0;
  std::uint64_t explicit_messages = 0;
  std::uint64_t held_messages = 0;
  std::uint64_t rings_opened = 0;
  std::uint64_t rings_closed = 0;
  std::uint64_t rings_declined = 0;
  std::uint64_t frequent_buffers = 0;
  std::uint64_t in_place_sent = 0;
  std::uint64_t registrations = 0;
  std::uint64_t table_stops = 0;
  std::uint64_t chained_sent = 0;
  std::uint64_t put_bytes = 0;
  std::uint64_t get_bytes = 0;
  std::uint64_t atomics = 0;
  std::uint64_t connections = 0;
  std::uint64_t memory_max_bytes = 0;
};
[[nodiscard]] Counters& counters() noexcept;
[[nodiscard]] std::span<const CounterRow> counter_rows();

}  // namespace overlap::ring
