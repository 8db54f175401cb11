// What all providers share: words for completion codes.
// SPDX-License-Identifier: BSD-3-Clause
#include "fabric.hpp"

namespace overlap::fabric {

const char* text(CompletionStatus status) noexcept {
  switch (status) {
    case CompletionStatus::success: return "success";
    case CompletionStatus::length_error: return "the message is longer than the receive buffer";
    case CompletionStatus::protection_error: return "local memory is not registered";
    case CompletionStatus::remote_access_error:
      return "the peer's memory is not registered for this access";
    case CompletionStatus::remote_error: return "the peer's device reported an error";
    case CompletionStatus::retry_exceeded:
      return "the peer's device does not answer (transport retries exceeded)";
    case CompletionStatus::receive_not_ready_exceeded:
      return "the peer had no receive buffer (receiver-not-ready retries exceeded)";
    case CompletionStatus::flushed: return "the connection had failed before (flushed)";
    case CompletionStatus::other_error: return "an error of the device without a name of its own";
  }
  return "unknown completion status";
}

}  // namespace overlap::fabric
