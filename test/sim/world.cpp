// Steps of the two modelled processes, and what must hold at the end.
// SPDX-License-Identifier: BSD-3-Clause
#include "world.hpp"

#include <algorithm>

namespace overlap::speculative::sim {

World::World(const Case& test) : test_(test) {
  Config config = test.config;
  config.hazard_policy = test.policy;
  for (int rank = 0; rank < 2; ++rank) {
    processes_[rank].emplace(*this, rank, 2, config, test.transport, test.fault, test.world,
                             test.communicators_before[rank]);
  }
}

void World::options(std::vector<Option>& out) const {
  out.clear();
  for (int rank = 0; rank < 2; ++rank) {
    if (may_call(rank)) out.push_back({Option::What::call, rank, 0});
  }
  for (int rank = 0; rank < 2; ++rank) {
    if (!waiting_[rank].empty() && !stopped_[rank]) out.push_back({Option::What::leave, rank, 0});
  }
  for (int to = 0; to < 2; ++to) {
    if (stopped_[to]) continue;
    bool seen[3] = {};
    for (std::size_t i = 0; i < in_flight_[to].size(); ++i) {
      const auto stream = static_cast<std::size_t>(in_flight_[to][i].message.stream());
      const bool blocked =
          test_.order == Order::kept ? i > 0 : test_.order == Order::streams && seen[stream];
      seen[stream] = true;
      if (!blocked) out.push_back({Option::What::deliver, to, i});
    }
  }
  for (int to = 0; to < 2; ++to) {
    for (std::size_t i = 0; i < chained_[to].size() && !stopped_[to]; ++i)
      out.push_back({Option::What::deliver_chained, to, i});
  }
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const Running& running = jobs_[i];
    const auto what = running.job.stalled                                ? Option::What::post
                      : running.job.chained.empty() || running.has_moved ? Option::What::finish
                                                                         : Option::What::move;
    if (what == Option::What::move || !stopped_[running.job.rank])
      out.push_back({what, running.job.rank, i});
  }
}

void World::deliver(const Option& option, std::deque<Flying>& queue, std::uint64_t mark) {
  const Flying flying = std::move(queue[option.index]);
  queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(option.index));
  note(option.rank, mark + flying.number);
  process(option.rank).deliver(flying.message);
}

void World::take(const Option& option) {
  switch (option.what) {
    case Option::What::call: call(option.rank); break;
    case Option::What::leave: {
      note(option.rank, 0x5000);
      const Message message = std::move(waiting_[option.rank].front());
      waiting_[option.rank].pop_front();
      const bool eager = message.kind() == Kind::eager;
      in_flight_[message.to].push_back({message, sent_[message.to]++});
      if (eager) process(option.rank).transmitted(message.send_id);
      break;
    }
    case Option::What::deliver: deliver(option, in_flight_[option.rank], 0x1000); break;
    case Option::What::deliver_chained: deliver(option, chained_[option.rank], 0x4000); break;
    case Option::What::post: {
      Running running = std::move(jobs_[option.index]);  // posting may start more
      jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(option.index));
      note(option.rank, 0x3000 + running.number);
      process(option.rank).go_on_posting(running.job);
      jobs_.push_back(std::move(running));
      break;
    }
    case Option::What::move: {
      Running& running = jobs_[option.index];
      moved_[option.rank] |= std::uint64_t{1} << running.number;  // no input of its poster's
      running.has_moved = true;
      running.moved = process(option.rank).move_data(running.job);
      if (!running.moved) break;
      const Message& done = running.job.chained.front();
      chained_[done.to].push_back({done, running.number});
      break;
    }
    case Option::What::finish: {
      const Running running = std::move(jobs_[option.index]);
      jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(option.index));
      note(option.rank, 0x2000 + running.number);
      Process& owner = process(option.rank);
      owner.notice(running.job, running.has_moved ? running.moved : owner.move_data(running.job));
      break;
    }
  }
}

Hash128 World::state() const noexcept {
  Hash128 both = history_[0];
  both.mix(history_[1].a);
  both.mix(history_[1].b);
  both.mix(moved_[0]);
  both.mix(moved_[1]);
  return both;
}

std::string World::tell(const Option& option) const {
  const std::string who = " P" + std::to_string(option.rank);
  switch (option.what) {
    case Option::What::call: return who + ":call" + std::to_string(next_call_[option.rank]);
    case Option::What::deliver: {
      const auto& message = in_flight_[option.rank][option.index].message;
      const std::string text = speculative::describe(message.unprefixed());
      return who + "<-" + text.substr(0, text.find(' '));
    }
    case Option::What::leave: return who + ":leaves";
    case Option::What::deliver_chained: return who + "<-chained-DONE";
    case Option::What::post: return who + ":posts-the-rest";
    case Option::What::move: return who + ":data-moves";
    case Option::What::finish: return who + ":transfer-ends";
  }
  return {};
}

