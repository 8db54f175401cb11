// Modelled network, virtual time, reference matcher.
// SPDX-License-Identifier: BSD-3-Clause
#include "simulator.hpp"

#include <algorithm>

namespace overlap::speculative::sim {

// Reference -----------------------------------------------------------------------------

namespace {

bool fits(int want_source, int want_tag, int source, int tag) {
  return (want_source == any_source || want_source == source) &&
         (want_tag == tag || (want_tag == any_tag && tag >= 0));
}

}  // namespace

void Reference::post(int receive, int source, int tag) {
  if (const auto send_id = take(source, tag))
    give(receive, *send_id);
  else
    posted_.push_back({receive, source, tag});
}

void Reference::arrive(const Arrival& message) {
  for (std::size_t i = 0; i < posted_.size(); ++i) {
    if (!fits(posted_[i].source, posted_[i].tag, message.source, message.tag)) continue;
    matches_[posted_[i].receive] = message.send_id;
    posted_.erase(posted_.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  unexpected_.push_back(message);
}

std::vector<Reference::Arrival>::const_iterator Reference::find(int source, int tag) const {
  return std::find_if(unexpected_.begin(), unexpected_.end(), [source, tag](const Arrival& each) {
    return fits(source, tag, each.source, each.tag);
  });
}

std::optional<int> Reference::take(int source, int tag) {
  const auto found = find(source, tag);
  if (found == unexpected_.end()) return std::nullopt;
  const int send_id = found->send_id;
  unexpected_.erase(found);
  return send_id;
}

void Reference::cancelled(int receive) {
  if (matches_.contains(receive)) throw Violation("a receive was cancelled that MPI had matched");
  std::erase_if(posted_, [receive](const Posted& posted) { return posted.receive == receive; });
}

int Reference::match_of(int receive) const {
  const auto found = matches_.find(receive);
  return found == matches_.end() ? -1 : found->second;
}

// Network -------------------------------------------------------------------------------

Simulator::Simulator(int ranks, const Fabric& fabric, const Config& config,
                     const Transport& transport, bool early_progress, bool patient)
    : fabric_(fabric),
      early_progress_(early_progress),
      patient_(patient),
      ranks_(static_cast<std::size_t>(ranks)),
      random_(fabric.seed * 0x9e3779b97f4a7c15U + 1) {
  for (int rank = 0; rank < ranks; ++rank) {
    ranks_[static_cast<std::size_t>(rank)].process =
        std::make_unique<Process>(*this, rank, ranks, config, transport, Fault::none);
  }
}

void Simulator::at(std::uint64_t ns, Event::What what, int rank, std::shared_ptr<Notice> notice) {
  events_.push({ns, next_event_++, what, rank, std::move(notice)});
}

/// @returns  when the last byte is there
std::uint64_t Simulator::occupy(int from, int to, std::uint64_t bytes, std::uint64_t ready_ns) {
  std::uint64_t& free_ns = link_free_ns_[{from, to}];
  free_ns = std::max(free_ns, ready_ns) + bytes * 1000 / fabric_.bytes_per_us;
  random_ = random_ * 6364136223846793005U + 1442695040888963407U;
  const std::uint64_t jitter =
      fabric_.jitter_max_ns == 0 ? 0 : (random_ >> 33U) % fabric_.jitter_max_ns;
  return free_ns + fabric_.latency_ns + jitter;
}

bool Simulator::transmit(Message message) {
  Rank& from = ranks_[static_cast<std::size_t>(message.from)];
  from.clock_ns += fabric_.overhead_ns;
  ++messages_;
  if (message.stream() == Stream::forward)
    message.number = forward_sent_[{message.from, message.to}]++;
  const std::uint64_t there_ns =
      occupy(message.from, message.to, message.bytes.size(), from.clock_ns);
  const int to = message.to;
  at(there_ns, Event::What::arrival, to,
     std::make_shared<Notice>(Notice{true, std::move(message), {}, false}));
  return true;
}

void Simulator::start(Job job) {
  const Rank& self = ranks_[static_cast<std::size_t>(job.rank)];
  if (job.stalled) {
    const int rank = job.rank;
    const auto room = std::make_shared<Notice>(Notice{false, {}, std::move(job), true});
    at(self.clock_ns + fabric_.latency_ns, Event::What::transfer_ends, rank, room);
    return;
  }
  const auto notice = std::make_shared<Notice>(Notice{false, {}, job, true});
  switch (job.kind) {
    case Job::Kind::read: {
      const std::uint64_t asked_ns = self.clock_ns + fabric_.latency_ns;
      const std::uint64_t there_ns =
          occupy(job.receive->matched_source, job.rank, job.receive->take_bytes(), asked_ns);
      at(there_ns, Event::What::data_moves, job.rank, notice);
      break;
    }
    case Job::Kind::write:
      at(occupy(job.rank, job.send->peer->rank, job.send->take_bytes, self.clock_ns),
         Event::What::data_moves, job.rank, notice);
      break;
    case Job::Kind::push: at(self.clock_ns, Event::What::data_moves, job.rank, notice); break;
  }
}

/// DONE follows its data without a processor: right behind a write, back to the owner of what was
/// read.
void Simulator::send_chained(Job& job, std::uint64_t moved_ns) {
  for (Message& done : job.chained) {
    ++messages_;
    const std::uint64_t ready_ns =
        job.kind == Job::Kind::write ? moved_ns - fabric_.latency_ns : moved_ns;
    const int to = done.to;
    const std::uint64_t there_ns = occupy(done.from, to, done.bytes.size(), ready_ns);
    at(std::max(there_ns, moved_ns), Event::What::arrival, to,
       std::make_shared<Notice>(Notice{true, std::move(done), {}, false}));
  }
}

void Simulator::completed(Send& send) {
  send.completed_ns = ranks_[static_cast<std::size_t>(current_)].clock_ns;
}

void Simulator::completed(Receive& receive) {
  Rank& rank = ranks_[static_cast<std::size_t>(current_)];
  receive.completed_ns = rank.clock_ns;
  if (receive.cancelled) {
    rank.reference.cancelled(receive.index);
  } else {
    verify(rank, receive);
  }
}

void Simulator::posted(Process& process, Receive& receive) {
  ranks_[static_cast<std::size_t>(process.rank())].reference.post(receive.index, receive.source,
                                                                  receive.tag);
}

void Simulator::verify(Rank& rank, Receive& receive) {
  const int id = rank.reference.match_of(receive.index);
  if (id < 0) throw Violation("a receive got a message that MPI does not give to it");
  const Send& send = *sends_by_id_[static_cast<std::size_t>(id)];
  const bool same = receive.matched_tag == send.tag && receive.length_bytes == send.data.size() &&
                    send.to == rank.process->rank();
  if (!same) throw Violation("a receive reports another message than MPI gives to it");
  if (!std::equal(send.data.begin(),
                  send.data.begin() + static_cast<std::ptrdiff_t>(receive.take_bytes()),
                  receive.buffer.begin())) {
    throw Violation("a receive has wrong bytes");
  }
}

/// Messages are the reference's as soon as all earlier ones of their sender are, as with the
/// process itself.
void Simulator::tell_reference(Rank& rank, const Message& message) {
  auto& early = rank.early[message.from];
  early.emplace(message.number, message);
  std::uint64_t& next = rank.seen[message.from];
  for (auto first = early.find(next); first != early.end(); first = early.find(next)) {
    const Message& now = first->second;
    if (now.send_id >= 0) {
      rank.reference.arrive({now.from, load<SequencedHeader>(now.unprefixed()).tag, now.send_id});
    } else {
      // A REVOKE-ACK: the cancelled receives of its envelope end here, before the messages behind
      // it.
      for (Receive& receive : rank.process->receives()) {
        const bool ends = receive.state == ReceiveState::revoking && receive.source == now.from &&
                          receive.tag == load<SequencedHeader>(now.unprefixed()).tag &&
                          rank.reference.match_of(receive.index) < 0;
        if (ends) rank.reference.cancelled(receive.index);
      }
    }
    early.erase(first);
    ++next;
  }
}

// Processes -----------------------------------------------------------------------------

void Simulator::handle(Rank& rank, const Notice& notice) {
  rank.clock_ns += fabric_.overhead_ns;
  current_ = rank.process->rank();
  if (!notice.is_message && notice.job.stalled) {
    Job job = notice.job;
    rank.process->go_on_posting(job);
    start(std::move(job));
    return;
  }
  if (!notice.is_message) {
    rank.process->notice(notice.job, notice.moved);
    return;
  }
  if (notice.message.stream() == Stream::forward) tell_reference(rank, notice.message);
  rank.process->deliver(notice.message);
}

void Simulator::progress(Rank& rank) {
  while (!rank.inbox.empty()) {
    const auto notice = std::move(rank.inbox.front());
    rank.inbox.pop_front();
    handle(rank, *notice);
  }
  rank.process->take_left();
  if (rank.process->owes_turns() != rank.process->protocol().has_left())
    throw Violation("turns are asked for while none is needed, or the other way round");
}

/// A send is deferred: its process polls. @returns  false: none is
bool Simulator::await_rtr(Rank& rank) {
  constexpr std::uint64_t poll_ns = 1000;
  if (!rank.process->protocol().has_deferred()) return false;
  rank.inside = true;
  at(rank.clock_ns + poll_ns, Event::What::resume, rank.process->rank());
  return true;
}

bool Simulator::post(Rank& rank, const Step& step) {
  Process& self = *rank.process;
  bool found = false;
  if (early_progress_ && step.speculate) {
    const auto there = [&] {
      return self.protocol().probe(self.comm(), step.peer, step.tag) != nullptr;
    };
    found = !there();
    progress(rank);
    found = found && there();
  }
  self.irecv(step.peer, step.tag, step.bytes, step.speculate, found);
  return true;
}

/// The poll of a probe that has found nothing.
void Simulator::look(Rank& rank, const Step& step) {
  Process& self = *rank.process;
  if (self.protocol().probe(self.comm(), step.peer, step.tag) == nullptr)
    self.expect_receive([&] { progress(rank); });
}

/// A matched probe. @returns  false: nothing is there
bool Simulator::hold(Rank& rank, const Step& step) {
  look(rank, step);
  const std::optional<int> expected = rank.reference.take(step.peer, step.tag);
  Arrived* const found = rank.process->improbe(step.peer, step.tag);
  if ((found != nullptr) != expected.has_value())
    throw Violation("a matched probe and MPI disagree");
  if (found != nullptr) rank.held.push_back({found, *expected, step.bytes});
  return found != nullptr;
}

void Simulator::receive(Rank& rank, const Held& held) {
  rank.reference.give(static_cast<int>(rank.process->receives().size()), held.send_id);
  rank.process->imrecv(*held.message, held.bytes);
}

/// @returns  false when the process goes on later
bool Simulator::do_step(Rank& rank, const Step& step) {
  Process& self = *rank.process;
  current_ = self.rank();
  switch (step.what) {
    case Step::What::compute:
    case Step::What::linger:
      rank.inside = step.what == Step::What::linger;
      if (rank.inside) progress(rank);
      at(rank.clock_ns + step.ns, Event::What::resume, self.rank());
      return false;
    case Step::What::send: {
      rank.clock_ns += fabric_.overhead_ns;
      if (early_progress_ && step.mode == SendMode::rendezvous &&
          self.protocol().wants_early_progress(self.comm().peer(step.peer), step.tag)) {
        progress(rank);
      }
      const int id = static_cast<int>(sends_by_id_.size());
      sends_by_id_.push_back(&self.isend(step.peer, step.tag, step.bytes, step.mode, id));
      return !await_rtr(rank);
    }
    case Step::What::receive: rank.clock_ns += fabric_.overhead_ns; return post(rank, step);
    case Step::What::cancel: {
      if (static_cast<std::size_t>(step.which) >= self.receives().size()) return true;
      Receive& receive = self.receives()[static_cast<std::size_t>(step.which)];
      if (!receive.complete && !receive.cancelled) self.cancel(receive);
      return true;
    }
    case Step::What::hold: hold(rank, step); return true;
    case Step::What::improbe: {
      if (!hold(rank, step)) return true;
      const Held held = rank.held.back();
      rank.held.pop_back();
      receive(rank, held);
      return true;
    }
    case Step::What::receive_held: {
      if (rank.held.empty()) return true;
      const Held held = rank.held.front();
      rank.held.pop_front();
      receive(rank, held);
      return true;
    }
    case Step::What::iprobe: {
      look(rank, step);
      const bool expected = rank.reference.has(step.peer, step.tag);
      if (self.iprobe(step.peer, step.tag) != expected) throw Violation("a probe and MPI disagree");
      return true;
    }
    case Step::What::wait_send:
    case Step::What::wait_receive: {
      rank.inside = true;
      if (step.what == Step::What::wait_send)
        self.expect_receive([&] { progress(rank); });
      else
        progress(rank);
      const auto which = static_cast<std::size_t>(step.which);
      const bool over = step.what == Step::What::wait_send
                            ? self.sends()[which].complete
                            : self.receives()[which].complete || self.receives()[which].cancelled;
      rank.waiting = !over;
      return over;
    }
  }
  return true;
}

void Simulator::go_on(Rank& rank) {
  rank.waiting = false;
  if (rank.process->protocol().has_deferred()) {
    current_ = rank.process->rank();
    progress(rank);
    rank.process->expire();
    if (await_rtr(rank)) return;
  }
  while (rank.next_step < rank.program.size()) {
    const Step& step = rank.program[rank.next_step];
    rank.inside = false;
    if (!do_step(rank, step)) {
      if (!rank.waiting) ++rank.next_step;
      return;
    }
    ++rank.next_step;
  }
  rank.inside = true;  // in MPI_Finalize
  do progress(rank);
  while (rank.process->protocol().has_left());
}

void Simulator::loop() {
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    Rank& rank = ranks_[static_cast<std::size_t>(event.rank)];
    switch (event.what) {
      case Event::What::data_moves: {
        // RDMA: no processor. The one who started it learns of the end a latency later (a push ends
        // when the last piece is out).
        event.notice->moved = rank.process->move_data(event.notice->job);
        const bool remote = event.notice->job.kind == Job::Kind::write;
        at(event.at_ns + (remote ? fabric_.latency_ns : 0), Event::What::transfer_ends, event.rank,
           event.notice);
        if (event.notice->moved) send_chained(event.notice->job, event.at_ns);
        break;
      }
      case Event::What::arrival:
      case Event::What::transfer_ends:
        rank.inbox.push_back(event.notice);
        if (!rank.inside) break;
        rank.clock_ns = std::max(rank.clock_ns, event.at_ns);
        progress(rank);
        if (rank.waiting) go_on(rank);
        break;
      case Event::What::resume:
        rank.clock_ns = std::max(rank.clock_ns, event.at_ns);
        go_on(rank);
        break;
    }
  }
}

std::uint64_t Simulator::run(std::vector<std::vector<Step>> programs) {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].program = std::move(programs[i]);
    ranks_[i].next_step = 0;
    at(ranks_[i].clock_ns, Event::What::resume, static_cast<int>(i));
  }
  loop();
  std::uint64_t end_ns = 0;
  for (const Rank& rank : ranks_) {
    if (rank.waiting) throw Violation("deadlock");
    end_ns = std::max(end_ns, rank.clock_ns);
  }
  return end_ns;
}

