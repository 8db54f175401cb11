// RTRs that have outlived their receives, and fragments that come before their RTR-ACK.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operations.hpp"

namespace overlap::speculative {

/// Stands where fragments of a message come, and no receive does: for the RTR of one that was
/// cancelled while the sender could still use it, or for one that nobody has posted yet, of a
/// message that could have gone eagerly. An RTR of that kind names no memory, so its handle is all
/// that the sender has; the ghost answers to it until the sender has confirmed the REVOKE, or until
/// a message that uses it has arrived completely.
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
  std::list<Ghost>::iterator place;
};

/// All ghosts of a process, by envelope: a program may cancel thousands of receives at a time.
class Ghosts {
 public:
  [[nodiscard]] Ghost& add(Peer& peer, std::int32_t tag);
  void remove(Ghost& ghost) noexcept;
  /// @param visit  called with each ghost; adds and removes none
  template <class Visit>
  void for_each(Visit&& visit) {
    for (auto& [envelope, ghosts] : all_) {
      for (Ghost& ghost : ghosts) visit(ghost);
    }
  }
  /// The same for one envelope.
  template <class Visit>
  void for_each_of(const Peer& peer, std::int32_t tag, Visit&& visit) {
    const auto found = all_.find({&peer, tag});
    if (found == all_.end()) return;
    for (Ghost& ghost : found->second) visit(ghost);
  }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  /// Can a sender still use an RTR of this envelope that has no receive?
  [[nodiscard]] bool any(const Peer& peer, std::int32_t tag) const noexcept;

 private:
  struct Envelope {
    const Peer* peer;
    std::int32_t tag;
    friend bool operator==(const Envelope&, const Envelope&) = default;
  };
  struct Hash {
    std::size_t operator()(const Envelope& envelope) const noexcept {
      return std::hash<const Peer*>{}(envelope.peer) * 31 +
             static_cast<std::uint32_t>(envelope.tag);
    }
  };
  std::unordered_map<Envelope, std::list<Ghost>, Hash> all_;  // no list is empty
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
