// Put, get, atomics and chained messages, on a queue pair of their own.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <span>

#include "opal/fabric/fabric.hpp"
#include "opal/mca/common/overlap/capability.hpp"

#include "btl_ring_busy.hpp"
#include "btl_ring_connect.hpp"
#include "btl_ring_endpoint.hpp"
#include "btl_ring_registration.hpp"
#include "btl_ring_upper.hpp"
#include "buffer_pool.hpp"
#include "peer_buffers.hpp"

namespace overlap::ring {

/// What one-sided operations take; all outlive the engine.
struct BulkParts {
  const fabric::Capabilities& able;
  UpperLayer& upper;
  Connector& connector;
  BusyEndpoints& busy;
  RegistrationCache& registrations;
  PeerBuffers& send_buffers;  ///< for chained messages
  WakeUps<Endpoint>& wake_ups;
};

/// Posts one-sided operations, in order for each peer, and owns each from start() to its end.
///
/// @thread  Guard held
class Bulk {
 public:
  Bulk(const BulkParts& parts, RegisteredMemory& memory) noexcept;
  Bulk(const Bulk&) = delete;
  Bulk& operator=(const Bulk&) = delete;

  /// @returns  OPAL_SUCCESS: its callback follows; else an error code, and the operation is gone
  [[nodiscard]] int start(BulkOperation* operation);
  /// Chained completion: behind puts by the order of the queue pair, behind gets by a fence
  /// (architecture.md rule 5). @returns  the same
  [[nodiscard]] int send_behind(Endpoint& endpoint, mca_btl_base_tag_t tag,
                                std::span<const std::byte> bytes, Behind behind);
  /// A message behind puts, which does not wait. @returns  false: no room for now
  [[nodiscard]] bool try_send_at_once(Endpoint& endpoint, std::span<const std::byte> bytes);
  void completed(BulkOperation& operation, const fabric::Completion& completion);
  /// Post what has waited, in order, as far as there is room.
  void flush(Endpoint& endpoint);
  /// Operations that will never be posted: their owners are told.
  void fail(Endpoint& endpoint) noexcept;

 private:
  [[nodiscard]] bool try_post(BulkOperation& operation);
  void give_back_buffers(BulkOperation& operation) noexcept;
  [[nodiscard]] bool try_fill_gather(BulkOperation& operation);

  BulkParts parts_;
  BufferPool scratch_;  ///< results of atomics that nobody wants
};

}  // namespace overlap::ring
