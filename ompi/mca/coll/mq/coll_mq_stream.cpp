// The collectives of a communicator: actions of the interpreter carried out.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll_mq_stream.hpp"

#include "ompi/mca/common/overlap/entry.hpp"
#include "ompi/mca/common/overlap/process.hpp"

#include "coll_mq_communicator.hpp"

namespace overlap::coll_mq {
namespace {

void let_go(void* execution) { static_cast<Execution*>(execution)->let_go(); }

void deliver(Cookie cookie, std::span<const std::byte> payload, const Place& to) noexcept {
  Execution& execution = Execution::of(cookie);
  if (!execution.buffers.deliver(payload, to)) execution.note_truncated();
}

}  // namespace

Stream::~Stream() {
  if (process == nullptr) return;
  for (Endpoint* each : endpoints_) {
    if (each != nullptr) each->drop_user();
  }
}

PlanId Stream::add(Plan plan) { return interpreter_.add(std::move(plan)); }

/// Make the endpoints of all peers that are known.
void Stream::connect() {
  const std::span<const Rank> peers = interpreter_.peers();
  endpoints_.resize(peers.size());
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (endpoints_[i] != nullptr) continue;
    endpoints_[i] = process->endpoint_of(communicator_.process_of(peers[i]));
    if (endpoints_[i] == nullptr) abort_job(1);  // who made it has said why
    endpoints_[i]->add_user();
  }
}

void Stream::start(PlanId plan, Execution& execution) {
  if (endpoints_.size() < interpreter_.peers().size()) [[unlikely]]
    connect();
  // What has begun cannot be taken back.
  must_run([&] {
    interpreter_.start(plan, execution.cookie());
    run();
  });
}

void Stream::resume() {
  connect();
  interpreter_.room();
  run();
}

void Stream::receive(const MessageHead& head, std::span<const std::byte> payload) {
  if (head.bytes == payload.size()) [[likely]] {
    receive_whole(head, payload);
  } else {
    if (!PartialMessages::is_sound(head, payload.size())) abort_bad_message(communicator_, head);
    const auto whole = partial_.add(head, payload);
    if (whole) receive_whole(head, *whole);
  }
  run();
}

void Stream::receive_whole(const MessageHead& head, std::span<const std::byte> payload) {
  if (process->interrupts.inside()) ++counters.thread_messages;
  const Arrival arrival = interpreter_.arrived(head.source, head.message(), payload);
  switch (arrival.kind) {
    case Arrival::Kind::counted: break;
    case Arrival::Kind::deliver: deliver(arrival.cookie, payload, arrival.to); break;
    case Arrival::Kind::kept: ++counters.messages_early; break;
    case Arrival::Kind::stale: ++counters.messages_stale; break;
    case Arrival::Kind::refused: abort_bad_message(communicator_, head);
  }
}

void Stream::run() {
  if (running_) return;  // a BTL has called back: who is running goes on
  running_ = true;
  must_run([this] {
    while (const std::optional<Action> action = interpreter_.advance()) perform(*action);
  });
  running_ = false;
}

void Stream::perform(const Action& action) {
  switch (action.kind) {
    case Action::Kind::send: send(action); break;
    case Action::Kind::deliver: deliver(action.cookie, action.payload, action.to); break;
    case Action::Kind::copy:
      Execution::of(action.cookie).buffers.copy(action.from, action.to);
      break;
    case Action::Kind::reduce:
      Execution::of(action.cookie).buffers.reduce(action.from, action.to);
      break;
    case Action::Kind::finished: Execution::of(action.cookie).end(action.outcome); break;
  }
}

void Stream::send(const Action& action) {
  Endpoint* const endpoint = action.edge < endpoints_.size() ? endpoints_[action.edge] : nullptr;
  if (endpoint == nullptr) [[unlikely]] {
    interpreter_.retry(action);
    communicator_.leave_to_mpi_thread(*this);
    return;
  }
  MessageHead head = communicator_.head();
  head.era = process->era();
  head.stream = number_;
  head.set(action.message);
  if (action.cookie == 0) {
    if (head.is_answer()) head.set_answered(communicator_.birth_at(action.peer));
    send_parts(*endpoint, head, nullptr, {});
    return;
  }
  Execution& execution = Execution::of(action.cookie);
  const std::span<const std::byte> payload = execution.buffers.at(action.from);
  head.bytes = static_cast<std::uint32_t>(payload.size());
  send_parts(*endpoint, head, &execution, payload);
}

void Stream::send_parts(Endpoint& endpoint, MessageHead head, Execution* execution,
                        std::span<const std::byte> payload) {
  const node::Envelope envelope = communicator_.envelope();
  const std::size_t room_bytes = endpoint.eager_most_bytes() - sizeof head;
  // The first rail always: the others would only deliver out of order.
  Rail& rail = const_cast<Rail&>(endpoint.eager_rails().front());
  do {
    const auto part = payload.first(std::min(payload.size(), room_bytes));
    MessageHold hold;
    if (execution != nullptr) {
      execution->life.hold();
      hold = make_hold<let_go>(execution);
    }
    std::span<const std::byte> message = std::as_bytes(std::span(&head, 1));
    if (!part.empty()) {
      message_.resize(sizeof head + part.size());
      std::memcpy(message_.data(), &head, sizeof head);
      std::memcpy(message_.data() + sizeof head, part.data(), part.size());
      message = message_;
    }
    ++counters.messages_sent;
    endpoint.send_control(rail, message_tag, message, hold, &envelope);
    head.offset += static_cast<std::uint32_t>(part.size());
    payload = payload.subspan(part.size());
  } while (!payload.empty());
}

}  // namespace overlap::coll_mq
