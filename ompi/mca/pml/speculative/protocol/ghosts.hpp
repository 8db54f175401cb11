// RTRs that have outlived their receives, and fragments that come before their RTR-ACK.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operations.hpp"

namespace overlap::speculative {

/// The RTR of a receive that was cancelled while the sender could still use it. It names no memory,
/// so its handle is all that the sender has; the ghost answers to it until the sender has
/// confirmed the REVOKE, or until a message that uses it has arrived completely.
struct Ghost : ReceiveOp {
  Ghost() = default;
  Ghost(const Ghost&) = delete;
  Ghost& operator=(const Ghost&) = delete;
  ~Ghost() {
    if (receive != nullptr && message != nullptr) Arrived::destroy(message);
  }

  /// Collecting: where the fragments go. The communicator owns it while it is unexpected, the ghost
  /// once a receive has matched it.
  Arrived* message = nullptr;
  ReceiveOp* receive = nullptr;  ///< has matched the message, and ends with its last fragment
};

/// All ghosts of a process. There are few: one per cancelled receive and round trip.
class Ghosts {
 public:
  [[nodiscard]] Ghost& add() { return *all_.emplace_back(std::make_unique<Ghost>()); }
  void remove(const Ghost& ghost) noexcept {
    std::erase_if(all_, [&ghost](const auto& each) { return each.get() == &ghost; });
  }
  /// @param visit  called with each ghost; may change it
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const auto& ghost : all_) visit(*ghost);
  }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  /// Can a sender still use an RTR of this envelope that has no receive?
  [[nodiscard]] bool any(const Peer& peer, std::int32_t tag) const noexcept;

 private:
  std::vector<std::unique_ptr<Ghost>> all_;
};

inline constexpr const char* too_many_fragments = "more fragments than the message has bytes";

/// Fragments that have overtaken the RTR-ACK of their message. Only that says which receive gets
/// them, where an RTR names no memory.
class EarlyFragments {
 public:
  struct Fragment {
    std::uint64_t offset_bytes;
    std::vector<std::byte> payload;
  };
  /// @returns  false: more than the capacity that the RTR has named
  [[nodiscard]] bool put(Handle handle, std::uint64_t offset_bytes,
                         std::span<const std::byte> payload, std::uint64_t capacity_bytes);
  [[nodiscard]] std::vector<Fragment> take(Handle handle);
  [[nodiscard]] bool empty() const noexcept { return of_.empty(); }

 private:
  struct Fragments {
    std::uint64_t bytes = 0;
    std::vector<Fragment> all;
  };
  std::unordered_map<Handle, Fragments> of_;
};

}  // namespace overlap::speculative
