// The peers of a stream, and how far each one is known to be.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ompi/mca/common/overlap/protocol/ring_queue.hpp"

#include "counter.hpp"
#include "message.hpp"
#include "plan.hpp"

namespace overlap::coll_mq {

namespace model {
struct Digest;
}

/// Edges of a stream, and the limit that keeps a sender from running away from its receivers.
///
/// A sender stays less than `window` collectives ahead of what it knows its peer to have ended.
/// Each message brings that knowledge; who is half a window ahead asks for it.
class PeerTable {
 public:
  using EdgeIndex = std::uint16_t;
  /// A message without payload that is to be sent.
  struct Control {
    MessageKind kind{};
    EdgeIndex edge = 0;
    Sequence sequence;
  };
  enum class Leave : std::uint8_t { granted, too_far_ahead };

  PeerTable(std::uint32_t window, Sequence first) : window_(window), first_(first) {}

  [[nodiscard]] EdgeIndex edge_to(Rank peer);
  [[nodiscard]] std::span<const Rank> peers() const noexcept { return peers_; }

  /// May a message of this collective go to the peer? If it is far behind, it is asked.
  /// @param own_oldest  all before it is over here
  [[nodiscard]] Leave ask_leave(EdgeIndex edge, Sequence sequence, Sequence own_oldest);
  /// A message has told what is over with the peer. @returns  is it news?
  bool note_oldest(EdgeIndex edge, Sequence oldest);
  /// The peer wants to know when all before `sequence` is over here.
  void note_ask(EdgeIndex edge, Sequence sequence, Sequence own_oldest);
  /// All before `own_oldest` is over: tell those who have asked.
  void tell_askers(Sequence own_oldest);

  [[nodiscard]] bool has_control() const noexcept { return !controls_.empty(); }
  [[nodiscard]] std::optional<Control> take_control();
  /// There was no room for it: again after room().
  void put_back(const Control& control) { stalled_.push_back(control); }
  void room();
  [[nodiscard]] bool is_idle() const noexcept { return controls_.empty() && stalled_.empty(); }

 private:
  friend struct model::Digest;
  struct Edge {
    Sequence oldest;  ///< the peer has ended all before it
    bool asked = false;
    bool asks = false;  ///< wants to know when all before `wanted` is over here
    Sequence wanted;
  };

  const std::uint32_t window_;
  const Sequence first_;
  std::vector<Rank> peers_;         ///< [edge]
  std::vector<Edge> edges_;         ///< [edge]
  std::vector<EdgeIndex> by_peer_;  ///< sorted by peer
  std::size_t askers_ = 0;
  RingQueue<Control> controls_;
  std::vector<Control> stalled_;
};

}  // namespace overlap::coll_mq
