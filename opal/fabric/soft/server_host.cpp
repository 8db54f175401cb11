// The engine's view of the machine: rings in shared memory, copies, messages to clients.
// SPDX-License-Identifier: BSD-3-Clause
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "server.hpp"

namespace overlap::fabric::soft {
namespace {

[[nodiscard]] Session& session_of(const Client& client) noexcept {
  return *static_cast<Session*>(client.host);
}

}  // namespace

Copied Server::copy(const Client& to, std::span<const Piece> target, const Client& from,
                    std::span<const Piece> source, bool last) noexcept {
  const Copied copied =
      copier_.copy(session_of(to).pid, target, session_of(from).pid, source, last);
  if (copied == Copied::source_gone) end(session_of(from));
  if (copied == Copied::target_gone) end(session_of(to));
  return copied;
}

Copied Server::atomic(const Client& client, const Piece& target, const WorkRequest& request,
                      std::uint64_t& old) noexcept {
  const Copied outcome = copier_.atomic(session_of(client).pid, target, request, old);
  if (outcome == Copied::target_gone) end(session_of(client));
  return outcome;
}

bool Server::fetch(Pair& pair, Submission& out) {
  ServedPair& served = *static_cast<ServedPair*>(pair.host);
  SendRing& ring = *served.ring.as<SendRing>();
  if (ring.tail.load(std::memory_order_acquire) == served.head) return false;  // S2, pairs with S1
  const SendSlot& slot = ring.slots[served.head % served.entries];
  WorkRequest& request = out.request;
  request.id = slot.id;
  request.opcode =
      static_cast<Opcode>(std::min(slot.opcode, static_cast<std::uint8_t>(Opcode::wait)));
  request.gather_count = std::min(slot.gather_count, static_cast<std::uint8_t>(gather_limit));
  request.signalled = (slot.flags & send_flag::signalled) != 0;
  request.fenced = (slot.flags & send_flag::fenced) != 0;
  request.inline_data = (slot.flags & send_flag::inline_data) != 0;
  request.solicited = (slot.flags & send_flag::solicited) != 0;
  request.immediate = slot.immediate;
  request.remote_address = slot.remote_address;
  request.remote_key = slot.remote_key;
  request.operand = slot.operand;
  request.compare = slot.compare;
  for (std::size_t i = 0; i < gather_limit; ++i) {
    request.gather[i] = {reinterpret_cast<const void*>(slot.gather[i].address),
                         slot.gather[i].bytes, slot.gather[i].local_key};
  }
  out.posted = slot.posted_ns;
  out.position = served.head;
  out.wait_number = static_cast<std::uint32_t>(slot.operand);
  out.wait_index = static_cast<std::uint32_t>(slot.compare);
  out.inline_data = slot.inline_data;
  out.inline_bytes = std::min(slot.inline_bytes, inline_max_bytes);
  ++served.head;
  return true;
}

bool Server::take_receive(Receives& receives, Receive& out) {
  ServedReceives& served = *static_cast<ServedReceives*>(receives.host);
  ReceiveRing& ring = *served.ring.as<ReceiveRing>();
  const std::uint32_t head = ring.head.load(std::memory_order_relaxed);
  if (ring.tail.load(std::memory_order_seq_cst) == head) {
    ring.starved.store(1, std::memory_order_seq_cst);
    if (ring.tail.load(std::memory_order_seq_cst) == head) return false;  // R2
  }
  const ReceiveSlot& slot = ring.slots[head % served.entries];
  out = {slot.id, slot.address, slot.bytes, slot.local_key};
  ring.head.store(head + 1, std::memory_order_release);  // R3, pairs with R4
  return true;
}

bool Server::put(ServedCompletions& served, const Completion& completion, std::uint32_t position,
                 std::uint32_t pair_number, std::uint32_t pair_cookie) noexcept {
  CompletionRing& ring = *served.ring.as<CompletionRing>();
  if (served.tail - ring.head.load(std::memory_order_acquire) >= served.entries)
    return false;  // C4, pairs with C3
  CompletionSlot& slot = ring.slots[served.tail % served.entries];
  slot = CompletionSlot{};
  slot.id = completion.id;
  slot.pair_number = pair_number;
  slot.pair_cookie = pair_cookie;
  slot.position = position;
  slot.bytes = completion.bytes;
  slot.immediate = completion.immediate;
  slot.status = static_cast<std::uint8_t>(completion.status);
  slot.opcode = static_cast<std::uint8_t>(completion.opcode);
  slot.has_immediate = completion.has_immediate ? 1 : 0;
  ring.tail.store(++served.tail, std::memory_order_release);  // C1, pairs with C2
  return true;
}

bool Server::complete(Completions& completions, Pair& pair, const Completion& completion,
                      std::uint32_t position) {
  return put(*static_cast<ServedCompletions*>(completions.host), completion, position, pair.number,
             static_cast<ServedPair*>(pair.host)->cookie);
}

bool Server::fetch(Manager& manager, Command& out) {
  ServedManager& served = *static_cast<ServedManager*>(manager.host);
  ManagementRing& ring = *served.ring.as<ManagementRing>();
  if (ring.tail.load(std::memory_order_acquire) == served.head) return false;  // M2, pairs with M1
  const ManagementSlot& slot = ring.slots[served.head % served.entries];
  out.kind = static_cast<Command::Kind>(
      std::min(slot.kind, static_cast<std::uint8_t>(Command::Kind::nothing)));
  out.signalled = slot.signalled != 0;
  out.id = slot.id;
  out.number = slot.number;
  out.index = slot.index;
  out.posted = slot.posted_ns;
  out.position = served.head++;
  return true;
}

Completions* Server::find_counting(const Client& client, std::uint32_t number) noexcept {
  const auto& completions = session_of(client).completions;
  const auto found = completions.find(number);
  if (found == completions.end() || !found->second->completions->counting) return nullptr;
  return found->second->completions;
}

void Server::count(Completions& completions, Pair& pair, bool sent,
                   std::uint32_t position) noexcept {
  ServedCompletions& served = *static_cast<ServedCompletions*>(completions.host);
  if (sent) {
    SendRing& ring = *static_cast<ServedPair*>(pair.host)->ring.as<SendRing>();
    ring.head.store(position + 1, std::memory_order_release);  // S3, pairs with S4
  }
  served.ring.as<CompletionRing>()->tail.store(++served.tail, std::memory_order_release);
}

bool Server::complete(Manager& manager, const Completion& completion, std::uint32_t position) {
  return put(*static_cast<ServedManager*>(manager.host)->completions, completion, position, 0, 0);
}

/// A client that never reads its end, or has closed it, loses wake-ups of its own and stops nobody:
/// this end is ours alone, so nothing that a client does makes the call block.
void Server::notify(Client& client) noexcept {
  Session& session = session_of(client);
  Counter& armed = session.doorbells.as<Doorbells>()->armed;
  if (armed.exchange(0, std::memory_order_acq_rel) == 0) return;  // D7, pairs with D8
  const char byte = 1;
  static_cast<void>(
      ::send(session.arrivals.get(), &byte, sizeof(byte), MSG_DONTWAIT | MSG_NOSIGNAL));
}

void Server::event(Client& client, Pair* pair, const Event& event) {
  Session& session = session_of(client);
  Message message;
  message.ask = Ask::event;
  message.numbers[0] = static_cast<std::uint32_t>(event.kind);
  message.numbers[1] = pair == nullptr ? 0 : pair->number;
  message.values[0] = event.request;
  message.data_bytes = event.data.size_bytes;
  message.data = event.data.bytes;
  const std::size_t words = std::min(event.why.size(), message.text.size() - 1);
  std::memcpy(message.text.data(), event.why.data(), words);
  send(session, message);
  notify(client);
}

}  // namespace overlap::fabric::soft
