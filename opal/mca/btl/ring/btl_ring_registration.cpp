// The registration cache's way to the device.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_registration.hpp"

#include <cerrno>
#include <stdexcept>

#include "btl_ring_fault.hpp"
#include "btl_ring_tunables.hpp"

namespace overlap::ring {

int RegistrationCache::register_entry(void* self, void* base, std::size_t bytes,
                                      mca_rcache_base_registration_t* entry) noexcept {
  auto& registration = *reinterpret_cast<CachedRegistration*>(entry);
  const auto flags = static_cast<unsigned>(entry->access_flags);
  unsigned rights = fabric::access::local_write;
  if ((flags & MCA_RCACHE_ACCESS_REMOTE_READ) != 0) rights |= fabric::access::remote_read;
  if ((flags & MCA_RCACHE_ACCESS_REMOTE_WRITE) != 0) rights |= fabric::access::remote_write;
  if ((flags & MCA_RCACHE_ACCESS_REMOTE_ATOMIC) != 0) rights |= fabric::access::remote_atomic;
  auto& device = static_cast<RegistrationCache*>(self)->device_;
  fabric::Status status = device.register_memory(base, bytes, rights, {}, registration.region);
  // Memory that may only be read can be sent from, not received into.
  if (status == fabric::Status::refused &&
      (flags & (MCA_RCACHE_ACCESS_LOCAL_WRITE | MCA_RCACHE_ACCESS_REMOTE_WRITE)) == 0) {
    status = device.register_memory(base, bytes, rights & fabric::access::remote_read, {},
                                    registration.region);
  }
  if (status != fabric::Status::done) return OPAL_ERR_OUT_OF_RESOURCE;  // the cache makes room
  registration.handle = {registration.region.local_key, registration.region.remote_key};
  ++counters().registrations;
  return OPAL_SUCCESS;
}

int RegistrationCache::deregister_entry(void* self,
                                        mca_rcache_base_registration_t* entry) noexcept {
  auto& cache = *static_cast<RegistrationCache*>(self);
  cache.device_.deregister_memory(reinterpret_cast<CachedRegistration*>(entry)->region);
  cache.given_up_.fetch_add(1, std::memory_order_relaxed);
  return OPAL_SUCCESS;
}

RegistrationCache::RegistrationCache(fabric::Device& device) : device_(device) {
  mca_rcache_base_resources_t resources{};
  static char name[] = "ring";
  resources.cache_name = name;
  resources.reg_data = this;
  resources.sizeof_reg = sizeof(CachedRegistration);
  resources.register_mem = register_entry;
  resources.deregister_mem = deregister_entry;
  cache_ = mca_rcache_base_module_create("grdma", this, &resources);
  if (cache_ == nullptr)
    throw std::runtime_error(
        "btl/ring: Open MPI's registration cache (rcache/grdma) is not available");
}

RegistrationCache::~RegistrationCache() { mca_rcache_base_module_destroy(cache_); }

CachedRegistration* RegistrationCache::take(void* base, std::size_t bytes, std::uint32_t access) {
  mca_rcache_base_registration_t* found = nullptr;
  const std::uint32_t flags =
      (access & lasting_registration) != 0 ? MCA_RCACHE_FLAGS_CACHE_BYPASS : 0;
  const int rc =
      cache_->rcache_register(cache_, base, bytes, flags,
                              static_cast<std::int32_t>(access & ~lasting_registration), &found);
  if (rc != OPAL_SUCCESS) {
    tell_registration_refused(bytes);
    return nullptr;
  }
  return reinterpret_cast<CachedRegistration*>(found);
}

void RegistrationCache::release(CachedRegistration& registration) noexcept {
  cache_->rcache_deregister(cache_, &registration.base);
}

/// The cache keeps what is freed registered until the next registration, and evicts none of it.
/// @returns  registrations given up
std::uint64_t RegistrationCache::collect_freed() noexcept {
  std::uint64_t word = 0;
  mca_rcache_base_registration_t* made = nullptr;
  const std::uint64_t before = given_up_.load(std::memory_order_relaxed);
  const int rc =
      cache_->rcache_register(cache_, &word, sizeof word, MCA_RCACHE_FLAGS_CACHE_BYPASS, 0, &made);
  const std::uint64_t given_up = given_up_.load(std::memory_order_relaxed) - before;
  if (rc == OPAL_SUCCESS) cache_->rcache_deregister(cache_, made);
  return given_up;
}

bool RegistrationCache::try_reclaim() noexcept {
  const int error = errno;
  const bool reclaimed = collect_freed() != 0 || cache_->rcache_evict(cache_);
  errno = error;
  return reclaimed;
}

}  // namespace overlap::ring
