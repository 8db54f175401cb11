// Fragments that are sent, whose owners have to be called back.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_sent.hpp"

namespace overlap::ring {

void SentFragments::end_lending(Fragment& fragment) noexcept {
  if (fragment.in_place == nullptr) return;
  registrations_.release(*fragment.in_place);
  fragment.in_place = nullptr;
}

void SentFragments::finish(Fragment& fragment, int status) noexcept {
  end_lending(fragment);
  // The callback may free a fragment that is not ours.
  const bool ours = (fragment.base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) != 0;
  upper_.sent(fragment, status);
  if (ours) fragments_.give_back(fragment);
}

void SentFragments::discard(Fragment& fragment) noexcept {
  end_lending(fragment);
  if ((fragment.base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) != 0)
    fragments_.give_back(fragment);
}

}  // namespace overlap::ring
