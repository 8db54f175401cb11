// RTRs that have outlived their receives, and fragments that come before their RTR-ACK.
// SPDX-License-Identifier: BSD-3-Clause
#include "ghosts.hpp"

#include <algorithm>

namespace overlap::speculative {

bool Ghosts::any(const Peer& peer, std::int32_t tag) const noexcept {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& ghost) {
    return ghost->state == ReceiveState::ghost && ghost->peer == &peer && ghost->tag == tag;
  });
}

bool EarlyFragments::put(Handle handle, std::uint64_t offset_bytes,
                         std::span<const std::byte> payload, std::uint64_t capacity_bytes) {
  Fragments& fragments = of_[handle];
  if (payload.size() > capacity_bytes - fragments.bytes) return false;
  fragments.bytes += payload.size();
  fragments.all.push_back({offset_bytes, {payload.begin(), payload.end()}});
  return true;
}

std::vector<EarlyFragments::Fragment> EarlyFragments::take(Handle handle) {
  const auto found = of_.find(handle);
  if (found == of_.end()) return {};
  std::vector<Fragment> all = std::move(found->second.all);
  of_.erase(found);
  return all;
}

}  // namespace overlap::speculative
