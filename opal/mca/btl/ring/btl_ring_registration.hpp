// Registrations of user memory, kept by Open MPI's cache for as long as the memory is there (P3.5).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "opal/fabric/fabric.hpp"

#include "reclaim.hpp"

/// What a remote process needs to access registered memory, as Open MPI's PMLs pass it on; the same
/// bytes serve locally.
struct mca_btl_base_registration_handle_t {
  std::uint32_t local_key;
  std::uint32_t remote_key;
};

namespace overlap::ring {

/// An entry of Open MPI's registration cache with our keys; the cache makes and keeps these.
struct CachedRegistration {
  mca_rcache_base_registration_t base;  // first: the cache's view
  mca_btl_base_registration_handle_t handle;
  fabric::MemoryRegion region;

  /// The entry that a handle of ours lies in.
  [[nodiscard]] static CachedRegistration& of(mca_btl_base_registration_handle_t& handle) noexcept {
    return *reinterpret_cast<CachedRegistration*>(reinterpret_cast<char*>(&handle) -
                                                  offsetof(CachedRegistration, handle));
  }
};

/// Beside the access flags: BtlCapability::lasting_flag.
inline constexpr std::uint32_t lasting_registration = 1U << 30U;

class RegistrationCache final : public Reclaim {
 public:
  /// @param device  outlives the cache
  /// @throws std::runtime_error  one sentence for users
  explicit RegistrationCache(fabric::Device& device);
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  /// @param access  Open MPI's flags, 0 for memory that is only sent from; lasting_registration
  /// @returns  held until it is released; nullptr when it was refused
  [[nodiscard]] CachedRegistration* take(void* base, std::size_t bytes, std::uint32_t access);
  void release(CachedRegistration& registration) noexcept;
  /// Those of memory that the program has freed since, or else the one that was used least recently
  /// of those that nobody holds.
  [[nodiscard]] bool try_reclaim() noexcept override;

 private:
  static int register_entry(void* self, void* base, std::size_t bytes,
                            mca_rcache_base_registration_t* entry) noexcept;
  static int deregister_entry(void* self, mca_rcache_base_registration_t* entry) noexcept;
  std::uint64_t collect_freed() noexcept;

  fabric::Device& device_;
  mca_rcache_base_module_t* cache_;
  std::atomic<std::uint64_t> given_up_{0};  ///< registrations so far; a count, orders nothing
};

}  // namespace overlap::ring
