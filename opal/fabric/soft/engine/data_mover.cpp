// One copy by the host, and what its failure means for the task.
// SPDX-License-Identifier: BSD-3-Clause
#include "data_mover.hpp"

#include <algorithm>

namespace overlap::fabric::soft {
namespace {

[[nodiscard]] Moved failed(CompletionStatus fault) noexcept { return {Moved::Kind::failed, fault}; }

}  // namespace

Moved DataMover::move_piece(const Pair& pair, Task& task) const {
  const std::uint64_t bytes = std::min(task.available_bytes - task.moved_bytes, Host::piece_bytes);
  if (bytes == 0) return {};
  const auto local = access_.find_local(pair, task, bytes);
  if (!local) return failed(CompletionStatus::protection_error);
  const auto remote = access_.find_remote(pair, task, bytes);
  if (!remote)
    return failed(task.is_plain_send() ? CompletionStatus::remote_error
                                       : CompletionStatus::remote_access_error);

  const bool last = task.moved_bytes + bytes == task.total_bytes;
  const std::span<const Piece> own = local->span();
  const std::span<const Piece> other{&*remote, 1};
  const Client& peer = *pair.peer->client;
  const bool to_poster = task.is_read();
  const CompletionStatus peers_fault = CompletionStatus::remote_access_error;
  const CompletionStatus own_fault = CompletionStatus::protection_error;
  switch (to_poster ? host_.copy(*pair.client, own, peer, other, last)
                    : host_.copy(peer, other, *pair.client, own, last)) {
    case Copied::done: task.moved_bytes += bytes; return {};
    case Copied::source_failed: return failed(to_poster ? peers_fault : own_fault);
    case Copied::target_failed: return failed(to_poster ? own_fault : peers_fault);
    case Copied::source_gone:
    case Copied::target_gone: break;
  }
  return {Moved::Kind::held, {}};
}

Moved DataMover::move_atomic(const Pair& pair, Task& task) const {
  const Copied outcome = host_.atomic(*pair.peer->client, access_.find_atomic(pair, task),
                                      task.request(), task.old_value);
  if (outcome == Copied::done) return {};
  if (outcome == Copied::target_gone) return {Moved::Kind::held, {}};
  return failed(CompletionStatus::remote_access_error);
}

}  // namespace overlap::fabric::soft
