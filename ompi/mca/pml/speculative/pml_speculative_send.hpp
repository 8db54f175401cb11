// The arguments of a send, and how an eager message gets to a BTL.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pml_speculative_byte_convertor.hpp"
#include "pml_speculative_request.hpp"

#include "protocol/send_path.hpp"

namespace overlap::speculative {

/// The arguments of a send.
struct SendCall {
  const void* buffer;
  std::size_t count;
  ompi_datatype_t* type;
  int destination;
  int tag;
  mca_pml_base_send_mode_t mode;
  ompi_communicator_t* comm;
  bool waits = false;  ///< in MPI until the message is complete

  [[nodiscard]] std::uint64_t bytes() const noexcept { return type->super.size * count; }
  [[nodiscard]] const void* start() const noexcept {
    return static_cast<const char*>(buffer) + type->super.true_lb;
  }
  [[nodiscard]] bool buffered() const noexcept { return mode == MCA_PML_BASE_SEND_BUFFERED; }
};

/// @thread  progress lock held, as for all of these
[[nodiscard]] SendRequest& make_request(const SendCall& call, Endpoint& endpoint, bool persistent);
/// Make a request active, with its convertor at the start of the data and the status that its
/// completion reports: one-sided components read tag, source and count in the callback of a send.
void activate(SendRequest& request) noexcept;
/// Copy a buffered send's data into the user's attached buffer; the call is complete with that.
/// @returns  false: the attached buffer is full
[[nodiscard]] bool move_to_attached_buffer(SendRequest& request);

extern ByteConvertor byte_convertor;
inline constexpr std::uint32_t eager_flags =
    MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

[[gnu::always_inline]] inline SendFacts facts_of(const SendCall& call, const Endpoint& endpoint,
                                                 const Rail& rail) noexcept {
  return {.bytes = call.bytes(),
          .eager_bytes = endpoint.eager_bytes,
          .zero_copy_bytes = call.buffered() ? 0 : zero_copy_bytes(rail),
          .can_inject = rail.btl().btl_sendi != nullptr,
          .plain = is_contiguous(*call.type, call.count),
          .crowded = endpoint.crowded(),
          .refuses_for_room = rail.refuses_for_room};
}

/// Send an eager message, whose place in the stream is taken, behind its header.
/// @param refused  the BTL has refused to inject the message
/// @param request  in: the one it must use, or nullptr; out: set if the message outlives the call
void send_by_path(std::span<const std::byte> header, mca_btl_base_tag_t tag, const SendCall& call,
                  Endpoint& endpoint, Rail& rail, bool refused, SendRequest*& request);

}  // namespace overlap::speculative
