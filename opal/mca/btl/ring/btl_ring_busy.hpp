// Endpoints for which something waits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "protocol/turn_queue.hpp"

#include "btl_ring_endpoint.hpp"

namespace overlap::ring {

/// A list of the endpoints that the next progress serves: fragments, operations or control messages
/// wait there. The only writer of Endpoint::listed.
///
/// @thread  Guard held
class BusyEndpoints {
 public:
  void mark(Endpoint& endpoint) {
    if (endpoint.listed) return;
    endpoint.listed = true;
    endpoints_.push(&endpoint);
  }
  /// Before an endpoint goes.
  void remove(Endpoint& endpoint) { endpoints_.remove(&endpoint); }
  [[nodiscard]] bool empty() const noexcept { return endpoints_.empty(); }

  /// @param holds  holds(endpoint) -> bool
  template <class Holds>
  [[nodiscard]] bool any(Holds&& holds) const {
    return endpoints_.any([&holds](const Endpoint* endpoint) { return holds(*endpoint); });
  }

  /// Each one once; `body` may mark it again.
  template <class Body>
  void serve(Body&& body) {
    endpoints_.serve([&body](Endpoint* endpoint) {
      endpoint->listed = false;
      body(*endpoint);
    });
  }

 private:
  TurnQueue<Endpoint*> endpoints_;
};

}  // namespace overlap::ring
