// Messages in: rings are looked at, the completion queue is polled, and both are put into one order
// (P2.2, P2.5).
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring.hpp"

namespace overlap::ring {
namespace {

// A look at a connection's events may be a system call: not on every call, and not more than so
// often.
constexpr std::uint32_t calls_between_events = 32;
constexpr std::uint32_t calls_between_events_connecting = 4;
constexpr auto time_between_events = std::chrono::microseconds(500);
constexpr std::uint32_t messages_per_visit = 16;  // of one ring, before the others have their turn

constexpr const char* repeated = "it has been received already";

}  // namespace

void Transport::deliver(Endpoint& endpoint, const MessageHeader& header, const std::byte* payload) {
  if (header.tag == 0) [[unlikely]] {
    handle_control(endpoint, payload, header.size_bytes);
    return;
  }
  // The components above may be unloaded by now: nobody is called back any more. Peers of another
  // job (MPI_Comm_spawn) are in nobody's del_procs and live until here.
  if (finalizing_) [[unlikely]]
    return;
  deliver_message(&ring_module.base, &endpoint.handle, header.tag, payload, header.size_bytes);
}

/// Credits, and rings that have come to their end.
void Transport::accept_message(Endpoint& endpoint, const MessageHeader& header, Channel channel) {
  const Noted noted = endpoint.stream.accept(header, channel);
  if (noted.fault != nullptr) [[unlikely]]
    refuse_message(endpoint, noted.fault);
  if (noted.send_ring_ended) [[unlikely]]
    end_outgoing(endpoint);
  if (noted.receive_ring_ended) [[unlikely]]
    end_incoming(endpoint);
  if (endpoint.stream.wants_explicit()) [[unlikely]]
    mark_busy(endpoint);
}

int Transport::take_from_ring(Endpoint& endpoint) {
  int taken = 0;
  Arrival arrival;
  // A callback may end up here again, or end the ring: look at everything anew.
  while (endpoint.in != nullptr && taken < static_cast<int>(messages_per_visit) &&
         endpoint.in->ring.peek(arrival)) {
    if (!endpoint.stream.is_next(arrival.header)) {
      if (endpoint.stream.is_past(arrival.header)) [[unlikely]]
        refuse_message(endpoint, repeated);
      break;
    }
    if (const char* fault = find_fault(arrival.header, slot_payload_bytes())) [[unlikely]]
      refuse_message(endpoint, fault);
    IncomingRing& in = *endpoint.in;
    in.ring.advance();
    accept_message(endpoint, arrival.header, Channel::ring);
    deliver(endpoint, arrival.header, arrival.payload);
    ++counters().ring_received;
    ++taken;
    note_traffic(endpoint, Channel::ring);
    in.ring.free(arrival.slot);
    if (endpoint.stream.ring_state() == RingState::none)
      end_incoming(endpoint);  // put off until this slot was free
    if (!endpoint.held.empty()) take_held(endpoint);
  }
  if (taken > 0 && endpoint.stream.wants_explicit()) [[unlikely]]
    mark_busy(endpoint);
  return taken;
}

/// Messages of the channel whose turn has come.
void Transport::take_held(Endpoint& endpoint) {
  while (!endpoint.held.empty() && endpoint.stream.is_next(endpoint.held.front().header)) {
    const HeldMessage message = endpoint.held.front();
    endpoint.held.pop_front();
    accept_message(endpoint, message.header, Channel::send_receive);
    deliver(endpoint, message.header, receives_.at(message.buffer) + sizeof(MessageHeader));
    receives_.repost(message.buffer);
  }
}

void Transport::on_channel_message(Endpoint& endpoint, std::uint32_t buffer, std::uint32_t bytes) {
  MessageHeader header;
  std::byte* const memory = receives_.at(buffer);
  std::memcpy(&header, memory, sizeof header);
  if (bytes < sizeof header || bytes != sizeof header + header.size_bytes)
    refuse_message(endpoint, "its length is not what its header says");
  if (const char* fault = find_fault(header, channel_payload_bytes()))
    refuse_message(endpoint, fault);
  ++counters().channel_received;
  if (!endpoint.stream.is_next(header)) {
    if (endpoint.stream.is_past(header)) refuse_message(endpoint, repeated);
    endpoint.held.push_back({buffer, header});
    ++counters().held_messages;
    take_from_ring(endpoint);  // what it waits for is there, or on its way
    return;
  }
  accept_message(endpoint, header, Channel::send_receive);
  deliver(endpoint, header, memory + sizeof header);
  receives_.repost(buffer);
  if (!endpoint.held.empty()) take_held(endpoint);
  note_traffic(endpoint, Channel::send_receive);
}

void Transport::on_completion(const fabric::Completion& completion) {
  if (completion.status != fabric::CompletionStatus::success) [[unlikely]] {
    on_failure(completion);
    return;
  }
  const auto found = by_queue_pair_.find(completion.queue_pair_number);
  if (kind_of_id(completion.id) == IdKind::receive) {
    receives_.taken();
    if (found == by_queue_pair_.end()) {
      receives_.repost(index_of_id(completion.id));  // of a connection that has ended
    } else {
      on_channel_message(found->second->endpoint, index_of_id(completion.id), completion.bytes);
    }
    return;
  }
  if (found != by_queue_pair_.end()) {
    Connection& connection = *found->second;
    connection.account.completed();
    if (!connection.endpoint.retired.empty()) [[unlikely]]
      forget_retired(connection.endpoint, false);
  }
  switch (kind_of_id(completion.id)) {
    case IdKind::ring_write:
    case IdKind::receive: break;
    case IdKind::channel_send: send_buffers_.give_back(index_of_id(completion.id)); break;
    case IdKind::in_place: {
      auto& fragment = object_of_id<Fragment>(completion.id);
      const auto away = std::chrono::steady_clock::now() - fragment.lent_at;
      frequent_.note_returned(static_cast<std::uint32_t>(fragment.segments[1].seg_len),
                              looks_ - fragment.lent_look,
                              static_cast<std::uint64_t>(std::chrono::nanoseconds(away).count()));
      finish(fragment, OPAL_SUCCESS);
      break;
    }
    case IdKind::bulk:
      bulk_completed(object_of_id<BulkOperation>(completion.id), completion);
      break;
  }
}

/// A work request has failed: say once why the peer is lost, after what it has said before (its
/// goodbye perhaps), then give back what it held.
void Transport::on_failure(const fabric::Completion& completion) {
  const auto found = by_queue_pair_.find(completion.queue_pair_number);
  if (found != by_queue_pair_.end() && kind_of_id(completion.id) != IdKind::receive) {
    if (completion.status == fabric::CompletionStatus::flushed) {
      poll_events();  // the reason is there
    } else {
      Endpoint& endpoint = found->second->endpoint;
      take_last_messages(endpoint);
      report_lost(endpoint, fabric::text(completion.status));
    }
  }
  switch (kind_of_id(completion.id)) {
    case IdKind::ring_write: return;
    case IdKind::receive: receives_.repost(index_of_id(completion.id)); return;
    case IdKind::channel_send: send_buffers_.give_back(index_of_id(completion.id)); return;
    case IdKind::in_place: finish(object_of_id<Fragment>(completion.id), OPAL_ERROR); return;
    case IdKind::bulk:
      bulk_completed(object_of_id<BulkOperation>(completion.id), completion);
      return;
  }
}

int Transport::poll_rings() {
  const std::uint32_t taken = polling_.for_each([this](std::uint32_t number) -> std::uint32_t {
    try {
      return static_cast<std::uint32_t>(take_from_ring(*peers_.at(number)->endpoint()));
    } catch (...) {
      refuse_to_go_on();
    }
  });
  return static_cast<int>(taken);
}

int Transport::poll_completions() {
  if (!completions_.try_fill()) receives_.drained();
  int count = 0;
  fabric::Completion completion;
  while (completions_.try_next(completion)) {
    ++count;
    on_completion(completion);
  }
  return count;
}

/// Fragments that are sent: their owners are told.
int Transport::serve_done() {
  return done_.serve([this](Fragment* fragment) { finish(*fragment, OPAL_SUCCESS); });
}

/// Whatever waits for room, for a callback, or to be told to a peer that nothing else is sent to.
int Transport::serve_busy() {
  const int finished = serve_done();
  busy_.serve([this](Endpoint* endpoint) { serve(*endpoint); });
  return finished;
}

void Transport::serve(Endpoint& endpoint) {
  endpoint.listed = false;
  flush_waiting(endpoint);
  flush_bulk(endpoint);
  if (endpoint.decline_due) [[unlikely]]
    decline(endpoint);
  if (endpoint.waiting.empty() && endpoint.stream.wants_explicit() &&
      try_send_control(endpoint, {.kind = control_kind::credits_only})) {
    ++counters().explicit_messages;
  }
  if (!endpoint.lost && (!endpoint.waiting.empty() || !endpoint.bulk_waiting.empty() ||
                         endpoint.decline_due || endpoint.stream.wants_explicit()))
    mark_busy(endpoint);
}

int Transport::progress() {
  ++looks_;
  int count = poll_rings();
  if (const int completed = poll_completions(); completed > 0) {
    count += completed;
    receives_.grow();
  }
  if (!busy_.empty() || !done_.empty()) [[unlikely]]
    count += serve_busy();
  if (++calls_to_events_ >=
      (connecting_ > 0 ? calls_between_events_connecting : calls_between_events)) [[unlikely]] {
    calls_to_events_ = 0;
    const auto now = std::chrono::steady_clock::now();
    if (connecting_ > 0 || now - last_events_ >= time_between_events) {
      last_events_ = now;
      count += poll_events();
      if (!backing_off_.empty()) retry_due(now);
    }
  }
  return count;
}

int progress() noexcept {
  if (transport == nullptr) return 0;
  const Guard guard;
  try {
    return transport->progress();
  } catch (...) {
    refuse_to_go_on();
  }
}

}  // namespace overlap::ring
