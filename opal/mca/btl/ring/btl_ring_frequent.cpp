// Frequently used buffers: which are, and what that takes on this machine (P3.1 to P3.4).
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_frequent.hpp"

#include "btl_ring_module.hpp"
#include "btl_ring_tunables.hpp"
#include "calibrate.hpp"

namespace overlap::ring {

bool FrequentBuffers::can_send_in_place() const noexcept {
  return tunables.frequent && tunables.rings != rings_choice::off &&
         device_.capabilities().gather_max >= 3;
}

bool FrequentBuffers::note_use(const void* address, std::uint32_t bytes) noexcept {
  if (bytes < tunables.frequent_min || !can_send_in_place()) [[likely]]
    return false;
  if (uses_ == nullptr) {
    const int rc = guarded([this]() -> int {
      set_costs();
      uses_ = std::make_unique<UseTable>(tunables.frequent_buckets, tunables.frequent_stop, model_);
      return OPAL_SUCCESS;
    });
    if (rc != OPAL_SUCCESS) return false;
  }
  const bool frequent = uses_->count(address, bytes);
  counters().frequent_buffers = uses_->frequent();
  counters().table_stops = uses_->stopped() ? 1 : 0;
  return frequent && lending_.try_lend();
}

CachedRegistration* FrequentBuffers::take(void* data, std::uint32_t bytes) {
  CachedRegistration* registration = registrations_.take(data, bytes, 0);
  if (registration == nullptr) uses_->forget(data);
  return registration;
}

void FrequentBuffers::note_returned(const Fragment& fragment) noexcept {
  const auto away = std::chrono::steady_clock::now() - fragment.lent_at;
  const auto bytes = static_cast<std::uint32_t>(fragment.segments[1].seg_len);
  lending_.returned(passes_ - fragment.lent_pass,
                    static_cast<std::uint64_t>(std::chrono::nanoseconds(away).count()),
                    costs_at(costs_, bytes).copy_ns);
}

/// What registering, copying and looking up cost: as the tunables say (ring-calibrate prints them),
/// or measured now, in about a millisecond.
void FrequentBuffers::set_costs() {
  const auto given = parse_costs(tunables.costs != nullptr ? tunables.costs : "");
  costs_ = given.value_or(MeasuredCosts{});
  if (!given) {
    CachedRegistration* kept = nullptr;
    alignas(64) static std::array<std::byte, 256> probe;
    costs_ = measure_costs(device_, [&]() {
      kept = registrations_.take(probe.data(), probe.size(), 0);
      if (kept != nullptr) registrations_.release(*kept);
    });
  }
  model_.set_speculation(tunables.frequent_fraction);
  fill(model_, costs_);
  if (tunables.verbose >= 1) {
    opal_output(0,
                "btl/ring: registering takes %u ns (%u ns for each page more), copying %u ns and "
                "%u ns/KiB, looking up %u ns",
                costs_.register_ns, costs_.register_page_ns, costs_.copy_ns, costs_.copy_kib_ns,
                costs_.lookup_ns);
  }
}

}  // namespace overlap::ring
