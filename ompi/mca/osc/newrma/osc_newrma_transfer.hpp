// Operations that a BTL carries out on the target's memory.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "ompi/mca/common/overlap/transfer.hpp"

#include "osc_newrma_operation.hpp"
#include "protocol/target_key.hpp"

namespace overlap::newrma {

class Window;

/// Can this BTL's puts or gets carry a call out? The data must be in one piece at both sides, and
/// messages behind the transfer must not overtake it: all go the same way.
[[nodiscard]] bool can_transfer(Endpoint& endpoint, const OperationCall& call);
/// Is a put at the target when it has ended here: a copy by this process, or one that the other
/// adapter has acknowledged? Then nothing needs to be asked of the target afterwards.
[[nodiscard]] bool ends_at_target(Endpoint& endpoint);

/// The put or get of one operation.
///
/// @thread  progress lock held
class OperationTransfer final : public Transfer, private KeyWaiter {
 public:
  OperationTransfer(Window& window, RmaOperation& operation)
      : window_(window), operation_(operation) {}
  /// Window::transfer_ended() follows, possibly before this returns.
  void go();

 private:
  [[nodiscard]] std::span<const std::byte> end_message(mca_btl_base_tag_t&) override { return {}; }
  void posted(bool) override {}
  void moved(std::uint64_t) override;
  void ended(bool ok) override;
  void refused_for_good(const Rail&) override {}
  void key_came() override;
  void post(std::span<const std::byte> key);

  Window& window_;
  RmaOperation& operation_;
  bool was_taken_ = false;  ///< by a BTL
};

}  // namespace overlap::newrma
