// The way up: what this BTL calls back.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_upper.hpp"

#include "btl_ring_fault.hpp"

namespace overlap::ring {

void UpperLayer::sent(Fragment& fragment, int status) noexcept {
  if (fragment.base.des_cbfunc != nullptr && !closed_)
    fragment.base.des_cbfunc(&ring_module.base, &fragment.endpoint->handle, &fragment.base, status);
}

void UpperLayer::ended(const BulkOperation& operation, int status) noexcept {
  if (operation.done == nullptr || closed_) return;
  operation.done(&ring_module.base, &operation.endpoint->handle, operation.local_address,
                 operation.local_handle, operation.context, operation.data, status);
}

void UpperLayer::report_lost(Endpoint& endpoint, const std::string& why) noexcept {
  if (endpoint.ending.take(EndingEvent::loss_known) != EndingAction::report_lost || closed_) return;
  tell_lost(endpoint, why);
  if (error_callback_ != nullptr) {
    error_callback_(&ring_module.base, MCA_BTL_ERROR_FLAGS_FATAL, &endpoint.proc,
                    const_cast<char*>(why.c_str()));
  }
}

}  // namespace overlap::ring
