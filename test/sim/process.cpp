// One modelled MPI process around the real protocol code.
// SPDX-License-Identifier: BSD-3-Clause
#include "process.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace overlap::speculative::sim {
namespace {

constexpr auto guard = static_cast<std::byte>(0xa5);
constexpr std::uint16_t world_context = 0;
constexpr std::uint16_t sub_context = 7;
constexpr int internal_tag = -17;
constexpr int internal_generation = -1;
constexpr int internal_id = -2;  // not -1: its message stands for a send

constexpr std::uint64_t process_number(int rank) noexcept {
  return static_cast<std::uint64_t>(rank) + 1;
}

Config numbered(Config config, int rank) {
  config.process = process_number(rank);
  return config;
}

}  // namespace

std::vector<std::byte> joined(std::span<const std::byte> header,
                              std::span<const std::byte> payload) {
  std::vector<std::byte> bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

Stream stream_of(Kind kind) noexcept {
  if (is_forward(kind)) return Stream::forward;
  return is_reverse(kind) ? Stream::reverse : Stream::targeted;
}

Process::Process(Network& network, int rank, int size, const Config& config,
                 const Transport& transport, Fault fault, bool world, unsigned communicators_before)
    : network_(network),
      rank_(rank),
      transport_(transport),
      fault_(fault),
      protocol_(numbered(config, rank), *this, counters_),
      size_(size) {
  world_ = &protocol_.add_communicator({.context = world_context,
                                        .my_rank = rank,
                                        .size = static_cast<std::size_t>(size),
                                        .agreed_incarnation = 0});
  made_ = 1 + communicators_before;
  for (unsigned i = 0; i < communicators_before; ++i)
    protocol_.add_communicator(
        {.context = static_cast<std::uint16_t>(sub_context + 1 + i), .size = 1});
  if (world) {
    comm_ = world_;
  } else {
    add_communicator();
  }
}

Process::~Process() = default;

std::uint64_t Process::process_of(const Communicator&, std::int32_t rank) {
  return process_number(rank);
}

// Communicators -------------------------------------------------------------------------

void Process::add_communicator() {
  ++made_;
  comm_ = &protocol_.add_communicator(
      {.context = sub_context, .my_rank = rank_, .size = static_cast<std::size_t>(size_)});
  if (const char* fault = protocol_.take_early(*comm_))
    throw Violation(std::string("impossible, kept since before: ") + fault);
  perform_actions();
}

void Process::free_communicator() {
  for (const Action& end : protocol_.end_streams(*comm_)) {
    if (fault_ != Fault::no_stream_end) perform(end);
  }
  protocol_.remove_communicator(*comm_);
  comm_ = nullptr;
  ++generation_;
}

/// Send the other process an internal message on MPI_COMM_WORLD and wait for one like it.
void Process::exchange() {
  Communicator* present = std::exchange(comm_, world_);
  const int generation = std::exchange(generation_, internal_generation);
  isend(1 - rank_, internal_tag, 1, SendMode::eager, internal_id);
  agreement_ = &irecv(1 - rank_, internal_tag, 1, false);
  comm_ = present;
  generation_ = generation;
}

void Process::agree() { exchange(); }

void Process::activate() {
  add_communicator();
  exchange();
}

bool Process::busy() const noexcept {
  const auto open = [this](const auto& requests) {
    return std::any_of(requests.begin(), requests.end(), [this](const auto& request) {
      if constexpr (requires { request.cancelled; }) {
        if (request.cancelled) return false;
      }
      return request.generation == generation_ && !request.complete;
    });
  };
  return open(sends_) || open(receives_);
}

void Process::transmitted(int send_id) {
  for (Send& send : sends_) {
    if (send.id != send_id || send.complete || send.mode != SendMode::eager) continue;
    send.complete = true;
    network_.completed(send);
    return;
  }
}

// Calls ---------------------------------------------------------------------------------

Send& Process::isend(int to, int tag, std::size_t length_bytes, SendMode mode, int id) {
  Send& send = sends_.emplace_back();
  send.id = id;
  send.index = static_cast<int>(sends_.size()) - 1;
  send.to = to;
  send.generation = generation_;
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
      Message message{rank_, to, id, 0,
                      joined(protocol_.eager_header(peer, tag).bytes(), send.data)};
      plant_in(message.bytes);
      if (network_.transmit(std::move(message))) {
        send.complete = true;
        network_.completed(send);
      }
      break;
    }
    case SendMode::eager_sync: {
      Message message{rank_, to, id, 0,
                      joined(protocol_.eager_sync_header(send).bytes(), send.data)};
      plant_in(message.bytes);
      network_.transmit(std::move(message));
      break;
    }
    case SendMode::rendezvous:
    case SendMode::rendezvous_sync:
    case SendMode::eager_sized:
    case SendMode::eager_sized_sync:
      send.synchronous = mode == SendMode::rendezvous_sync || mode == SendMode::eager_sized_sync;
      send.eager_sized = mode == SendMode::eager_sized || mode == SendMode::eager_sized_sync;
      protocol_.start_send(send, network_.now_ns());
      break;
  }
  perform_actions();
  return send;
}

