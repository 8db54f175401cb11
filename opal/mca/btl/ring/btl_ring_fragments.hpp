// Messages of the upper layer on their way out, and the memory that they are made from.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "btl_ring_registration.hpp"

namespace overlap::ring {

struct Endpoint;

/// A message of the upper layer on its way out.
///
/// segments[0] is the header that the upper layer writes, with the data behind it unless
/// segments[1] points to the user's buffer.
struct Fragment {
  mca_btl_base_descriptor_t base;  // first: Open MPI's view
  std::array<mca_btl_base_segment_t, 2> segments;
  Endpoint* endpoint;
  CachedRegistration* in_place;                   ///< segments[1] is sent from where it lies
  std::uint32_t capacity_bytes;                   ///< of storage()
  std::uint32_t lent_pass;                        ///< of progress in which it was sent in place
  std::chrono::steady_clock::time_point lent_at;  ///< the same
  mca_btl_base_tag_t tag;

  [[nodiscard]] std::byte* storage() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  [[nodiscard]] std::uint32_t bytes() const noexcept {
    return static_cast<std::uint32_t>(segments[0].seg_len +
                                      (base.des_segment_count > 1 ? segments[1].seg_len : 0));
  }
};

/// Fragments that are not in use, in three sizes.
///
/// @thread  Guard held
class FragmentPool {
 public:
  /// Storage of a fragment for a control message of an upper layer: thousands of them may wait.
  static constexpr std::uint32_t control_bytes = 256;

  /// @param small_bytes, large_bytes  of storage; small_bytes may be the larger one
  FragmentPool(std::uint32_t small_bytes, std::uint32_t large_bytes) noexcept
      : sizes_{{{control_bytes, {}}, {small_bytes, {}}, {large_bytes, {}}}} {}
  ~FragmentPool();
  FragmentPool(const FragmentPool&) = delete;
  FragmentPool& operator=(const FragmentPool&) = delete;

  /// @param flags  of the descriptor
  /// @returns  one with a segment of so many bytes; nullptr: no memory, or none is so large
  [[nodiscard]] Fragment* take(std::uint32_t bytes, std::uint32_t flags) noexcept;
  void give_back(Fragment& fragment) noexcept;

 private:
  struct Size {
    std::uint32_t bytes;
    std::vector<Fragment*> spare;
  };
  std::array<Size, 3> sizes_;  ///< the first that a fragment fits into is its
};

}  // namespace overlap::ring
