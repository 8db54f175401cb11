// One modelled MPI process around the real protocol code.
#include "process.hpp"

#include <algorithm>
#include <cstring>

namespace overlap::speculative::sim {
namespace {

constexpr auto guard = static_cast<std::byte>(0xa5);

/// The registration key of a modelled buffer: whose it is and which request's.
struct Key {
  std::int32_t rank;
  std::int32_t index;
};

template <class Header>
std::vector<std::byte> bytes_of(const Header& header, std::span<const std::byte> payload = {}) {
  std::vector<std::byte> bytes(sizeof header + payload.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!payload.empty()) std::memcpy(bytes.data() + sizeof header, payload.data(), payload.size());
  return bytes;
}

std::vector<std::byte> with_memory(const Action& action, const void* memory, Key key,
                                   bool accessible) {
  std::vector<std::byte> bytes(action.header.begin(), action.header.begin() + action.header_bytes);
  const auto describe = [&](auto header, std::uint16_t& key_bytes, std::uint8_t& flags) {
    (void)header;
    key_bytes = accessible ? sizeof key : 0;
    if (!accessible) flags |= flag::no_memory;
  };
  const auto patch = [&](auto header) {
    std::memcpy(&header, bytes.data(), sizeof header);
    header.address = accessible ? reinterpret_cast<std::uintptr_t>(memory) : 0;
    if constexpr (requires { header.key_bytes; }) {
      describe(0, header.key_bytes, header.head.flags);
    } else {
      describe(0, header.head.key_bytes, header.head.flags);
    }
    std::memcpy(bytes.data(), &header, sizeof header);
  };
  switch (kind_of(std::to_integer<std::uint8_t>(bytes[0]))) {
    case Kind::rts: patch(RtsHeader{}); break;
    case Kind::rtr: patch(RtrHeader{}); break;
    case Kind::grant: patch(GrantHeader{}); break;
    case Kind::eager:
    case Kind::eager_sync:
    case Kind::rtr_ack:
    case Kind::revoke_ack:
    case Kind::rts_ack:
    case Kind::revoke:
    case Kind::frag:
    case Kind::done:
    case Kind::sync_ack: return bytes;
  }
  if (accessible) {
    const auto tail = std::as_bytes(std::span(&key, 1));
    bytes.insert(bytes.end(), tail.begin(), tail.end());
  }
  return bytes;
}

Key key_of(const RemoteMemory& memory) {
  Key key{};
  if (!memory.accessible || memory.key_bytes != sizeof key)
    throw Violation("a transfer without a key");
  std::memcpy(&key, memory.key.data(), sizeof key);
  return key;
}

}  // namespace

Stream stream_of(Kind kind) noexcept {
  if (is_forward(kind)) return Stream::forward;
  return is_reverse(kind) ? Stream::reverse : Stream::targeted;
}

Process::Process(Network& network, int rank, int size, const Config& config,
                 const Transport& transport, Fault fault, std::uint16_t incarnation)
    : network_(network),
      rank_(rank),
      transport_(transport),
      fault_(fault),
      protocol_(config, *this, counters_),
      comm_(std::make_unique<Communicator>(std::uint16_t{7}, rank, static_cast<std::size_t>(size),
                                           incarnation)) {
  comm_->watch_every_eager = protocol_.watches_every_eager();
}

Process::~Process() {
  // Receives still posted stand in the communicator's lists, which go first; nothing to take out.
  comm_.reset();
}

// Calls ----------------------------------------------------------------------------------------------------------------------

Send& Process::isend(int to, int tag, std::size_t length_bytes, SendMode mode, int id) {
  Send& send = sends_.emplace_back();
  send.id = id;
  send.index = static_cast<int>(sends_.size()) - 1;
  send.to = to;
  send.mode = mode;
  send.data.resize(length_bytes);
  for (std::size_t i = 0; i < length_bytes; ++i) send.data[i] = payload_byte(id, i);
  Peer& peer = comm_->peer(to);
  send.peer = &peer;
  send.tag = tag;
  send.length_bytes = length_bytes;
  if (fault_ == Fault::eager_flag_never_set) peer.watch_eager = false;
  switch (mode) {
    case SendMode::eager: {
      const SequencedHeader head{kind_version(Kind::eager),
                                 0,
                                 comm_->context,
                                 rank_,
                                 tag,
                                 protocol_.eager_sequence(peer, tag),
                                 comm_->incarnation};
      network_.transmit({rank_, to, id, 0, bytes_of(head, send.data)});
      send.complete = true;
      network_.completed(send);
      break;
    }
    case SendMode::eager_sync: {
      EagerSyncHeader header{};
      header.head = {kind_version(Kind::eager_sync),
                     0,
                     comm_->context,
                     rank_,
                     tag,
                     protocol_.eager_sequence(peer, tag),
                     comm_->incarnation};
      header.send = protocol_.await_sync(send);
      network_.transmit({rank_, to, id, 0, bytes_of(header, send.data)});
      break;
    }
    case SendMode::rendezvous: protocol_.start_send(send); break;
  }
  perform_actions();
  return send;
}

Receive& Process::new_receive(int from, int tag, std::size_t capacity_bytes, bool speculate) {
  Receive& receive = receives_.emplace_back();
  receive.index = static_cast<int>(receives_.size()) - 1;
  receive.buffer.assign(capacity_bytes + guard_bytes, guard);
  receive.source = from;
  receive.tag = tag;
  receive.capacity_bytes = capacity_bytes;
  receive.speculate = speculate;
  return receive;
}

Receive& Process::irecv(int from, int tag, std::size_t capacity_bytes, bool speculate) {
  Receive& receive = new_receive(from, tag, capacity_bytes, speculate);
  network_.posted(*this, receive);
  const std::uint32_t wild = comm_->wild_receives;
  const bool blind = fault_ == Fault::rtr_behind_wildcard && from != any_source && tag != any_tag;
  if (blind) comm_->wild_receives = 0;
  Arrived* message = protocol_.post_receive(*comm_, receive);
  if (blind) comm_->wild_receives = wild;
  if (message != nullptr) take_eager(*message, receive);
  perform_actions();
  return receive;
}

void Process::cancel(Receive& receive) {
  protocol_.cancel(*comm_, receive);
  if (fault_ == Fault::revoke_not_awaited && receive.state == ReceiveState::revoking)
    receive.owned_by_user = true;
  perform_actions();
}

Arrived* Process::improbe(int from, int tag) {
  Arrived* message = protocol_.probe(*comm_, from, tag);
  if (message == nullptr) return nullptr;
  protocol_.take(*message);
  perform_actions();
  return message;
}

Receive& Process::imrecv(Arrived& message, std::size_t capacity_bytes) {
  Receive& receive = new_receive(message.peer->rank, message.tag, capacity_bytes, false);
  if (Arrived* eager = protocol_.receive_taken(message, receive)) take_eager(*eager, receive);
  perform_actions();
  return receive;
}

Receive* Process::improbe_and_receive(int from, int tag, std::size_t capacity_bytes) {
  Arrived* message = improbe(from, tag);
  return message == nullptr ? nullptr : &imrecv(*message, capacity_bytes);
}

void Process::take_eager(Arrived& message, Receive& receive) {
  deliver(receive, 0, {message.payload(), message.payload_bytes});
  Arrived::destroy(&message);
  complete(receive, false);
}

// Messages -------------------------------------------------------------------------------------------------------------------

bool Process::planted(const Message& message) {
  const Kind kind = message.kind();
  if (fault_ == Fault::no_rtr_ack && kind == Kind::rtr_ack) {
    ++comm_->peer(message.from).expected_sequence;  // lost, and nobody notices
    return true;
  }
  if (fault_ == Fault::no_rts_ack && kind == Kind::rts_ack) {
    ++comm_->peer(message.from).expected_reverse;
    return true;
  }
  return false;
}

void Process::deliver(const Message& message) {
  if (planted(message)) return;
  Message changed;
  std::span<const std::byte> bytes = message.bytes;
  if (fault_ == Fault::late_rtr_taken_for_new && message.kind() == Kind::rtr) {
    changed = message;
    auto rtr = load<RtrHeader>(bytes);
    rtr.base_sequence = comm_->peer(message.from).next_sequence;
    std::memcpy(changed.bytes.data(), &rtr, sizeof rtr);
    bytes = changed.bytes;
  }
  if (fault_ == Fault::stop_rtr_lost && message.kind() == Kind::rts) {
    changed = message;
    changed.bytes[1] &= ~static_cast<std::byte>(flag::hazard_stop);
    bytes = changed.bytes;
  }
  if (const char* fault = find_fault(bytes))
    throw Violation(std::string("malformed: ") + fault + ": " + describe(bytes));
  const Kind kind = message.kind();
  const char* fault = nullptr;
  ReceiveOp* matched = nullptr;
  if (kind == Kind::eager &&
      protocol_.try_match_eager(*comm_, load<SequencedHeader>(bytes),
                                bytes.size() - sizeof(SequencedHeader), matched)) {
    deliver(*matched, 0, bytes.subspan(sizeof(SequencedHeader)));
    complete(receive_of(*matched), false);
  } else if (is_targeted(kind)) {
    fault = protocol_.on_targeted(bytes);
  } else {
    fault = protocol_.on_sequenced(*comm_, bytes);
  }
  if (fault != nullptr)
    throw Violation(std::string("impossible: ") + fault + ": " + describe(bytes));
  perform_actions();
}

void Process::deliver(ReceiveOp& op, std::uint64_t offset_bytes,
                      std::span<const std::byte> payload) {
  Receive& receive = receive_of(op);
  if (receive.owned_by_user) throw Violation("data delivered to a receive that has ended");
  if (offset_bytes >= op.capacity_bytes) return;
  const std::size_t room = op.capacity_bytes - offset_bytes;
  std::memcpy(receive.buffer.data() + offset_bytes, payload.data(), std::min(room, payload.size()));
}

// Transfers ------------------------------------------------------------------------------------------------------------------

void Process::write_at(const RemoteMemory& target, std::span<const std::byte> payload) {
  const Key key = key_of(target);
  Receive& receive = network_.process(key.rank).receives()[static_cast<std::size_t>(key.index)];
  if (reinterpret_cast<std::uintptr_t>(receive.buffer.data()) != target.address)
    throw Violation("a write to a wrong address");
  if (receive.owned_by_user) throw Violation("a write to the buffer of a receive that has ended");
  if (payload.size() > receive.capacity_bytes)
    throw Violation("a write behind the end of a buffer");
  std::memcpy(receive.buffer.data(), payload.data(), payload.size());
}

bool Process::move_data(const Job& job) {
  switch (job.kind) {
    case Job::Kind::read: {
      const Key key = key_of(job.receive->source_memory);
      Send& from = network_.process(key.rank).sends()[static_cast<std::size_t>(key.index)];
      Receive& to = receive_of(*job.receive);
      if (from.complete) throw Violation("a read from the buffer of a send that has ended");
      if (to.owned_by_user) throw Violation("a read into the buffer of a receive that has ended");
      if (job.receive->take_bytes() > from.data.size())
        throw Violation("a read behind the end of a message");
      std::memcpy(to.buffer.data(), from.data.data(), job.receive->take_bytes());
      return true;
    }
    case Job::Kind::write: {
      if (transport_.write == Transport::Write::fails_later) return false;
      Send& send = send_of(*job.send);
      write_at(job.send->target, std::span(send.data).first(job.send->take_bytes));
      return true;
    }
    case Job::Kind::push: {
      Send& send = send_of(*job.send);
      for (std::uint64_t at = 0; at < job.send->take_bytes; at += transport_.fragment_bytes) {
        FragHeader frag{};
        frag.head = {kind_version(Kind::frag), 0, 0, 0, job.send->receive};
        frag.offset_bytes = at;
        const auto piece = std::span(send.data).subspan(
            at, std::min(transport_.fragment_bytes, job.send->take_bytes - at));
        network_.transmit({rank_, send.to, -1, 0, bytes_of(frag, piece)});
      }
      return true;
    }
  }
  return false;
}

/// Start a transfer whose end comes later.
void Process::begin(Job job) {
  job.stalled = transport_.chain == Transport::Chain::after_stall;
  if (transport_.chain == Transport::Chain::at_once) {
    chain(job);
  } else if (job.kind == Job::Kind::write) {
    protocol_.write_posted(*job.send);
  }
  network_.start(std::move(job));
}

void Process::go_on_posting(Job& job) {
  job.stalled = false;
  chain(job);
  perform_actions();
}

/// Post DONE behind a transfer.
void Process::chain(Job& job) {
  const bool write = job.kind == Job::Kind::write;
  const int to = write ? job.send->peer->rank : job.receive->matched_source;
  job.chained.push_back(
      {rank_, to, -1, 0,
       bytes_of(write ? Protocol::done_behind(*job.send) : Protocol::done_behind(*job.receive))});
  write ? protocol_.write_chained(*job.send) : protocol_.read_chained(*job.receive);
}

void Process::notice(const Job& job, bool moved) {
  switch (job.kind) {
    case Job::Kind::read: protocol_.read_done(*job.receive); break;
    case Job::Kind::write:
      moved ? protocol_.write_done(*job.send) : protocol_.write_refused(*job.send);
      break;
    case Job::Kind::push: protocol_.push_done(*job.send); break;
  }
  perform_actions();
}

// Actions --------------------------------------------------------------------------------------------------------------------

void Process::perform_actions() {
  // A step may add actions while earlier ones are done; the vector may move, so each is copied.
  auto& actions = protocol_.actions();
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Action action = actions[i];
    perform(action);
  }
  actions.clear();
}