Receive& Process::new_receive(int from, int tag, std::size_t capacity_bytes, bool speculate) {
  Receive& receive = receives_.emplace_back();
  receive.index = static_cast<int>(receives_.size()) - 1;
  receive.generation = generation_;
  receive.buffer.assign(capacity_bytes + guard_bytes, guard);
  receive.source = from;
  receive.tag = tag;
  receive.capacity_bytes = capacity_bytes;
  receive.speculate = speculate;
  return receive;
}

Receive& Process::irecv(int from, int tag, std::size_t capacity_bytes, bool speculate,
                        bool found_by_look) {
  Receive& receive = new_receive(from, tag, capacity_bytes, speculate);
  receive.found_by_look = found_by_look;
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

void Process::expire() {
  protocol_.expire(network_.now_ns());
  perform_actions();
}

void Process::cancel(Receive& receive) {
  const Handle handle = receive.handle;
  protocol_.cancel(*comm_, receive);
  if (handle != 0 && receive.handle == 0) ghosts_.push_back({handle, &receive});
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

// Messages ------------------------------------------------------------------------------

/// Change what goes out.
void Process::plant_in(std::vector<std::byte>& message) {
  if (fault_ != Fault::era_not_carried ||
      kind_of(std::to_integer<std::uint8_t>(message[0])) != Kind::era)
    return;
  auto prefix = load<EraPrefix>(message);
  prefix.era = made_;
  std::memcpy(message.data(), &prefix, sizeof prefix);
}

bool Process::planted(const Message& message) {
  const Kind kind = message.kind();
  if (fault_ == Fault::stream_end_ignored && kind == Kind::stream_end && comm_ != nullptr) {
    ++comm_->peer(message.from).expected_sequence;
    return true;
  }
  if (fault_ == Fault::no_rtr_ack && kind == Kind::rtr_ack) {
    ++comm_->peer(message.from).expected_sequence;  // lost, and nobody notices
    return true;
  }
  for (const Ghost& ghost : ghosts_) {
    if (kind == Kind::rtr_ack && fault_ == Fault::ghost_dropped &&
        load<RtrAckHeader>(message.unprefixed()).receive == ghost.handle) {
      ++comm_->peer(message.from).expected_sequence;
      return true;
    }
    if (kind != Kind::frag || load<FragHeader>(message.bytes).head.target != ghost.handle) continue;
    if (fault_ == Fault::ghost_dropped) return true;
    if (fault_ == Fault::fragment_to_cancelled)
      deliver(*ghost.receive, load<FragHeader>(message.bytes).offset_bytes,
              std::span(message.bytes).subspan(sizeof(FragHeader)));
  }
  if (fault_ == Fault::no_rts_ack && kind == Kind::rts_ack) {
    ++comm_->peer(message.from).expected_reverse;
    return true;
  }
  return false;
}

/// Make a forward message look like one of the stream that is here now.
void Process::take_for_present(std::vector<std::byte>& message) {
  const std::size_t at = message.size() - behind_prefix(message).size();
  auto head = load<SequencedHeader>(std::span(message).subspan(at));
  if (comm_ == nullptr || head.context != comm_->context) return;
  const std::uint32_t bound = comm_->peer(head.source).bound;
  if (bound == unbound_incarnation) {
    if (at != 0) reinterpret_cast<EraPrefix*>(message.data())->era = comm_->birth;
    return;
  }
  head.incarnation = static_cast<std::uint16_t>(bound);
  std::memcpy(message.data() + at, &head, sizeof head);
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
    changed.bytes[bytes.size() - message.unprefixed().size() + 1] &=
        ~static_cast<std::byte>(flag::hazard_stop);
    bytes = changed.bytes;
  }
  if (fault_ == Fault::identity_not_checked && is_forward(message.kind())) {
    changed = message;
    take_for_present(changed.bytes);
    bytes = changed.bytes;
  }
  if (const char* fault = find_fault(bytes))
    throw Violation(std::string("malformed: ") + fault + ": " + describe(bytes));
  const char* fault = nullptr;
  ReceiveOp* matched = nullptr;
  const auto head =
      bytes.size() >= sizeof(SequencedHeader) ? load<SequencedHeader>(bytes) : SequencedHeader{};
  if (kind_of(head.kind_version) == Kind::eager &&
      protocol_.try_match_eager(head, bytes.size() - sizeof head, matched)) {
    deliver(*matched, 0, bytes.subspan(sizeof head));
    complete(receive_of(*matched), false);
  } else {
    fault = protocol_.on_message(bytes);
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

void Process::check_buffers() {
  for (const Receive& receive : receives_) {
    for (std::size_t i = receive.capacity_bytes; i < receive.buffer.size(); ++i) {
      if (receive.buffer[i] != guard)
        throw Violation("bytes behind the end of a buffer have changed");
    }
  }
}

}  // namespace overlap::speculative::sim
