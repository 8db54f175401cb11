// The collectives of a communicator: actions of the interpreter carried out.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll_mq_stream.hpp"

#include "ompi/mca/common/overlap/process.hpp"

#include "coll_mq_communicator.hpp"

namespace overlap::coll_mq {
namespace {

void let_go(void* execution) { static_cast<Execution*>(execution)->let_go(); }

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
  interpreter_.start(plan, execution.cookie());
  run();
}

void Stream::resume() {
  connect();
  interpreter_.room();
  run();
}

void Stream::receive(const MessageHead& head, std::span<const std::byte> payload) {
  const Arrival arrival = interpreter_.arrived(head.source, head.message(), payload);
  switch (arrival.kind) {
    case Arrival::Kind::counted:
    case Arrival::Kind::deliver: break;
    case Arrival::Kind::kept: ++counters.messages_early; break;
    case Arrival::Kind::stale: ++counters.messages_stale; break;
    case Arrival::Kind::refused: abort_bad_message(communicator_, head);
  }
  if (process->interrupts.inside()) ++counters.thread_messages;
  run();
}

void Stream::run() {
  if (running_) return;  // a BTL has called back: who is running goes on
  running_ = true;
  while (const std::optional<Action> action = interpreter_.advance()) perform(*action);
  running_ = false;
}

void Stream::perform(const Action& action) {
  switch (action.kind) {
    case Action::Kind::send: send(action); break;
    case Action::Kind::finished: Execution::of(action.cookie).end(action.outcome); break;
    case Action::Kind::deliver:
    case Action::Kind::copy:
    case Action::Kind::reduce: break;  // barriers have no payload
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
  head.stream = number_;
  head.set(action.message);
  MessageHold hold;
  if (action.cookie != 0) {
    Execution& execution = Execution::of(action.cookie);
    execution.life.hold();
    hold = make_hold<let_go>(&execution);
  }
  ++counters.messages_sent;
  const node::Envelope envelope = communicator_.envelope();
  // The first rail always: the others would only deliver out of order.
  endpoint->send_control(const_cast<Rail&>(endpoint->eager_rails().front()), message_tag,
                         std::as_bytes(std::span(&head, 1)), hold, &envelope);
}

}  // namespace overlap::coll_mq
