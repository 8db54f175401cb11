// Keys, bounds and rights of work requests.
// SPDX-License-Identifier: BSD-3-Clause
#include "access_check.hpp"

#include <algorithm>

namespace overlap::fabric::soft {
namespace {

/// What a poster's own memory must allow.
[[nodiscard]] unsigned local_rights(const Task& task) noexcept {
  return task.is_read() ? access::local_write : 0;
}

[[nodiscard]] unsigned remote_rights(const Task& task) noexcept {
  if (task.is_atomic()) return access::remote_atomic;
  return task.is_read() ? access::remote_read : access::remote_write;
}

}  // namespace

CompletionStatus AccessCheck::check_local(const Pair& pair, const Task& task) const noexcept {
  const WorkRequest& request = task.request();
  if (task.total_bytes > message_max_bytes ||
      (task.is_atomic() && task.total_bytes != sizeof(std::uint64_t))) {
    return CompletionStatus::length_error;
  }
  if (request.inline_data) return CompletionStatus::success;
  for (std::size_t i = 0; i < request.gather_count; ++i) {
    const Gather& part = request.gather[i];
    if (part.bytes == 0) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(part.address);
    if (regions_.find(part.local_key, pair.client->id, address, part.bytes, local_rights(task)) ==
        nullptr)
      return CompletionStatus::protection_error;
  }
  return CompletionStatus::success;
}

CompletionStatus AccessCheck::check_remote(const Pair& pair, const Task& task) const noexcept {
  const WorkRequest& request = task.request();
  if (task.is_plain_send() || task.total_bytes == 0) return CompletionStatus::success;
  const unsigned rights = remote_rights(task);
  const bool aligned = !task.is_atomic() || request.remote_address % sizeof(std::uint64_t) == 0;
  const bool allowed = aligned && (pair.peer->remote_rights & rights) != 0 &&
                       regions_.find(request.remote_key, pair.peer->client->id,
                                     request.remote_address, task.total_bytes, rights) != nullptr;
  return allowed ? CompletionStatus::success : CompletionStatus::remote_access_error;
}

CompletionStatus AccessCheck::check_receive(const Pair& receiver, const Task& task) const noexcept {
  if (!task.is_plain_send()) return CompletionStatus::success;  // its bytes go elsewhere
  const Receive& receive = task.receive;
  if (task.total_bytes > receive.bytes) return CompletionStatus::length_error;
  const bool writable = task.total_bytes == 0 ||
                        regions_.find(receive.local_key, receiver.client->id, receive.address,
                                      task.total_bytes, access::local_write) != nullptr;
  return writable ? CompletionStatus::success : CompletionStatus::protection_error;
}

std::optional<LocalPieces> AccessCheck::find_local(const Pair& pair, const Task& task,
                                                   std::uint64_t bytes) const noexcept {
  const WorkRequest& request = task.request();
  const std::uint64_t from = task.moved_bytes;
  LocalPieces found;
  if (request.inline_data) {
    found.pieces[found.count++] = {0, bytes,
                                   const_cast<std::byte*>(task.submission.inline_data) + from};
    return found;
  }
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < request.gather_count; offset += request.gather[i].bytes, ++i) {
    const Gather& part = request.gather[i];
    const std::uint64_t first = std::max(from, offset);
    const std::uint64_t last = std::min(from + bytes, offset + part.bytes);
    if (first >= last) continue;
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(part.address) + (first - offset);
    const Region* region =
        regions_.find(part.local_key, pair.client->id, address, last - first, local_rights(task));
    if (region == nullptr) return std::nullopt;
    found.pieces[found.count++] = {address, last - first, region->mapped(address)};
  }
  return found;
}

std::optional<Piece> AccessCheck::find_remote(const Pair& pair, const Task& task,
                                              std::uint64_t bytes) const noexcept {
  const WorkRequest& request = task.request();
  if (task.is_atomic()) {
    const auto* value = reinterpret_cast<const std::byte*>(&task.old_value);
    return Piece{0, bytes, const_cast<std::byte*>(value)};
  }
  const bool plain = task.is_plain_send();
  const std::uint64_t address =
      (plain ? task.receive.address : request.remote_address) + task.moved_bytes;
  const std::uint32_t key = plain ? task.receive.local_key : request.remote_key;
  const unsigned rights = plain ? access::local_write : remote_rights(task);
  const Region* region = regions_.find(key, pair.peer->client->id, address, bytes, rights);
  if (region == nullptr) return std::nullopt;
  return Piece{address, bytes, region->mapped(address)};
}

Piece AccessCheck::find_atomic(const Pair& pair, const Task& task) const noexcept {
  const WorkRequest& request = task.request();
  const Region* region = regions_.own(request.remote_key, pair.peer->client->id);
  return {request.remote_address, sizeof(std::uint64_t), region->mapped(request.remote_address)};
}

}  // namespace overlap::fabric::soft
