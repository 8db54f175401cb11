// Carries plans out by software: the collectives of one stream at one rank.
// SPDX-License-Identifier: BSD-3-Clause
#include "interpreter.hpp"

#include <bit>
#include <stdexcept>
#include <utility>

namespace overlap::coll_mq {

Interpreter::Interpreter(std::uint32_t window, Sequence first)
    : slots_(window), oldest_(first), next_(first), peers_(window, first) {
  if (!std::has_single_bit(window) || window > 1024)
    throw std::invalid_argument("coll/mq: the window is a power of two of at most 1024");
}

PlanId Interpreter::add(Plan plan) {
  auto known = std::make_shared<Known>();
  std::vector<std::uint16_t> edge_of;
  for (const Edge& edge : plan.edges) {
    const std::uint16_t index = peers_.edge_to(edge.peer);
    edge_of.push_back(index);
    if (index >= known->receives.size()) known->receives.resize(index + std::size_t{1});
    known->receives[index] = {edge.first_receive, edge.receives};
  }
  for (Task& task : plan.tasks)
    if (task.kind != TaskKind::copy && task.kind != TaskKind::reduce)
      task.edge = edge_of[task.edge];
  known->plan = std::move(plan);
  plans_.push_back(std::move(known));
  return static_cast<PlanId>(plans_.size() - 1);
}

void Interpreter::start(PlanId id, Cookie cookie) {
  if (pending_.empty() && next_ - oldest_ < static_cast<std::int32_t>(slots_.size())) {
    begin(id, cookie);
    return;
  }
  ++counts_.deferred;
  pending_.push({id, cookie});
}

void Interpreter::begin(PlanId id, Cookie cookie) {
  const std::uint32_t index = index_of(next_);
  Slot& slot = slots_[index];
  slot.known = plans_[id].get();
  slot.cookie = cookie;
  if (!slot.arrivals.are_all([&](std::size_t edge) { return slot.known->expected(edge); })) fail();
  ++next_;
  make_runnable(index);
}

Arrival Interpreter::arrived(Rank peer, const Message& message,
                             std::span<const std::byte> payload) {
  const std::uint16_t edge = peers_.edge_to(peer);
  if (failed_) return {Arrival::Kind::stale, 0, {}};
  if (peers_.note_oldest(edge, message.oldest)) make_runnable(State::blocked);
  switch (message.kind) {
    case MessageKind::data: return on_data(edge, message, payload);
    case MessageKind::ask: peers_.note_ask(edge, message.sequence, oldest_); break;
    case MessageKind::tell: break;
  }
  return {Arrival::Kind::counted, 0, {}};
}

Arrival Interpreter::on_data(std::uint16_t edge, const Message& message,
                             std::span<const std::byte> payload) {
  const std::int32_t ahead = message.sequence - oldest_;
  if (ahead >= static_cast<std::int32_t>(slots_.size())) return refuse();
  Slot* slot = ahead < 0 ? nullptr : &slots_[index_of(message.sequence)];
  if (slot == nullptr || slot->state == State::over) {
    ++counts_.stale;
    return {Arrival::Kind::stale, 0, {}};
  }
  const bool begun = slot->state != State::free;
  if (begun && message.step >= slot->known->expected(edge)) return refuse();
  if (!slot->arrivals.note(edge, message.step)) {
    ++counts_.stale;
    return {Arrival::Kind::stale, 0, {}};
  }
  if (!begun) {
    ++counts_.kept;
    if (!payload.empty())
      slot->kept.push_back({edge, message.step, {payload.begin(), payload.end()}});
    return {Arrival::Kind::kept, 0, {}};
  }
  if (slot->state == State::waiting) make_runnable(index_of(message.sequence));
  const Place to = slot->known->place_of(edge, message.step);
  if (to.blocks == 0) return {Arrival::Kind::counted, slot->cookie, {}};
  return {Arrival::Kind::deliver, slot->cookie, to};
}

Arrival Interpreter::refuse() {
  fail();
  return {Arrival::Kind::refused, 0, {}};
}

std::optional<Action> Interpreter::advance() {
  if (const auto control = peers_.take_control()) {
    const Message message{control->kind, 0, control->sequence, oldest_};
    return Action{.kind = Action::Kind::send,
                  .edge = control->edge,
                  .peer = peers_.peers()[control->edge],
                  .message = message};
  }
  while (!runnable_.empty()) {
    const std::uint32_t index = runnable_.front();
    auto action = run(index);
    if (action && action->kind != Action::Kind::finished) return action;
    runnable_.pop();
    slots_[index].queued = false;
    if (!action) continue;
    free_slots();
    return action;
  }
  // A slot may have asked a peer before it was blocked.
  return peers_.has_control() ? advance() : std::nullopt;
}

std::optional<Action> Interpreter::run(std::uint32_t index) {
  Slot& slot = slots_[index];
  if (slot.state != State::running) return std::nullopt;
  if (failed_) return end(slot);
  if (slot.delivered < slot.kept.size()) {
    const Kept& kept = slot.kept[slot.delivered++];
    return Action{.kind = Action::Kind::deliver,
                  .cookie = slot.cookie,
                  .to = slot.known->place_of(kept.edge, kept.step),
                  .payload = kept.bytes};
  }
  const auto& tasks = slot.known->plan.tasks;
  while (slot.task < tasks.size()) {
    auto action = run_task(index, tasks[slot.task]);
    if (slot.state != State::running) return std::nullopt;
    ++slot.task;
    if (action) return action;
  }
  return end(slot);
}

std::optional<Action> Interpreter::run_task(std::uint32_t index, const Task& task) {
  Slot& slot = slots_[index];
  switch (task.kind) {
    case TaskKind::send:
    case TaskKind::write_immediate: return run_send(index, task);
    case TaskKind::wait:
      if (!slot.arrivals.has(task.edge, std::uint32_t{task.step} + task.count))
        slot.state = State::waiting;
      return std::nullopt;
    case TaskKind::copy:
    case TaskKind::reduce:
      return Action{.kind = task.kind == TaskKind::copy ? Action::Kind::copy : Action::Kind::reduce,
                    .cookie = slot.cookie,
                    .from = task.from,
                    .to = task.to};
    // Software's sends are never disabled, and its receives always posted.
    case TaskKind::receive:
    case TaskKind::send_enable:
    case TaskKind::receive_enable: break;
  }
  return std::nullopt;
}

std::optional<Action> Interpreter::run_send(std::uint32_t index, const Task& task) {
  Slot& slot = slots_[index];
  const Sequence sequence = sequence_of(index);
  if (peers_.ask_leave(task.edge, sequence, oldest_) == PeerTable::Leave::too_far_ahead) {
    ++counts_.blocked;
    slot.state = State::blocked;
    return std::nullopt;
  }
  return Action{.kind = Action::Kind::send,
                .edge = task.edge,
                .peer = peers_.peers()[task.edge],
                .cookie = slot.cookie,
                .message = {MessageKind::data, task.step, sequence, oldest_},
                .from = task.from};
}

Action Interpreter::end(Slot& slot) {
  slot.state = State::over;
  return {.kind = Action::Kind::finished,
          .outcome = failed_ ? Outcome::failed : Outcome::done,
          .cookie = slot.cookie};
}

void Interpreter::free_slots() {
  const Sequence before = oldest_;
  while (oldest_ != next_) {
    Slot& slot = slots_[index_of(oldest_)];
    if (slot.state != State::over) break;
    slot.state = State::free;
    slot.task = 0;
    slot.arrivals.clear();
    slot.kept.clear();
    slot.delivered = 0;
    ++oldest_;
  }
  if (oldest_ == before) return;
  peers_.tell_askers(oldest_);
  while (!pending_.empty() && next_ - oldest_ < static_cast<std::int32_t>(slots_.size())) {
    const Pending pending = pending_.front();
    pending_.pop();
    begin(pending.id, pending.cookie);
  }
}

void Interpreter::retry(const Action& action) {
  ++counts_.stalled;
  if (action.message.kind != MessageKind::data) {
    peers_.put_back({action.message.kind, action.edge, action.message.sequence});
    return;
  }
  Slot& slot = slots_[index_of(action.message.sequence)];
  --slot.task;
  slot.state = State::stalled;
}

void Interpreter::room() {
  peers_.room();
  make_runnable(State::stalled);
}

void Interpreter::fail() {
  failed_ = true;
  make_runnable(State::waiting);
  make_runnable(State::stalled);
  make_runnable(State::blocked);
}

Sequence Interpreter::sequence_of(std::uint32_t index) const noexcept {
  return oldest_ + ((index - oldest_.value()) & static_cast<std::uint32_t>(slots_.size() - 1));
}

void Interpreter::make_runnable(std::uint32_t index) {
  Slot& slot = slots_[index];
  slot.state = State::running;
  if (!std::exchange(slot.queued, true)) runnable_.push(index);
}

void Interpreter::make_runnable(State those_in) {
  for (auto i = oldest_; i != next_; ++i)
    if (slots_[index_of(i)].state == those_in) make_runnable(index_of(i));
}

}  // namespace overlap::coll_mq
