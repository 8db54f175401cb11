// Operations that a BTL carries out on the target's memory.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "ompi/mca/common/overlap/transfer.hpp"

#include "osc_newrma_operation.hpp"

namespace overlap::newrma {

class Window;

/// Can this BTL's puts or gets carry a call out, by the address alone? The data must be in one
/// piece at both sides, and messages behind the transfer must not overtake it: all go the same way.
/// Where a put is a copy by this process nothing needs to be asked of the target afterwards.
[[nodiscard]] bool can_transfer(Endpoint& endpoint, const OperationCall& call);

/// The put or get of one operation.
///
/// @thread  progress lock held
class OperationTransfer final : public Transfer {
 public:
  OperationTransfer(Window& window, RmaOperation& operation)
      : window_(window), operation_(operation) {}
  /// Window::transfer_ended() follows, possibly before this returns.
  /// @param memory  the target's window, as the target knows it
  void go(Endpoint& endpoint, std::uint64_t memory);

 private:
  [[nodiscard]] std::span<const std::byte> end_message(mca_btl_base_tag_t&) override { return {}; }
  void posted(bool) override {}
  void moved(std::uint64_t) override;
  void ended(bool ok) override;
  void refused_for_good(const Rail&) override {}

  Window& window_;
  RmaOperation& operation_;
};

}  // namespace overlap::newrma
