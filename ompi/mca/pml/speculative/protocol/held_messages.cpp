// The store of messages that cannot be placed yet, and the incarnations known dead.
// SPDX-License-Identifier: BSD-3-Clause
#include "held_messages.hpp"

namespace overlap::speculative {

void HeldMessages::put(const StreamIdentity& identity, const IncomingMessage& message) {
  held_.push_back({identity, KeptMessage(message)});
  held_bytes_ += message.bytes.size();
}

std::size_t Tombstones::slot(const StreamIdentity& identity) noexcept {
  const std::uint64_t key =
      std::uint64_t{identity.context} << 32U | static_cast<std::uint32_t>(identity.source);
  return (key * 0x9e3779b97f4a7c15U >> 32U) % graves;
}

void Tombstones::bury(const StreamIdentity& identity) {
  if (identity.incarnation == 0) return;  // MPI_COMM_WORLD's streams are never taken for others
  if (dead_.empty()) dead_.resize(graves);
  dead_[slot(identity)] = identity;
}

void Tombstones::revive(const StreamIdentity& identity) noexcept {
  if (knows(identity)) dead_[slot(identity)] = {};
}

bool Tombstones::knows(const StreamIdentity& identity) const noexcept {
  return !dead_.empty() && identity.incarnation != 0 && dead_[slot(identity)] == identity;
}

}  // namespace overlap::speculative
