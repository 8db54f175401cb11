// The tables that BTLs of this process have left.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/capability.hpp"

#include <algorithm>
#include <vector>

#include "opal/mca/common/overlap/never_destroyed.hpp"

namespace overlap {
namespace {

struct Offer {
  const mca_btl_base_module_t* btl;
  const BtlCapability* capability;
};

std::vector<Offer>& offers() {
  static auto& all = never_destroyed<std::vector<Offer>>();
  return all;
}

}  // namespace

void offer_capability(const mca_btl_base_module_t* btl, const BtlCapability* capability) {
  withdraw_capability(btl);
  offers().push_back({btl, capability});
}

void withdraw_capability(const mca_btl_base_module_t* btl) noexcept {
  std::erase_if(offers(), [btl](const Offer& offer) { return offer.btl == btl; });
}

const BtlCapability* find_capability(const mca_btl_base_module_t* btl) noexcept {
  const auto& all = offers();
  const auto found =
      std::find_if(all.begin(), all.end(), [btl](const Offer& offer) { return offer.btl == btl; });
  return found == all.end() ? nullptr : found->capability;
}

}  // namespace overlap
