// Frequently used buffers: which are, and what that takes on this machine (P3.1 to P3.4).
#include "btl_ring.hpp"

#include "calibrate.hpp"

namespace overlap::ring {

bool Transport::note_use(const void* address, std::uint32_t bytes) noexcept {
  if (!tunables.frequent || !tunables.rings || bytes < tunables.frequent_min) [[likely]]
    return false;
  if (uses_ == nullptr) {
    const int rc = guarded([this]() -> int {
      set_costs();
      uses_ = std::make_unique<UseTable>(tunables.frequent_buckets, tunables.frequent_stop, costs_);
      return OPAL_SUCCESS;
    });
    if (rc != OPAL_SUCCESS) return false;
  }
  const bool frequent = uses_->count(address, bytes);
  counters().frequent_buffers = uses_->frequent();
  counters().table_stops = uses_->stopped() ? 1 : 0;
  return frequent;
}

/// A registration of the cache, which memory hooks keep true: a buffer that was freed or mapped anew is not found there (P3.5).
CachedRegistration* Transport::register_frequent(void* data, std::uint32_t bytes) {
  CachedRegistration* registration = register_cached(data, bytes, 0);
  if (registration == nullptr) uses_->forget(data);
  return registration;
}

/// What registering, copying and looking up cost: as the tunables say (ring-calibrate prints them), or measured now, in about a
/// millisecond.
void Transport::set_costs() {
  MeasuredCosts costs{tunables.cost_register, tunables.cost_register_page, tunables.cost_copy,
                      tunables.cost_copy_kib, tunables.cost_lookup};
  if (tunables.cost_register == 0) {
    CachedRegistration* kept = nullptr;
    alignas(64) static std::array<std::byte, 256> probe;
    costs = measure_costs(*device_, [&]() {
      kept = register_cached(probe.data(), probe.size(), 0);
      if (kept != nullptr) release(*kept);
    });
  }
  costs_.set_speculation(tunables.frequent_fraction);
  fill(costs_, costs);
  if (tunables.verbose >= 1) {
    opal_output(0,
                "btl/ring: registering takes %u ns (%u ns for each page more), copying %u ns and "
                "%u ns/KiB, looking up %u ns",
                costs.register_ns, costs.register_page_ns, costs.copy_ns, costs.copy_kib_ns,
                costs.lookup_ns);
  }
}

}  // namespace overlap::ring
