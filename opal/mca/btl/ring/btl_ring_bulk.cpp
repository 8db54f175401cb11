// Put, get, atomics and chained messages, on a queue pair of their own.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_bulk.hpp"

#include <cstring>
#include <deque>
#include <memory>

#include "btl_ring_tunables.hpp"
#include "work_id.hpp"

namespace overlap::ring {
Bulk::Bulk(const BulkParts& parts, RegisteredMemory& memory) noexcept
    : parts_(parts),
      scratch_(memory, {.buffers = 64,
                        .buffer_bytes = 8,
                        .rights = fabric::access::local_write,
                        .what = "the results of atomic operations"}) {}

int Bulk::start(BulkOperation* operation) {
  Endpoint& endpoint = *operation->endpoint;
  if (!endpoint.ending.usable()) {
    if (operation->target != nullptr) parts_.registrations.release(*operation->target);
    delete operation;
    // Callers repeat atomics without looking for events, which say that the peer is lost.
    if (!endpoint.ending.ended()) parts_.connector.poll_events();
    return OPAL_ERR_UNREACH;
  }
  if (!endpoint.bulk_waiting.empty() || !try_post(*operation)) {
    endpoint.bulk_waiting.push_back(operation);
    parts_.busy.mark(endpoint);
  }
  return OPAL_SUCCESS;
}

/// Give an operation to the device. @returns  false: no connection yet or any more, or no room
bool Bulk::try_post(BulkOperation& operation) {
  Connection& connection = operation.endpoint->bulk;
  if (!connection.established()) {
    parts_.connector.want(connection);
    return false;
  }
  if (!connection.account.has_room()) return false;
  if (!try_fill_gather(operation)) return false;
  operation.request.id = make_id(IdKind::bulk, &operation);
  if (post(parts_.upper, connection, operation.request)) return true;
  give_back_buffers(operation);  // it ends with its peer
  return false;
}

/// Where its bytes lie, unless the caller has said that. @returns  false: no buffer is free
bool Bulk::try_fill_gather(BulkOperation& operation) {
  if (!operation.message.empty()) {
    const std::size_t bytes = operation.message.size();
    if (bytes <= parts_.able.inline_max_bytes) {
      operation.request.inline_data = true;
      operation.request.gather[0] = {operation.message.data(), static_cast<std::uint32_t>(bytes),
                                     0};
    } else {
      const auto index = parts_.send_buffers.try_take(operation.endpoint->number);
      if (!index) return false;
      operation.send_buffer = static_cast<std::int32_t>(*index);
      std::byte* const buffer = parts_.send_buffers.at(*index);
      std::memcpy(buffer, operation.message.data(), bytes);
      operation.request.gather[0] = {buffer, static_cast<std::uint32_t>(bytes),
                                     parts_.send_buffers.local_key(*index)};
    }
  } else if (operation.local_address == nullptr && operation.done != nullptr) {
    const auto index = scratch_.try_take();
    if (!index) return false;
    operation.scratch = static_cast<std::int32_t>(*index);
    operation.request.gather[0] = {scratch_.at(*index), 8, scratch_.local_key(*index)};
  }
  return true;
}

void Bulk::give_back_buffers(BulkOperation& operation) noexcept {
  if (operation.send_buffer >= 0)
    parts_.send_buffers.give_back(static_cast<std::uint32_t>(operation.send_buffer));
  if (operation.scratch >= 0) scratch_.give_back(static_cast<std::uint32_t>(operation.scratch));
  operation.send_buffer = operation.scratch = -1;
}

void Bulk::completed(BulkOperation& operation, const fabric::Completion& completion) {
  const bool ok = completion.status == fabric::CompletionStatus::success;
  give_back_buffers(operation);
  const std::unique_ptr<BulkOperation> owner(&operation);
  if (operation.target != nullptr) parts_.registrations.release(*operation.target);
  parts_.upper.ended(operation, ok ? OPAL_SUCCESS : OPAL_ERROR);
}

void Bulk::flush(Endpoint& endpoint) {
  while (!endpoint.bulk_waiting.empty()) {
    BulkOperation* operation = endpoint.bulk_waiting.front();
    if (!try_post(*operation)) return;
    endpoint.bulk_waiting.pop_front();
  }
}

void Bulk::fail(Endpoint& endpoint) noexcept {
  std::deque<BulkOperation*> failed;
  failed.swap(endpoint.bulk_waiting);
  fabric::Completion completion;
  completion.status = fabric::CompletionStatus::flushed;
  for (BulkOperation* operation : failed) completed(*operation, completion);
}

namespace {

/// A message on the queue pair of an endpoint's one-sided operations.
std::unique_ptr<BulkOperation> chained(Endpoint& endpoint, mca_btl_base_tag_t tag,
                                       std::span<const std::byte> bytes) {
  auto operation = std::make_unique<BulkOperation>();
  const MessageHeader header =
      endpoint.stream.unordered_header(tag, static_cast<std::uint32_t>(bytes.size()));
  operation->message.resize(sizeof header + bytes.size());
  std::memcpy(operation->message.data(), &header, sizeof header);
  std::memcpy(operation->message.data() + sizeof header, bytes.data(), bytes.size());
  operation->endpoint = &endpoint;
  operation->request.opcode = fabric::Opcode::send;
  operation->request.signalled = true;
  operation->request.gather_count = 1;
  return operation;
}

}  // namespace

int Bulk::send_behind(Endpoint& endpoint, mca_btl_base_tag_t tag, std::span<const std::byte> bytes,
                      Behind behind) {
  auto operation = chained(endpoint, tag, bytes);
  operation->request.fenced = behind == Behind::gets;
  operation->request.solicited = endpoint.sleeps && parts_.wake_ups.must_wake(endpoint);
  ++counters().chained_sent;
  return start(operation.release());
}

bool Bulk::try_send_at_once(Endpoint& endpoint, std::span<const std::byte> bytes) {
  flush(endpoint);
  if (!endpoint.ending.usable() || !endpoint.bulk_waiting.empty()) return false;
  auto operation = chained(endpoint, 0, bytes);
  if (!try_post(*operation)) return false;
  static_cast<void>(operation.release());
  return true;
}

}  // namespace overlap::ring
