// The modelled wire: nodes with one full-duplex link each, and messages that share the links
// fairly.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "timers.hpp"

namespace overlap::fabric::soft {

/// How fast a link is. Between two processes the slower of both settings counts, item by item.
struct WireSettings {
  double bytes_per_ns = 1.0;
  Time latency_ns = 5000;  ///< one way
  Time message_ns = 200;   ///< for each message besides its bytes
};

[[nodiscard]] WireSettings slower(const WireSettings& a, const WireSettings& b) noexcept;

class Flow;

/// One node's link.
struct Node {
  double bytes_per_ns = 0;  ///< of the fastest process there
  bool down = false;
  std::vector<Flow*> leaving;
  std::vector<Flow*> entering;
};

/// One message on its way through the sender's outgoing and the receiver's incoming link.
///
/// All messages that are on a link at one time share it evenly, as if sent in turns of one byte: a
/// small message behind the 4 MiB of another queue pair takes twice its own time and does not wait.
/// A flow's rate is its even share of the narrower of its two links; what it cannot use there of
/// the wider one is not given to others.
///
/// The timer goes off when the flow reaches its mark, a number of bytes.
class Flow {
 public:
  Flow(Alarm alarm, Pair& owner) noexcept : timer(alarm, owner) {}

  [[nodiscard]] bool active() const noexcept { return from_ != nullptr; }
  [[nodiscard]] std::uint64_t total_bytes() const noexcept { return total_bytes_; }
  [[nodiscard]] std::uint64_t mark_bytes() const noexcept { return mark_bytes_; }

  Timer timer;
  std::uint64_t task = 0;  ///< for the owner: what is being sent

 private:
  friend class Wire;

  Node* from_ = nullptr;
  Node* to_ = nullptr;
  double limit_ = 0;  ///< bytes per ns, of the slower end
  double rate_ = 0;   ///< bytes per ns now
  double head_ = 0;   ///< cost of the message itself, in bytes
  double sent_ = 0;   ///< head and bytes, at settled_
  Time settled_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::uint64_t mark_bytes_ = 0;
};

/// All links.
class Wire {
 public:
  explicit Wire(TimerHeap& timers) noexcept : timers_(timers) {}

  [[nodiscard]] Node& node(std::uint32_t number);

  /// Put a message on the wire; its first mark is set.
  void start(Flow& flow, Node& from, Node& to, const WireSettings& settings, std::uint64_t bytes,
             Time now);
  /// The mark was reached: set the next one. Precondition: mark_bytes() < total_bytes()
  void next_mark(Flow& flow, Time now);
  /// Take a message off, finished or not. Harmless when it is not on.
  void stop(Flow& flow, Time now);
  void set_down(Node& node, bool down, Time now);

  /// Marks halve what is left; the last piece has between one and two times this: few wake-ups, and
  /// little to do when the last byte arrives.
  static constexpr std::uint64_t last_piece_bytes = 64U << 10U;

 private:
  void settle(Flow& flow, Time now) noexcept;
  void share(Node& from, Node& to, Time now);
  void set_rate(Flow& flow, Time now);
  void place_mark(Flow& flow) noexcept;

  TimerHeap& timers_;
  std::map<std::uint32_t, std::unique_ptr<Node>> nodes_;
};

}  // namespace overlap::fabric::soft