void Process::perform(const Action& action) {
  switch (action.kind) {
    case Action::Kind::control: control(action); break;
    case Action::Kind::read:
      if (transport_.reads && action.receive->source_memory.accessible) {
        begin({Job::Kind::read, rank_, nullptr, action.receive, false, {}});
      } else {
        protocol_.read_refused(*action.receive);
      }
      break;
    case Action::Kind::write: {
      const Job job{Job::Kind::write, rank_, action.send, nullptr, false, {}};
      switch (transport_.write) {
        case Transport::Write::at_once:
          move_data(job);
          protocol_.write_done(*action.send);
          break;
        case Transport::Write::later:
        case Transport::Write::fails_later: begin(job); break;
        case Transport::Write::refused:
        case Transport::Write::none: protocol_.write_refused(*action.send); break;
      }
      break;
    }
    case Action::Kind::push:
      network_.start({Job::Kind::push, rank_, action.send, nullptr, false, {}});
      break;
    case Action::Kind::complete_send: {
      Send& send = send_of(*action.send);
      if (send.complete) throw Violation("a send completed twice");
      send.complete = true;
      network_.completed(send);
      break;
    }
    case Action::Kind::complete_receive: complete(receive_of(*action.receive), false); break;
    case Action::Kind::complete_cancelled: complete(receive_of(*action.receive), true); break;
    case Action::Kind::break_off:
      if (action.send != nullptr && send_of(*action.send).complete)
        throw Violation("a send of which a write failed has completed");
      throw Broken("a transfer failed behind which DONE was posted");
  }
}

