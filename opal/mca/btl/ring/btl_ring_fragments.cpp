// The memory that messages of the upper layer are made from.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_fragments.hpp"

#include "btl_ring_module.hpp"

namespace overlap::ring {

FragmentPool::~FragmentPool() {
  for (Size& size : sizes_) {
    for (Fragment* fragment : size.spare) std::free(fragment);
  }
}

Fragment* FragmentPool::take(std::uint32_t bytes, std::uint32_t flags) noexcept {
  const auto size = std::ranges::find_if(sizes_, [&](const Size& at) { return bytes <= at.bytes; });
  if (size == sizes_.end()) return nullptr;
  Fragment* fragment = nullptr;
  if (!size->spare.empty()) {
    fragment = size->spare.back();
    size->spare.pop_back();
  } else {
    fragment = static_cast<Fragment*>(std::malloc(sizeof(Fragment) + size->bytes));
    if (fragment == nullptr) return nullptr;
    OBJ_CONSTRUCT(&fragment->base, mca_btl_base_descriptor_t);
    fragment->capacity_bytes = size->bytes;
  }
  fragment->base.des_segments = fragment->segments.data();
  fragment->base.des_segment_count = 1;
  fragment->base.des_cbfunc = nullptr;
  fragment->base.des_cbdata = nullptr;
  fragment->base.des_context = nullptr;
  fragment->base.des_flags = flags;
  fragment->base.order = MCA_BTL_NO_ORDER;
  fragment->segments[0].seg_addr.pval = fragment->storage();
  fragment->segments[0].seg_len = bytes;
  fragment->segments[1].seg_len = 0;
  fragment->in_place = nullptr;
  return fragment;
}

void FragmentPool::give_back(Fragment& fragment) noexcept {
  const auto size = std::ranges::find(sizes_, fragment.capacity_bytes, &Size::bytes);
  guarded([&]() -> int {
    size->spare.push_back(&fragment);
    return OPAL_SUCCESS;
  });
}

}  // namespace overlap::ring
