// Actions, and the headers of numbered messages.
// SPDX-License-Identifier: BSD-3-Clause
#include "outbox.hpp"

namespace overlap::speculative {

SequencedHeader Outbox::reverse_head(Kind kind, Peer& peer, std::int32_t tag) noexcept {
  return {kind_version(kind),
          0,
          peer.comm->context,
          peer.comm->my_rank,
          tag,
          peer.next_reverse++,
          static_cast<std::uint16_t>(peer.bound)};
}

Action& Outbox::emit(Action::Kind kind) {
  Action& action = actions_.emplace_back();
  action.kind = kind;
  return action;
}

Action& Outbox::emit_targeted(Peer& peer, Kind kind, std::uint8_t flags, Handle target) {
  return emit_control(peer, TargetedHeader{kind_version(kind), flags, 0, 0, target});
}

}  // namespace overlap::speculative
