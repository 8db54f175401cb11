// Registered memory.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/registration.hpp"

namespace overlap {

bool Registration::expose(Endpoint& endpoint, void* base, std::uint64_t bytes, std::uint32_t access,
                          std::size_t key_max_bytes) {
  drop();
  const bool read = (access & MCA_BTL_REG_FLAG_REMOTE_READ) != 0;
  const std::uint32_t needed = read ? MCA_BTL_FLAGS_GET : MCA_BTL_FLAGS_PUT;
  for (std::size_t tries = endpoint.memory_rails().size(); tries > 0; --tries) {
    Rail& rail = endpoint.next_memory();
    const mca_btl_base_module_t& btl = rail.btl();
    if ((rail.bml_btl->btl_flags & needed) == 0 || (read ? rail.get_failed : rail.put_failed) ||
        btl.btl_registration_handle_size > key_max_bytes) {
      continue;
    }
    if (btl.btl_register_mem != nullptr) {
      mca_bml_base_register_mem(rail.bml_btl, base, bytes, access, &handle_);
      if (handle_ == nullptr) continue;
    }
    rail_ = &rail;
    return true;
  }
  return false;
}

bool Registration::pin(Rail& rail, void* base, std::uint64_t bytes, std::size_t threshold_bytes,
                       std::uint32_t access) {
  drop();
  if (rail.btl().btl_register_mem != nullptr && bytes > threshold_bytes) {
    mca_bml_base_register_mem(rail.bml_btl, base, bytes, access, &handle_);
    if (handle_ == nullptr) return false;
  }
  rail_ = &rail;
  return true;
}

void Registration::deregister() noexcept {
  if (handle_ != nullptr) mca_bml_base_deregister_mem(rail_->bml_btl, handle_);
  rail_ = nullptr;
  handle_ = nullptr;
}

std::span<const std::byte> Registration::key() const noexcept {
  if (handle_ == nullptr) return {};
  return {reinterpret_cast<const std::byte*>(handle_), rail_->btl().btl_registration_handle_size};
}

}  // namespace overlap