bool World::transmit(Message message) {
  if (!test_.room) {
    waiting_[message.from].push_back(std::move(message));
    return false;
  }
  const int to = message.to;
  in_flight_[to].push_back({std::move(message), sent_[to]++});
  return true;
}

void World::completed(Receive& receive) {
  const int rank = process_being_called_;
  if (reposted_ >= test_.reposts || receive.generation < 0 || receive.cancelled) return;
  ++reposted_;
  by_call_[rank].push_back(&process(rank).irecv(1 - rank, 5, 4, true));
}

void World::start(Job job) {
  const std::uint64_t number = started_[job.rank]++;
  if (test_.fault == Fault::chained_ahead) {
    for (Message& done : job.chained) chained_[done.to].push_back({std::move(done), number});
    job.chained.clear();
  }
  jobs_.push_back({std::move(job), number});
}

bool World::may_call(int rank) const noexcept {
  const Program& program = test_.programs[rank];
  if (next_call_[rank] >= program.size() || stopped_[rank] || !processes_[rank]->agreed())
    return false;
  switch (program[next_call_[rank]].what) {
    case Call::What::free: return !processes_[rank]->busy();
    case Call::What::stop: return waiting_[rank].empty();
    case Call::What::wait:
      return by_call_[rank][static_cast<std::size_t>(program[next_call_[rank]].which)]
          ->owned_by_user;
    case Call::What::send:
    case Call::What::receive:
    case Call::What::cancel:
    case Call::What::improbe:
    case Call::What::agree:
    case Call::What::activate: return true;
  }
  return true;
}

void World::call(int rank) {
  const std::size_t number = next_call_[rank]++;
  const Call& call = test_.programs[rank][number];
  note(rank, number);
  Process& self = process(rank);
  switch (call.what) {
    case Call::What::send:
      self.isend(1 - rank, call.tag, call.bytes, call.mode,
                 100 * rank + static_cast<int>(number) + 1);
      break;
    case Call::What::receive: {
      Receive& made = self.irecv(call.from == any_source ? any_source : 1 - rank, call.tag,
                                 call.bytes, call.speculate);
      by_call_[rank].push_back(&made);
      break;
    }
    case Call::What::cancel:
      self.cancel(*by_call_[rank][static_cast<std::size_t>(call.which)]);
      break;
    case Call::What::wait: break;
    case Call::What::improbe:
      if (Receive* made = self.improbe_and_receive(1 - rank, call.tag, call.bytes))
        by_call_[rank].push_back(made);
      break;
    case Call::What::free:
      self.free_communicator();
      if (test_.fault == Fault::queue_dies_with_communicator) waiting_[rank].clear();
      break;
    case Call::What::agree: self.agree(); break;
    case Call::What::activate: self.activate(); break;
    case Call::What::stop: stopped_[rank] = true; break;
  }
}

/// The reference: what MPI says, from the two programs alone. Receives in the order of posting (a
/// matched probe that found something posts where it stands; a cancelled receive never existed),
/// sends in program order, each pair one to one.
void World::check_matching(int sender, int generation, bool broken) {
  Process& from = process(sender);
  Process& to = process(1 - sender);
  std::vector<Send*> unmatched;
  for (Send& send : from.sends()) {
    if (send.generation == generation) unmatched.push_back(&send);
  }
  std::size_t open_receives = 0;
  for (Receive& receive : to.receives()) {
    if (receive.cancelled || receive.generation != generation) continue;
    std::size_t i = 0;
    // A matched probe has become a receive of the message's own envelope; MPI's choice is the same.
    while (i < unmatched.size() && receive.tag != any_tag && receive.tag != unmatched[i]->tag) ++i;
    if (i == unmatched.size()) {
      if (receive.complete)
        throw Violation("a receive got a message that MPI gives to nobody or to another receive");
      ++open_receives;
      continue;
    }
    const Send& send = *unmatched[i];
    unmatched.erase(unmatched.begin() + static_cast<std::ptrdiff_t>(i));
    if (broken && !receive.complete) continue;
    if (!receive.complete)
      throw Violation("deadlock: receive " + std::to_string(receive.index) + " never completed");
    if (!broken && !send.complete)
      throw Violation("deadlock: send " + std::to_string(send.id) + " never completed");
    if (receive.matched_source != sender || receive.matched_tag != send.tag ||
        receive.length_bytes != send.data.size()) {
      throw Violation("receive " + std::to_string(receive.index) +
                      " reports another message than MPI gives it");
    }
    for (std::size_t b = 0; b < receive.take_bytes(); ++b) {
      if (receive.buffer[b] != send.data[b])
        throw Violation("receive " + std::to_string(receive.index) + " has wrong bytes");
    }
  }
  const bool both_alive = from.has_comm() && to.has_comm() && from.generation() == generation &&
                          to.generation() == generation;
  if (broken || !both_alive) return;
  check_left_over(sender, unmatched, open_receives);
}

