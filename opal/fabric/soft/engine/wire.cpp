// Even sharing of links in virtual time: rates change only when a message starts or ends.
// SPDX-License-Identifier: BSD-3-Clause
#include "wire.hpp"

#include <algorithm>
#include <cmath>

namespace overlap::fabric::soft {

WireSettings slower(const WireSettings& a, const WireSettings& b) noexcept {
  return {.bytes_per_ns = std::min(a.bytes_per_ns, b.bytes_per_ns),
          .latency_ns = std::max(a.latency_ns, b.latency_ns),
          .message_ns = std::max(a.message_ns, b.message_ns)};
}

Node& Wire::node(std::uint32_t number) {
  auto& node = nodes_[number];
  if (!node) node = std::make_unique<Node>();
  return *node;
}

void Wire::start(Flow& flow, Node& from, Node& to, const WireSettings& settings,
                 std::uint64_t bytes, Time now) {
  from.leaving.push_back(&flow);
  to.entering.push_back(&flow);
  flow.from_ = &from;
  flow.to_ = &to;
  flow.limit_ = settings.bytes_per_ns;
  flow.rate_ = 0;
  flow.head_ = static_cast<double>(settings.message_ns) * settings.bytes_per_ns;
  flow.sent_ = 0;
  flow.settled_ = now;
  flow.total_bytes_ = bytes;
  flow.mark_bytes_ = 0;
  place_mark(flow);
  share(from, to, now);
}

void Wire::next_mark(Flow& flow, Time now) {
  // The timer's whole nanoseconds may be a fraction of a byte early or late: at its mark is what
  // counts.
  flow.sent_ = flow.head_ + static_cast<double>(flow.mark_bytes_);
  flow.settled_ = now;
  place_mark(flow);
  set_rate(flow, now);
}

void Wire::place_mark(Flow& flow) noexcept {
  const std::uint64_t left = flow.total_bytes_ - flow.mark_bytes_;
  flow.mark_bytes_ += left <= 2 * last_piece_bytes ? left : left / 2;
}

void Wire::stop(Flow& flow, Time now) {
  if (!flow.active()) return;
  Node& from = *flow.from_;
  Node& to = *flow.to_;
  std::erase(from.leaving, &flow);
  std::erase(to.entering, &flow);
  TimerHeap::clear(flow.timer);
  flow.from_ = flow.to_ = nullptr;
  share(from, to, now);
}

void Wire::set_down(Node& node, bool down, Time now) {
  node.down = down;
  share(node, node, now);
}

void Wire::settle(Flow& flow, Time now) noexcept {
  flow.sent_ += flow.rate_ * static_cast<double>(now - flow.settled_);
  flow.settled_ = now;
}

void Wire::share(Node& from, Node& to, Time now) {
  for (Flow* flow : from.leaving) set_rate(*flow, now);
  for (Flow* flow : to.entering) {
    if (flow->from_ != &from) set_rate(*flow, now);  // the others have just been seen
  }
}

void Wire::set_rate(Flow& flow, Time now) {
  settle(flow, now);
  const Node& from = *flow.from_;
  const Node& to = *flow.to_;
  const double share_out = from.bytes_per_ns / static_cast<double>(from.leaving.size());
  const double share_in = to.bytes_per_ns / static_cast<double>(to.entering.size());
  flow.rate_ = from.down || to.down ? 0 : std::min({flow.limit_, share_out, share_in});
  if (flow.rate_ <= 0) {
    timers_.set(flow.timer, never);
    return;
  }
  const double left =
      std::max(0.0, flow.head_ + static_cast<double>(flow.mark_bytes_) - flow.sent_);
  timers_.set(flow.timer, now + static_cast<Time>(std::ceil(left / flow.rate_ - 1e-6)));
}

}  // namespace overlap::fabric::soft
