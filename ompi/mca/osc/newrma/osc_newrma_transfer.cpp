// Puts and gets by a BTL.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_transfer.hpp"

#include "ompi/mca/common/overlap/process.hpp"

#include "osc_newrma_window.hpp"

namespace overlap::newrma {
namespace {

// Below, the copies into messages cost less than a message for the put.
constexpr std::uint64_t put_message_min_bytes = std::uint64_t{1} << 16U;

bool is_get(const OperationCall& call) noexcept { return call.kind == Kind::get; }

const TypedCount& own_data(const OperationCall& call) noexcept {
  return is_get(call) ? call.result_data : call.origin_data;
}

std::byte* start_of(const void* buffer, const TypedCount& data) noexcept {
  return static_cast<std::byte*>(const_cast<void*>(buffer)) + data.type->super.true_lb;
}

}  // namespace

bool can_transfer(Endpoint& endpoint, const OperationCall& call) {
  if (call.kind != Kind::put && call.kind != Kind::get) return false;
  const std::uint64_t min_bytes =
      endpoint.puts_are_messages() ? put_message_min_bytes : tunables.transfer_min;
  if (call.bytes() < min_bytes || own_data(call).bytes() < call.bytes()) return false;
  if (!call.target_data.is_contiguous() || !own_data(call).is_contiguous()) return false;
  if (endpoint.memory_rails().size() != 1 || endpoint.eager_rails().size() != 1) return false;
  const Rail& rail = endpoint.memory_rails().front();
  if (&rail.btl() != &endpoint.eager_rails().front().btl()) return false;
  const std::uint32_t flag = is_get(call) ? MCA_BTL_FLAGS_GET : MCA_BTL_FLAGS_PUT;
  return rail.btl().btl_register_mem == nullptr && (rail.bml_btl->btl_flags & flag) != 0 &&
         !(is_get(call) ? rail.get_failed : rail.put_failed);
}

void OperationTransfer::go(Endpoint& endpoint, std::uint64_t memory) {
  const OperationCall& call = operation_.call();
  start({.endpoint = &endpoint,
         .direction = is_get(call) ? Direction::get : Direction::put,
         .local = is_get(call) ? start_of(call.result, call.result_data)
                               : start_of(call.origin, call.origin_data),
         .remote_address =
             memory + call.start + static_cast<std::uint64_t>(call.target_data.type->super.true_lb),
         .remote_key = {},
         .came_over = nullptr,
         .bytes = call.bytes()});
}

/// An interrupt thread that posts piece by piece looks again at once.
void OperationTransfer::moved(std::uint64_t) { process->driver.note_event(); }

void OperationTransfer::ended(bool ok) { window_.transfer_ended(operation_, ok); }

}  // namespace overlap::newrma
