// RTRs that have outlived their receives, and fragments that come before their RTR-ACK.
// SPDX-License-Identifier: BSD-3-Clause
#include "ghosts.hpp"

#include <algorithm>
#include <iterator>

namespace overlap::speculative {

Ghost& Ghosts::add(Peer& peer, std::int32_t tag) {
  std::list<Ghost>& ghosts = all_[{&peer, tag}];
  Ghost& ghost = ghosts.emplace_back();
  ghost.place = std::prev(ghosts.end());
  ghost.peer = &peer;
  ghost.tag = tag;
  return ghost;
}

void Ghosts::remove(Ghost& ghost) noexcept {
  const auto found = all_.find({ghost.peer, ghost.tag});
  found->second.erase(ghost.place);
  if (found->second.empty()) all_.erase(found);
}

bool Ghosts::any(const Peer& peer, std::int32_t tag) const noexcept {
  const auto found = all_.find({&peer, tag});
  // The youngest first: messages use the RTRs in order.
  return found != all_.end() &&
         std::any_of(found->second.rbegin(), found->second.rend(),
                     [](const Ghost& ghost) { return ghost.state == ReceiveState::ghost; });
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
