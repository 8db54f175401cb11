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

/// An adapter's puts and gets spare the target's processor, whatever their size.
std::uint64_t min_bytes_of(const Endpoint& endpoint, const Rail& rail) noexcept {
  if (needs_key(rail)) return 1;
  return endpoint.puts_are_messages() ? put_message_min_bytes : tunables.transfer_min;
}

}  // namespace

bool can_transfer(Endpoint& endpoint, const OperationCall& call) {
  if (call.kind != Kind::put && call.kind != Kind::get) return false;
  if (!call.target_data.is_contiguous() || !call.own_data().is_contiguous()) return false;
  const Rail* const rail = transfer_rail(endpoint);
  if (rail == nullptr || call.bytes() < min_bytes_of(endpoint, *rail) ||
      call.own_data().bytes() < call.bytes())
    return false;
  const std::uint32_t flag = is_get(call) ? MCA_BTL_FLAGS_GET : MCA_BTL_FLAGS_PUT;
  return (rail->bml_btl->btl_flags & flag) != 0 &&
         !(is_get(call) ? rail->get_failed : rail->put_failed);
}

bool ends_at_target(Endpoint& endpoint) {
  if (kernel_copies(endpoint)) return true;
  const Rail* const rail = transfer_rail(endpoint);
  return rail != nullptr && ((rail->btl().btl_flags & btl_flag_remote_completion) != 0 ||
                             (rail->capability != nullptr && rail->capability->puts_end_at_peer));
}

void OperationTransfer::go() {
  Channel& channel = window_.channel(operation_.call().target);
  if (!needs_key(*transfer_rail(*channel.endpoint()))) {
    post({});
    return;
  }
  switch (channel.target_key.want(*this)) {
    case TargetKey::Answer::ready: post(channel.target_key.bytes()); break;
    case TargetKey::Answer::ask: channel.send_key_wanted(); break;
    case TargetKey::Answer::wait: break;
    case TargetKey::Answer::refused: ended(false); break;
  }
}

void OperationTransfer::key_came() {
  const std::span<const std::byte> key =
      window_.channel(operation_.call().target).target_key.bytes();
  if (key.empty())
    ended(false);
  else
    post(key);
}

void OperationTransfer::post(std::span<const std::byte> key) {
  const OperationCall& call = operation_.call();
  was_taken_ = true;
  window_.note_transfer();
  start({.endpoint = window_.channel(call.target).endpoint(),
         .direction = is_get(call) ? Direction::get : Direction::put,
         .local = call.own_first_byte(),
         .remote_address = window_.memory().address_of(call.target) + call.start +
                           static_cast<std::uint64_t>(call.target_data.type->super.true_lb),
         .remote_key = key,
         .came_over = nullptr,
         .bytes = call.bytes()});
}

/// An interrupt thread that posts piece by piece looks again at once.
void OperationTransfer::moved(std::uint64_t) { process->driver.note_event(); }

void OperationTransfer::ended(bool ok) { window_.transfer_ended(operation_, was_taken_, ok); }

}  // namespace overlap::newrma