void Simulator::wind_up() {
  // Whatever the reference has matched must have ended by now.
  for (Rank& rank : ranks_) {
    if (rank.process->protocol().has_left()) throw Violation("messages are left for a turn");
    for (Receive& receive : rank.process->receives()) {
      if (rank.reference.match_of(receive.index) >= 0 && !receive.complete)
        throw Violation("deadlock: a matched receive never completed");
    }
  }
  const auto everybody = [this](const std::vector<Step>& program) {
    run({ranks_.size(), program});
  };
  std::vector<std::vector<Step>> cancels(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (Receive& receive : ranks_[i].process->receives()) {
      if (!receive.complete && !receive.cancelled) {
        Step step;
        step.what = Step::What::cancel;
        step.which = receive.index;
        cancels[i].push_back(step);
      }
    }
  }
  run(std::move(cancels));
  std::vector<std::vector<Step>> held(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Step step;
    step.what = Step::What::receive_held;
    held[i].assign(ranks_[i].held.size(), step);
  }
  run(std::move(held));
  Step probe;
  probe.what = Step::What::improbe;
  probe.peer = any_source;
  probe.tag = any_tag;
  probe.bytes = 1U << 16U;
  bool left = true;
  while (left) {
    everybody({probe});
    left = std::any_of(ranks_.begin(), ranks_.end(),
                       [](Rank& rank) { return rank.process->comm().unexpected_count != 0; });
  }
  for (Rank& rank : ranks_) {
    Process& self = *rank.process;
    self.check_buffers();
    for (Send& send : self.sends()) {
      if (!send.complete) throw Violation("a send never completed");
    }
    for (Receive& receive : self.receives()) {
      if (receive.complete == receive.cancelled)
        throw Violation("a receive is neither complete nor cancelled, or both");
      if (receive.complete) verify(rank, receive);  // again: nobody has touched the buffer since
    }
    if (self.protocol().open_handles() != 0) throw Violation("handles left over");
    if (self.comm().posted_count != 0) throw Violation("posted receives left over");
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Peer* peer = self.comm().peer_if_known(static_cast<int>(i));
      if (peer == nullptr) continue;
      if (peer->kept_rtrs != 0) throw Violation("RTRs left over");
      if (!peer->forward_stash.empty() || !peer->reverse_stash.empty())
        throw Violation("messages left in a stash");
    }
  }
}

}  // namespace overlap::speculative::sim
