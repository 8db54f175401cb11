// The transport as a whole: what is polled when, and how peers are given up.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "btl_ring_fault.hpp"
#include "btl_ring_tunables.hpp"
#include "work_id.hpp"

namespace overlap::ring {
namespace {

std::unique_ptr<fabric::Device> checked(std::unique_ptr<fabric::Device> device) {
  const fabric::Capabilities& able = device->capabilities();
  if (!able.receive_not_ready) {
    throw std::runtime_error(able.name +
                             " is iWARP, which breaks a connection when a message finds no receive "
                             "buffer; choose an InfiniBand or RoCE port (btl_ring_device)");
  }
  if (!able.fork_safe && tunables.verbose >= 1) {
    opal_output(0,
                "btl/ring: memory was registered before this component was opened: a process that "
                "forks may read old bytes where it receives (set RDMAV_FORK_SAFE=1)");
  }
  return device;
}

/// A completion queue reserves an entry for each, beside those of one queue pair's requests.
std::uint32_t receive_buffers_max(const fabric::Capabilities& able) noexcept {
  const std::uint32_t entries = able.completion_queue_max;
  const std::uint32_t room = entries > tunables.send_queue ? entries - tunables.send_queue : 1;
  return std::min({std::max(tunables.receive_buffers, tunables.receive_buffers_max),
                   std::max(able.receive_queue_max, tunables.receive_buffers), room});
}

std::unique_ptr<Segment> make_segment(const SegmentShape& shape) {
  remove_stale_segments();
  auto segment = std::make_unique<Segment>(shape);
  remove_at_end(segment->path());
  return segment;
}

}  // namespace

Transport::Transport(std::unique_ptr<fabric::Device> device, const Network& network)
    : device_(checked(std::move(device))),
      registrations_(*device_),
      memory_(*device_, registrations_, counters().memory_max_bytes, refuse_registration),
      segment_(make_segment({.rings = tunables.polling_set + 1,
                             .ring_slots = tunables.ring_slots,
                             .slot_bytes = slot_bytes(),
                             .buffers = tunables.receive_buffers,
                             .buffer_bytes = channel_bytes(),
                             .buffers_max = receive_buffers_max(capabilities())})),
      completions_(*device_, registrations_, tunables.send_queue,
                   receive_buffers_max(capabilities())),
      receives_(*device_, memory_, *segment_,
                {.first = tunables.receive_buffers,
                 .max = receive_buffers_max(capabilities()),
                 .buffer_bytes = channel_bytes()}),
      send_buffers_(memory_,
                    {.buffers = tunables.send_buffers,
                     .buffer_bytes = channel_bytes(),
                     .rights = 0,
                     .what = "the buffers of the send/receive channel"},
                    now_ns),
      frequent_(*device_, registrations_),
      fragments_(slot_payload_bytes(), channel_payload_bytes()),
      sent_(fragments_, registrations_, upper_),
      peers_(*device_, network),
      queue_pairs_(completions_, receives_),
      connector_(*device_, peers_, queue_pairs_, upper_, *this),
      sender_(
          {capabilities(), upper_, connector_, busy_, sent_, frequent_, send_buffers_, wake_ups_},
          slot_payload_bytes()),
      bulk_({capabilities(), upper_, connector_, busy_, registrations_, send_buffers_, wake_ups_},
            memory_),
      in_({memory_, *segment_, peers_, upper_, connector_, busy_, sender_}),
      out_(memory_, sender_, busy_),
      receiver_({upper_, receives_, busy_, in_, out_}, slot_payload_bytes(),
                channel_payload_bytes()) {}

Transport::~Transport() {
  upper_.close();
  drop(peers_.used());
}

// --- Progress --------------------------------------------------------------------------

int Transport::progress() {
  connector_.set_caller(false);
  frequent_.note_pass();
  const int count = move(false);
  return count + connector_.poll_events_when_due();
}

/// All that there is: who polls once more before he sleeps must not leave anything behind.
int Transport::progress_in_thread() {
  constexpr int rounds_max = 64;  // MPI threads wait for the lock; who sees a count comes again
  const DeferredFailures::Hold hold(failures_);
  connector_.set_caller(true);  // until an MPI thread polls: the PML's next calls are the thread's
  int count = 0;
  for (int round = 0; round < rounds_max; ++round) {
    const int moved = move(true);
    const int connected = connector_.poll_events_in_thread();
    count += moved + connected;
    if (moved == 0 || connected != 0) break;
  }
  return count;
}

/// It has as many buffers as this process.
void Transport::expect(Handle& peer, std::uint32_t senders) {
  peers_.endpoint(peer).sleeps = senders != 0;
  if (senders != 0) wake_ups_.set_unwoken_max(unwoken_max(tunables.receive_buffers, senders));
}

/// The header of the message says all that there is: what it is behind lies in the peer's ring.
void Transport::wake_peers(bool at_once) {
  wake_ups_.serve(
      now_ns(), at_once,
      [](const Endpoint& endpoint) {
        return endpoint.out != nullptr && endpoint.out->ring.all_returned();
      },
      [this](Endpoint& endpoint) {
        return !Sender::can_send(endpoint) ||
               sender_.try_send_control(endpoint, {.kind = control_kind::credits_only}, true);
      });
}

int Transport::move(bool in_thread) {
  send_buffers_.note_pass();
  int count = receiver_.poll_rings();
  if (const int completed = poll_completions(); completed > 0) {
    count += completed;
    receives_.grow();
  }
  if (!busy_.empty() || !sent_.empty()) [[unlikely]]
    count += serve_busy();
  if (!wake_ups_.empty()) [[unlikely]]
    wake_peers(in_thread);
  return count;
}

/// Whatever waits for room, for a callback, or to be told to a peer that nothing else is sent to.
int Transport::serve_busy() {
  const int finished = sent_.serve();
  busy_.serve([this](Endpoint& endpoint) { serve(endpoint); });
  return finished;
}

void Transport::serve(Endpoint& endpoint) {
  sender_.flush(endpoint);
  bulk_.flush(endpoint);
  if (endpoint.decline_due) [[unlikely]]
    out_.decline(endpoint);
  if (endpoint.waiting.empty() && endpoint.stream.wants_explicit() &&
      sender_.try_send_control(endpoint, {.kind = control_kind::credits_only})) {
    ++counters().explicit_messages;
  }
  if (endpoint.ending.usable() && (!endpoint.waiting.empty() || !endpoint.bulk_waiting.empty() ||
                                   endpoint.decline_due || endpoint.stream.wants_explicit()))
    busy_.mark(endpoint);
}

/// What handling one completion calls may end up here again: it goes on with the same batch.
int Transport::poll_completions() {
  if (!completions_.try_fill()) receives_.drained();
  int count = 0;
  fabric::Completion completion;
  while (completions_.try_next(completion)) {
    ++count;
    on_completion(completion);
  }
  if (!failures_.empty()) [[unlikely]]
    handle_failures();
  return count;
}

void Transport::on_completion(const fabric::Completion& completion) {
  if (completion.status != fabric::CompletionStatus::success) [[unlikely]] {
    failures_.put(completion, std::chrono::steady_clock::now());
    return;
  }
  Connection* const connection = queue_pairs_.find(completion.queue_pair_number);
  if (kind_of_id(completion.id) == IdKind::receive) {
    receives_.taken();
    if (connection == nullptr) {
      receives_.repost(index_of_id(completion.id));  // of a connection that has ended
    } else {
      receiver_.on_channel_message(connection->endpoint, index_of_id(completion.id),
                                   completion.bytes);
    }
    return;
  }
  if (connection != nullptr) {
    connection->account.completed();
    if (!connection->endpoint.retired.empty()) [[unlikely]]
      out_.forget_retired(connection->endpoint, false);
  }
  switch (kind_of_id(completion.id)) {
    case IdKind::ring_write:
    case IdKind::receive: break;
    case IdKind::channel_send: send_buffers_.give_back(index_of_id(completion.id)); break;
    case IdKind::in_place: {
      auto& fragment = object_of_id<Fragment>(completion.id);
      frequent_.note_returned(fragment);
      sent_.finish(fragment, OPAL_SUCCESS);
      break;
    }
    case IdKind::bulk:
      bulk_.completed(object_of_id<BulkOperation>(completion.id), completion);
      break;
  }
}

/// Some were flushed because their connection has ended: an event tells why, a little later.
void Transport::handle_failures() {
  if (failures_.held()) return;
  connector_.poll_events();
  const auto awaits_reason = [this](const fabric::Completion& failure) {
    const Connection* const connection = sender_of(failure);
    return failure.status == fabric::CompletionStatus::flushed && connection != nullptr &&
           connection->endpoint.ending.unexplained();
  };
  while (const auto failure = failures_.take(std::chrono::steady_clock::now(), awaits_reason))
    on_failure(*failure);
}

/// The connection that a request was posted to. @returns  nullptr: it has ended, or a receive
Connection* Transport::sender_of(const fabric::Completion& completion) const noexcept {
  return kind_of_id(completion.id) == IdKind::receive
             ? nullptr
             : queue_pairs_.find(completion.queue_pair_number);
}

/// A work request has failed: say once why the peer is lost, after what it has said before (its
/// goodbye perhaps), then give back what it held.
void Transport::on_failure(const fabric::Completion& completion) {
  if (Connection* const connection = sender_of(completion); connection != nullptr) {
    Endpoint& endpoint = connection->endpoint;
    const bool flushed = completion.status == fabric::CompletionStatus::flushed;
    if (!flushed || endpoint.ending.unexplained()) {  // no event has come
      take_last_messages(endpoint);
      upper_.report_lost(endpoint, fabric::text(completion.status));
    }
  }
  switch (kind_of_id(completion.id)) {
    case IdKind::ring_write: return;
    case IdKind::receive: receives_.repost(index_of_id(completion.id)); return;
    case IdKind::channel_send: send_buffers_.give_back(index_of_id(completion.id)); return;
    case IdKind::in_place: sent_.finish(object_of_id<Fragment>(completion.id), OPAL_ERROR); return;
    case IdKind::bulk:
      bulk_.completed(object_of_id<BulkOperation>(completion.id), completion);
      return;
  }
}

// --- Connections -----------------------------------------------------------------------

void Transport::on_established(Connection& connection) {
  busy_.mark(connection.endpoint);
  sender_.flush(connection.endpoint);
  bulk_.flush(connection.endpoint);
}

/// What a peer has sent before its connection ended, its goodbye perhaps among it. Requests that
/// have failed come later: the upper layer, which ends the job for them, is told of the loss first.
void Transport::take_last_messages(Endpoint& endpoint) {
  const DeferredFailures::Hold hold(failures_);
  // Bounded, for others go on sending: a queue's worth of completions, as often as the ring had
  // some.
  do {
    for (std::uint32_t left = receives_.max(); left > 0 && poll_completions() > 0; --left) {}
  } while (receiver_.take_from_ring(endpoint) > 0);
}

/// @returns  false: no room, or no memory, for now
bool Transport::try_say_goodbye(Endpoint& endpoint) noexcept {
  const ControlBody goodbye{.kind = control_kind::goodbye};
  return guarded([&]() -> int {
           if (sender_.try_send_control(endpoint, goodbye)) return OPAL_SUCCESS;
           const bool said =
               endpoint.bulk.established() &&
               bulk_.try_send_at_once(endpoint, std::as_bytes(std::span(&goodbye, 1)));
           return said ? OPAL_SUCCESS : OPAL_ERR_RESOURCE_BUSY;
         }) == OPAL_SUCCESS;
}

/// Tell peers that the end of their connections is meant, and wait until all that was posted to
/// them has arrived.
///
/// Bounded in time: a peer that is gone already does not answer.
void Transport::part(std::span<Endpoint* const> peers) noexcept {
  constexpr auto longest = std::chrono::milliseconds(200);
  const auto reachable = [](const Endpoint& endpoint) {
    return endpoint.ending.listens() &&
           (endpoint.messages.established() || endpoint.bulk.established());
  };
  const auto under_way = [&](const Endpoint* endpoint) {
    return reachable(*endpoint) &&
           (endpoint->messages.account.used() != 0 || endpoint->bulk.account.used() != 0);
  };
  for (Endpoint* endpoint : peers) endpoint->ending.take(EndingEvent::part_called);
  guarded([&]() -> int {
    std::vector<Endpoint*> untold(peers.begin(), peers.end());
    const auto began = std::chrono::steady_clock::now();
    do {
      std::erase_if(untold, [&](Endpoint* endpoint) {
        return !reachable(*endpoint) || try_say_goodbye(*endpoint);
      });
      if (untold.empty() && std::none_of(peers.begin(), peers.end(), under_way)) break;
      send_buffers_.note_pass();
      poll_completions();
      connector_.poll_events();
    } while (std::chrono::steady_clock::now() - began < longest);
    return OPAL_SUCCESS;
  });
}

/// Give everything back that a peer has, except its number.
void Transport::release_endpoint(Endpoint& endpoint) noexcept {
  // Callbacks that send find no way.
  endpoint.ending.take(EndingEvent::released);
  wake_ups_.remove(endpoint);
  if (endpoint.in != nullptr) in_.close(endpoint);
  out_.end(endpoint);
  bulk_.fail(endpoint);
  for (Fragment* fragment : std::exchange(endpoint.waiting, {}))
    sent_.finish(*fragment, OPAL_ERROR);
  for (const HeldMessage& message : std::exchange(endpoint.held, {}))
    receives_.repost(message.buffer);
  for (Connection* connection : {&endpoint.messages, &endpoint.bulk})
    connector_.abandon(*connection);
  out_.forget_retired(endpoint, true);
}

void Transport::drop(std::span<Handle* const> peers) noexcept {
  connector_.set_caller(false);
  const int rc = guarded([&]() -> int {
    std::vector<Endpoint*> used;
    for (const Handle* peer : peers) {
      if (peer != nullptr && peer->endpoint() != nullptr) used.push_back(peer->endpoint());
    }
    part(used);
    for (Endpoint* endpoint : used) release_endpoint(*endpoint);
    // What was posted to them has been reported with the end of their queue pairs: the owners are
    // told while the endpoints are there.
    while (poll_completions() > 0 || sent_.serve() > 0) {}
    for (Endpoint* endpoint : used) {
      busy_.remove(*endpoint);
      wake_ups_.remove(*endpoint);
    }
    return OPAL_SUCCESS;
  });
  if (rc != OPAL_SUCCESS) return;  // no memory: they stay, unused
  for (Handle* peer : peers) {
    if (peer != nullptr) peers_.erase(*peer);
  }
}

namespace {

int progress_by(int (Transport::*way)()) noexcept {
  if (transport == nullptr) return 0;
  const Guard guard;
  try {
    return (transport->*way)();
  } catch (...) {
    refuse_to_go_on();
  }
}

}  // namespace

int progress() noexcept { return progress_by(&Transport::progress); }

int progress_in_thread() noexcept { return progress_by(&Transport::progress_in_thread); }

}  // namespace overlap::ring
