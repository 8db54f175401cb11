// Frequently used buffers: which are, and which of their messages go without a copy (P3.1 to P3.4).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "btl_ring_fragments.hpp"
#include "btl_ring_registration.hpp"
#include "protocol/cost_model.hpp"
#include "protocol/lending.hpp"
#include "protocol/use_table.hpp"

namespace overlap::ring {

/// @thread  Guard held
class FrequentBuffers {
 public:
  /// Both outlive it.
  FrequentBuffers(fabric::Device& device, RegistrationCache& registrations) noexcept
      : device_(device), registrations_(registrations) {}

  /// Header, payload and tail of a message without a copy take three gather entries.
  [[nodiscard]] bool can_send_in_place() const noexcept;
  /// Count one use. @returns true: send it from where it lies
  [[nodiscard]] bool note_use(const void* address, std::uint32_t bytes) noexcept;
  /// A registration of the cache, which memory hooks keep true: a buffer that was freed or mapped
  /// anew is not found there (P3.5).
  /// @returns nullptr when it is refused: copy
  [[nodiscard]] CachedRegistration* take(void* data, std::uint32_t bytes);
  /// One more pass of progress: how long a buffer is away is counted in these, too.
  void note_pass() noexcept { ++passes_; }
  /// A fragment is sent in place.
  void note_lent(Fragment& fragment) const noexcept {
    fragment.lent_pass = passes_;
    fragment.lent_at = std::chrono::steady_clock::now();
  }
  /// Its buffer is the sender's again.
  void note_returned(const Fragment& fragment) noexcept;

 private:
  void set_costs();

  fabric::Device& device_;
  RegistrationCache& registrations_;
  MeasuredCosts costs_;
  CostModel model_;
  Lending lending_;
  std::uint32_t passes_ = 0;        ///< wraps
  std::unique_ptr<UseTable> uses_;  ///< made with the first message that it could count
};

}  // namespace overlap::ring
