// Peers that may sleep although a message that they wait for lies in their ring.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace overlap::ring {

/// What is known of one peer; written by WakeUps only.
struct WakeUp {
  bool due = false;     ///< nothing that wakes has been sent since `oldest_ns`
  bool listed = false;  ///< in the list
  std::uint64_t oldest_ns = 0;
  std::uint64_t newest_ns = 0;
  std::uint32_t unwoken = 0;  ///< messages into its receive buffers since the last that wakes
};

/// How many messages in a row may go into the receive buffers of a process that sleeps: all its
/// peers together fill half of them at most, so that there is room for the next one that wakes. A
/// pool that grows has four buffers for each connection.
/// @param peers  processes that may send to it
[[nodiscard]] constexpr std::uint32_t unwoken_max(std::uint32_t buffers,
                                                  std::size_t peers) noexcept {
  const std::size_t share = buffers / (2 * std::max<std::size_t>(peers, 1));
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(share, 1, 15));
}

/// A write into a ring wakes nobody. A message that wakes follows it: at once from a thread that
/// runs because its process computes, and from a process that waits inside MPI once it has sent
/// nothing more for `patience_ns`. Mostly the peer polls, and gives the slots back before that.
///
/// Only a slot that has come back proves that its message was seen. Anything else that the peer
/// says may have been sent before it could see the message, however late it arrives: processes are
/// stopped for any time between two of their steps.
///
/// @tparam Peer  has a member `wake` of type WakeUp
template <class Peer>
class WakeUps {
 public:
  static constexpr std::uint64_t patience_ns = 50'000;
  /// The same for a process that goes on sending.
  static constexpr std::uint64_t patience_max_ns = 500'000;

  /// A message that may be slept for goes into its ring. May throw std::bad_alloc.
  void note_sent(Peer& peer, std::uint64_t now_ns) {
    WakeUp& wake = peer.wake;
    if (!wake.listed) {
      peers_.push_back(&peer);
      wake.listed = true;
    }
    if (!std::exchange(wake.due, true)) wake.oldest_ns = now_ns;
    wake.newest_ns = now_ns;
  }
  /// A message that wakes went to it, behind those of its ring.
  static void note_woken(Peer& peer) noexcept {
    peer.wake.due = false;
    peer.wake.unwoken = 0;
  }
  /// A message goes into a receive buffer of a peer that may sleep, which needs few of them at
  /// once, but has so many only. @returns  whether it must wake
  [[nodiscard]] bool must_wake(Peer& peer) noexcept {
    if (++peer.wake.unwoken <= unwoken_max_) return false;
    peer.wake.unwoken = 0;
    return true;
  }
  /// @param count  as unwoken_max() says
  void set_unwoken_max(std::uint32_t count) noexcept { unwoken_max_ = count; }
  /// Before a peer goes.
  void remove(Peer& peer) noexcept {
    std::erase(peers_, &peer);
    peer.wake = {};
  }
  [[nodiscard]] bool empty() const noexcept { return peers_.empty(); }

  /// @param at_once  the process computes: do not wait
  /// @param seen     seen(peer) -> bool: has every slot of its ring come back?
  /// @param wake     wake(peer) -> bool: false when there is no room; it is asked again
  template <class Seen, class Wake>
  void serve(std::uint64_t now_ns, bool at_once, Seen&& seen, Wake&& wake) {
    for (std::size_t i = 0; i < peers_.size();) {
      Peer& peer = *peers_[i];
      if (peer.wake.due && (seen(peer) || ((at_once || is_time(peer.wake, now_ns)) && wake(peer))))
        peer.wake.due = false;
      if (peer.wake.due) {
        ++i;
        continue;
      }
      peer.wake.listed = false;
      peers_[i] = peers_.back();
      peers_.pop_back();
    }
  }

 private:
  [[nodiscard]] static bool is_time(const WakeUp& wake, std::uint64_t now_ns) noexcept {
    return now_ns - wake.newest_ns >= patience_ns || now_ns - wake.oldest_ns >= patience_max_ns;
  }

  std::vector<Peer*> peers_;
  std::uint32_t unwoken_max_ = 1;
};

}  // namespace overlap::ring
