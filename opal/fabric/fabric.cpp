// What all providers share: words for completion codes, and the refusal of what only some can do.
// SPDX-License-Identifier: BSD-3-Clause
#include "management_queue.hpp"

namespace overlap::fabric {
namespace {

[[noreturn]] void refuse_management(const Device& device) {
  throw Error(Error::Kind::bad_option,
              device.capabilities().name +
                  " has no management queues; lists of tasks must be run by the process itself");
}

}  // namespace

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

std::unique_ptr<CompletionQueue> Device::make_counting_queue() { refuse_management(*this); }

std::unique_ptr<ManagementQueue> Device::make_management_queue(std::uint32_t) {
  refuse_management(*this);
}

}  // namespace overlap::fabric
