// Which queue pairs may report through one completion queue, so that it never overflows.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace overlap::ring {

/// Counts the entries of one completion queue that queue pairs may fill.
///
/// Each request of a send queue may make a completion, the unsignalled ones too when the queue pair
/// fails; its entry counts as used until that was polled (SendQueueAccount). So a queue pair takes
/// as many entries here as its send queue has. Each receive buffer may be reported through any of
/// the completion queues: all of them are left free in each.
class CompletionRoom {
 public:
  CompletionRoom(std::uint32_t entries, std::uint32_t receive_buffers) noexcept
      : free_(entries - std::min(entries, receive_buffers)) {}

  /// Take room for a queue pair. @returns  false: there is none, nothing has changed
  [[nodiscard]] bool try_take(std::uint32_t send_queue_entries) noexcept {
    if (free_ < send_queue_entries) return false;
    free_ -= send_queue_entries;
    return true;
  }
  void give_back(std::uint32_t send_queue_entries) noexcept { free_ += send_queue_entries; }

 private:
  std::uint32_t free_;
};

/// Entries of the next completion queue when there are `queues`: room for 16 queue pairs in the
/// first and twice as many in each further one, so that few have to be polled however many peers
/// there are.
/// @param max  of the device; less than one queue pair needs is the device's to refuse
[[nodiscard]] constexpr std::uint32_t completion_entries(std::uint32_t queues,
                                                         std::uint32_t send_queue_entries,
                                                         std::uint32_t receive_buffers,
                                                         std::uint32_t max) noexcept {
  constexpr std::uint32_t first_pairs = 16, doublings_max = 16;
  const std::uint64_t pairs = std::uint64_t{first_pairs} << std::min(queues, doublings_max);
  const std::uint64_t wanted = receive_buffers + pairs * send_queue_entries;
  const std::uint64_t least = std::uint64_t{receive_buffers} + send_queue_entries;
  return static_cast<std::uint32_t>(std::max(std::min<std::uint64_t>(wanted, max), least));
}

}  // namespace overlap::ring
