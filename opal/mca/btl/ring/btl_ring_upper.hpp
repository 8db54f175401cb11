// The way up: what this BTL calls back.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <string>

#include "protocol/wire.hpp"

#include "btl_ring_endpoint.hpp"
#include "btl_ring_module.hpp"

namespace overlap::ring {

/// Calls the upper layer back, until it is closed: in finalize the components above may be unloaded
/// already. Peers of another job (MPI_Comm_spawn) are in nobody's del_procs and live until then.
///
/// @thread  Guard held
class UpperLayer {
 public:
  void set_error_callback(mca_btl_base_module_error_cb_fn_t callback) noexcept {
    error_callback_ = callback;
  }
  void close() noexcept { closed_ = true; }
  [[nodiscard]] bool closed() const noexcept { return closed_; }

  void deliver(Endpoint& endpoint, const MessageHeader& header, const std::byte* payload) {
    if (closed_) [[unlikely]]
      return;
    deliver_message(&ring_module.base, &endpoint.handle, header.tag, payload, header.size_bytes);
  }
  /// A fragment's buffer is free.
  void sent(Fragment& fragment, int status) noexcept;
  /// A put, get or atomic has ended; one without a callback says nothing.
  void ended(const BulkOperation& operation, int status) noexcept;
  /// The end of a connection that nobody has announced. @param why  one clause in words
  void report_lost(Endpoint& endpoint, const std::string& why) noexcept;

 private:
  mca_btl_base_module_error_cb_fn_t error_callback_ = nullptr;
  bool closed_ = false;
};

/// Post a request for which the account has room.
/// @param upper  hears of a connection that is lost with it
/// @returns  false: that has happened, and nothing of the request is with the device
[[nodiscard]] inline bool post(UpperLayer& upper, Connection& connection,
                               const fabric::WorkRequest& request) {
  const fabric::Status status = connection.queue_pair->post(request);
  if (status == fabric::Status::done) [[likely]] {
    connection.account.posted(request.signalled);
    ++connection.posted;
    return true;
  }
  // The account keeps the queue from overflowing, so this is a failed connection; its event or
  // completions say why.
  connection.endpoint.ending.take(EndingEvent::post_failed);
  if (status != fabric::Status::broken)
    upper.report_lost(connection.endpoint, "the device refused a work request");
  return false;
}

}  // namespace overlap::ring
