// Memory of a request as BTLs know it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "ompi/mca/common/overlap/endpoint.hpp"

namespace overlap {

/// One registration of one buffer with one BTL, or the knowledge that the BTL needs none.
///
/// @thread  progress lock held for every call
class Registration {
 public:
  Registration() = default;
  ~Registration() { drop(); }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  /// Let the other side access a buffer: choose a rail that can and register there.
  ///
  /// @param access         MCA_BTL_REG_FLAG_REMOTE_READ or ..._WRITE
  /// @param key_max_bytes  longest key that the message can carry
  /// @returns  false: no rail can, or none has registered memory left; the data must be pushed
  [[nodiscard]] bool expose(Endpoint& endpoint, void* base, std::uint64_t bytes,
                            std::uint32_t access, std::size_t key_max_bytes);
  /// Register local memory for a transfer where the rail needs that.
  ///
  /// @returns  false: it needs that and refuses
  [[nodiscard]] bool pin(Rail& rail, void* base, std::uint64_t bytes, std::size_t threshold_bytes,
                         std::uint32_t access);
  void drop() noexcept {
    if (rail_ != nullptr) [[unlikely]]
      deregister();
  }

  /// The rail it is for; nullptr: nothing is registered.
  [[nodiscard]] Rail* rail() const noexcept { return rail_; }
  [[nodiscard]] mca_btl_base_registration_handle_t* handle() const noexcept { return handle_; }
  /// The key that the other side needs; empty where the address alone does.
  [[nodiscard]] std::span<const std::byte> key() const noexcept;

 private:
  void deregister() noexcept;

  Rail* rail_ = nullptr;
  mca_btl_base_registration_handle_t* handle_ = nullptr;
};

}  // namespace overlap