void Process::control(const Action& action) {
  Message message;
  message.from = rank_;
  message.to = action.peer->rank;
  const bool accessible = transport_.write != Transport::Write::none;
  const Kind kind = kind_of(std::to_integer<std::uint8_t>(action.header[0]));
  if (kind == Kind::rts) {
    Send& send = send_of(*action.send);
    message.bytes = with_memory(action, send.data.data(), {rank_, send.index}, transport_.reads);
    message.send_id = send.id;
  } else if (kind == Kind::rtr || kind == Kind::grant) {
    Receive& receive = receive_of(*action.receive);
    message.bytes = with_memory(action, receive.buffer.data(), {rank_, receive.index}, accessible);
  } else {
    message.bytes.assign(action.header.begin(), action.header.begin() + action.header_bytes);
    if (kind == Kind::rtr_ack) message.send_id = send_of(*action.send).id;
  }
  network_.transmit(std::move(message));
}

void Process::complete(Receive& receive, bool cancelled) {
  if (receive.complete || receive.cancelled) throw Violation("a receive ended twice");
  (cancelled ? receive.cancelled : receive.complete) = true;
  receive.owned_by_user = true;
  if (receive.state != ReceiveState::idle) throw Violation("a receive ended that is not idle");
  network_.completed(receive);
}

void Process::check_buffers() {
  for (const Receive& receive : receives_) {
    for (std::size_t i = receive.capacity_bytes; i < receive.buffer.size(); ++i) {
      if (receive.buffer[i] != guard)
        throw Violation("bytes behind the end of a buffer have changed");
    }
  }
}

}  // namespace overlap::speculative::sim