void World::check_left_over(int sender, const std::vector<Send*>& unmatched,
                            std::size_t open_receives) {
  Process& from = process(sender);
  Process& to = process(1 - sender);
  std::size_t open_sends = 0;
  for (Send* send : unmatched) {
    if (send->mode == SendMode::eager) continue;
    // One that has used the RTR of a cancelled receive may lie at the receiver, complete; so may
    // one that could have gone eagerly.
    const bool buffered = (send->mode == SendMode::rendezvous && to.has_ghosts()) ||
                          send->mode == SendMode::eager_sized;
    if (send->complete && !buffered) throw Violation("a send completed that nobody has received");
    ++open_sends;
  }
  // A process that makes no more calls confirms no REVOKE.
  if (stopped_[0] || stopped_[1]) return;
  if (from.protocol().open_handles() > open_sends + (from.comm().posted_count))
    throw Violation("handles left over at the sender");
  if (to.protocol().open_handles() > open_receives + (to.sends().empty() ? 0 : to.sends().size())) {
    throw Violation("handles left over at the receiver");
  }
  if (to.comm().posted_count != open_receives) throw Violation("posted receives left over");
  if (to.comm().unexpected_count != unmatched.size())
    throw Violation("unexpected messages left over");
  Peer& peer = from.comm().peer(1 - sender);
  if (peer.kept_rtrs > open_receives) throw Violation("RTRs left over that no receive stands for");
  if (!peer.forward_stash.empty() || !peer.reverse_stash.empty())
    throw Violation("messages left in a stash");
  if (!unmatched.empty()) return;
  for (const Send& send : from.sends()) {
    const SendEnvelope* envelope = peer.send_envelopes.find(send.tag);
    if (envelope == nullptr) continue;
    if (envelope->phase == SendEnvelope::Phase::draining)
      throw Violation("a stop-RTR is never answered");
    if (envelope->phase == SendEnvelope::Phase::open && !envelope->eager_flag &&
        envelope->awaiting_rtrs != 0) {
      throw Violation("an RTS is never answered by RTR or RTS-ACK");
    }
  }
}

/// A process has freed a communicator: the other one is not left with what only it could end.
void World::check_gone(int sender, int generation) {
  Process& from = process(sender);
  Process& to = process(1 - sender);
  const bool gone = from.generation() > generation;
  if (!gone || stopped_[1 - sender]) return;
  for (Receive& receive : to.receives()) {
    if (receive.generation == generation && is_open(receive.state) && is_posted(receive.state))
      throw Violation("an RTR is out to a process that has freed the communicator");
  }
}

void World::check_end() {
  bool frees = false;
  for (int rank = 0; rank < 2; ++rank) {
    if (next_call_[rank] != test_.programs[rank].size())
      throw Violation("deadlock: a call of P" + std::to_string(rank) + " waits for ever");
    for (const Call& call : test_.programs[rank]) frees |= call.what == Call::What::free;
  }
  const int last = std::max(process(0).generation(), process(1).generation());
  for (int rank = 0; rank < 2; ++rank) {
    for (int generation = 0; generation <= last; ++generation) {
      check_matching(rank, generation, false);
      check_gone(rank, generation);
    }
    process(rank).check_buffers();
    if (!frees && process(rank).counters().stale_dropped != 0)
      throw Violation("a message was dropped as stale, and nothing has been freed");
    if (!stopped_[0] && !stopped_[1] && process(0).has_comm() && process(1).has_comm() &&
        process(rank).protocol().streams().held() != 0)
      throw Violation("messages are held for a communicator that exists");
  }
}

void World::check_broken() {
  for (int rank = 0; rank < 2; ++rank) {
    check_matching(rank, 0, true);
    process(rank).check_buffers();
  }
}

}  // namespace overlap::speculative::sim
