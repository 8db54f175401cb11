// A simulated process: sends, takes, checks, and the faults that tests plant.
// SPDX-License-Identifier: BSD-3-Clause
#include "simulated_process.hpp"

#include <cstring>
#include <utility>

namespace overlap::ring::sim {

namespace {

constexpr std::uint8_t program_tag = 1;
constexpr std::uint8_t unordered_tag = 2;

/// Byte `at` of a message: flag values and zeros everywhere, and something that tells messages
/// apart.
std::byte byte_of(std::uint32_t from, std::uint32_t to, std::uint64_t number, std::size_t at) {
  Random random((number * 1024 + at) * 64 + from * 8 + to);
  switch (random.below(5)) {
    case 0: return std::byte{flag_value::primary};
    case 1: return std::byte{flag_value::secondary};
    case 2: return std::byte{0};
    default: return static_cast<std::byte>(random.below(256));
  }
}

MemoryHandle copy_of(const std::vector<std::byte>& bytes) {
  auto memory = std::make_shared<Memory>((bytes.size() / line_bytes + 1) * line_bytes);
  std::copy(bytes.begin(), bytes.end(), memory->data());
  return memory;
}

}  // namespace

Process::Process(std::uint32_t rank, const Options& options, std::vector<std::vector<Link>>& links,
                 Random& random, Tally& tally)
    : rank_(rank),
      options_(options),
      links_(links),
      random_(random),
      tally_(tally),
      set_(options.set_capacity, options.policy, options.order, 20),
      peers_(options.processes) {}

// --- Sending

MessageHeader Process::next_header(Peer& peer, std::uint8_t tag, std::uint32_t size_bytes,
                                   Channel channel, std::uint8_t control) {
  MessageHeader header = peer.stream.next_header(tag, size_bytes, channel, control);
  if (options_.fault == Fault::credits_not_sent) header.credits = 0;
  const bool closing = peer.stream.ring_state() == RingState::closing &&
                       (header.control & control_bit::close_ring) == 0;
  if (options_.fault == Fault::credits_after_close && closing) {
    header.credits =
        static_cast<std::uint16_t>(header.credits + peer.receive_ring->take_credits(UINT16_MAX));
  }
  return header;
}

void Process::send(std::uint32_t to_rank) {
  Peer& peer = peers_[to_rank];
  const std::uint32_t room = payload_max_bytes(options_.slot_bytes);
  const std::uint32_t size =
      random_.chance(10) ? room + 1 + random_.below(200) : random_.below(room + 1);
  std::vector<std::byte> payload(size);
  for (std::size_t i = 0; i < size; ++i) payload[i] = byte_of(rank_, to_rank, peer.sent, i);
  ++peer.sent;
  const Channel channel = peer.stream.route(size, room);
  if (channel == Channel::ring) {
    const bool in_place = size > 0 && random_.chance(options_.in_place_pct);
    tally_.in_place += in_place ? 1 : 0;
    post(to_rank,
         next_header(peer, program_tag, size, channel, in_place ? control_bit::in_place : 0),
         payload);
    return;
  }
  if (peer.send_ring && !peer.send_ring->has_credit()) ++tally_.full_rings;
  to(to_rank).messages.push_back(
      {next_header(peer, program_tag, size, channel, 0), std::move(payload), nullptr});
}

void Process::post(std::uint32_t to_rank, MessageHeader header,
                   const std::vector<std::byte>& payload) {
  Peer& peer = peers_[to_rank];
  const bool in_place = (header.control & control_bit::in_place) != 0;
  const std::size_t base = std::size_t{peer.send_ring->head_slot()} * options_.slot_bytes;
  std::byte* const slot = peer.send_memory->data() + base;
  if (!in_place) std::copy(payload.begin(), payload.end(), slot + header_bytes);
  const SendRing::Sealed sealed = peer.send_ring->seal(header);
  if (options_.fault == Fault::one_flag_value)
    slot[0] = slot[sealed.wire_bytes - 1] = std::byte{flag_value::primary};
  std::vector<Piece> pieces{{peer.send_memory, base, sealed.wire_bytes}};
  if (in_place) {
    pieces = {{peer.send_memory, base, header_bytes},
              {copy_of(payload), 0, payload.size()},
              {peer.send_memory, base + sealed.tail_offset, sealed.tail_bytes}};
  }
  to(to_rank).writes.emplace_back(std::move(pieces), peer.remote, base);
}

void Process::send_unordered(std::uint32_t to_rank) {
  ++peers_[to_rank].unordered_sent;
  to(to_rank).messages.push_back({Stream::unordered_header(unordered_tag, 0), {}, nullptr});
}

void Process::send_control(std::uint32_t to_rank, const ControlBody& body, MemoryHandle ring) {
  std::vector<std::byte> payload(sizeof body);
  std::memcpy(payload.data(), &body, sizeof body);
  const MessageHeader header =
      next_header(peers_[to_rank], 0, sizeof body, Channel::send_receive, 0);
  to(to_rank).messages.push_back({header, std::move(payload), std::move(ring)});
}

void Process::send_explicit() {
  for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
    if (!peers_[peer].stream.wants_explicit()) continue;
    ++tally_.explicit_messages;
    send_control(peer, {}, nullptr);
    require(!peers_[peer].stream.wants_explicit(), "one explicit message says everything");
  }
}

// --- Receiving

void Process::message_arrived(std::uint32_t from, ChannelMessage message) {
  Peer& peer = peers_[from];
  require(find_fault(message.header, static_cast<std::uint32_t>(message.payload.size())) == nullptr,
          "messages are well-formed");
  if (options_.fault == Fault::ring_closed_early &&
      (message.header.control & control_bit::ring_closed) != 0 && peer.receive_ring) {
    end_receive_ring(from);
  }
  require(!peer.stream.is_past(message.header), "every message is delivered once");
  if (peer.stream.is_next(message.header)) {
    take_from_channel(from, message);
  } else {
    ++tally_.held;
    peer.held.push_back(std::move(message));
  }
  drain(from);
}

void Process::poll() {
  set_.for_each([this](std::uint32_t peer) { return drain(peer); });
  finish_endings();
}

/// Take from both channels what has its turn.
std::uint32_t Process::drain(std::uint32_t from) {
  Peer& peer = peers_[from];
  std::uint32_t messages = 0;
  while (true) {
    ReceiveRing::Arrival arrival{};
    if (peer.receive_ring && peer.receive_ring->peek(arrival)) {
      require(find_fault(arrival.header, payload_max_bytes(options_.slot_bytes)) == nullptr,
              "messages are well-formed");
      require(!peer.stream.is_past(arrival.header), "every message is delivered once");
      if (peer.stream.is_next(arrival.header)) {
        take_from_ring(from, arrival);
        ++messages;
        continue;
      }
    }
    if (peer.held.empty() || !peer.stream.is_next(peer.held.front().header)) return messages;
    const ChannelMessage message = std::move(peer.held.front());
    peer.held.pop_front();
    take_from_channel(from, message);
    ++messages;
  }
}

void Process::take_from_ring(std::uint32_t from, const ReceiveRing::Arrival& arrival) {
  Peer& peer = peers_[from];
  note(from, peer.stream.accept(arrival.header, Channel::ring));
  const MessageHeader header = arrival.header;
  require(header.tag == program_tag, "the ring carries the program's messages only");
  const bool in_place = (header.control & control_bit::in_place) != 0;
  std::byte* const at =
      peer.receive_memory->data() + std::size_t{arrival.slot} * options_.slot_bytes;
  std::array<std::byte, header_bytes> stale{};
  std::copy_n(at, header_bytes, stale.begin());
  peer.receive_ring->advance();
  if (options_.fault == Fault::header_not_cleared) std::copy_n(stale.begin(), header_bytes, at);
  if (options_.fault == Fault::size_not_cleared) std::copy_n(stale.begin() + 8, 4, at + 8);
  if (options_.fault == Fault::tails_cleared_early && in_place) {
    for (std::uint32_t end = line_bytes; end <= wire_bytes(header.size_bytes); end += line_bytes)
      at[end - 1] = std::byte{0};
  }
  const Taken taken{from,          peer.receive_ring,  arrival.slot,
                    peer.received, header.size_bytes,  arrival.payload,
                    in_place,      peer.receive_memory};
  check_payload(from, peer.received, header.size_bytes, arrival.payload);
  ++peer.received;
  ++tally_.delivered;
  ++tally_.through_rings;
  if (random_.chance(50)) {
    taken_.push_back(taken);
  } else {
    free_slot(taken);
  }
  count(from, Channel::ring);
}

void Process::take_from_channel(std::uint32_t from, const ChannelMessage& message) {
  Peer& peer = peers_[from];
  note(from, peer.stream.accept(message.header, Channel::send_receive));
  if (message.header.tag == 0) {
    take_control(from, message);
  } else if (message.header.tag == unordered_tag) {
    ++peer.unordered_received;
    ++tally_.unordered;
  } else {
    check_payload(from, peer.received, message.header.size_bytes, message.payload.data());
    ++peer.received;
    ++tally_.delivered;
    count(from, Channel::send_receive);
  }
}

void Process::take_control(std::uint32_t from, const ChannelMessage& message) {
  ControlBody body;
  std::memcpy(&body, message.payload.data(), sizeof body);
  require(find_fault(body) == nullptr, "control messages are well-formed");
  Peer& peer = peers_[from];
  if (body.kind == control_kind::ring_declined && peer.receive_ring) {
    peer.declined = true;
    peer.stream.close_ring();
  }
  if (body.kind != control_kind::ring_open) return;
  require(peer.stream.send_ring() == nullptr, "a ring is opened once");
  if (random_.chance(5)) {  // no memory: its ring stays unused until it is closed
    ++tally_.refused;
    send_control(from, {.kind = control_kind::ring_declined}, nullptr);
    return;
  }
  peer.send_memory = std::make_shared<Memory>(std::size_t{body.slots} * body.slot_bytes);
  peer.send_ring =
      std::make_unique<SendRing>(peer.send_memory->data(), body.slots, body.slot_bytes);
  peer.remote = message.ring;
  peer.stream.attach_send_ring(peer.send_ring.get());
}

void Process::note(std::uint32_t from, const Noted& noted) {
  if (noted.fault != nullptr)
    throw Violation(std::string("no message is at fault: ") + noted.fault);
  Peer& peer = peers_[from];
  if (noted.send_ring_ended) {
    if (options_.fault == Fault::slots_freed_early) peer.send_memory->give_back();
    endings_.push_back({from, std::move(peer.send_memory), nullptr});
    peer.send_ring.reset();
    peer.remote.reset();
  }
  if (noted.receive_ring_ended && peer.receive_ring) end_receive_ring(from);
}

void Process::end_receive_ring(std::uint32_t from) {
  Peer& peer = peers_[from];
  endings_.push_back({from, std::move(peer.receive_memory), std::move(peer.receive_ring)});
  peer.receive_ring.reset();
  set_.removed(from);
  if (std::exchange(peer.declined, false)) set_.declined(from);
  ++tally_.closed;
}

/// Give memory back: the sender's when the device has read it all, the receiver's when nobody looks
/// at a message in it.
void Process::finish_endings() {
  std::erase_if(endings_, [this](const Ending& ending) {
    if (ending.ring ? !ending.ring->drained() : to(ending.peer).reads(ending.memory.get()))
      return false;
    ending.memory->give_back();
    return true;
  });
}

// --- Rings

void Process::count(std::uint32_t from, Channel channel) {
  const PollingSet::Change change = set_.on_message(from, channel);
  if (change.remove != PollingSet::none) peers_[change.remove].stream.close_ring();
  if (change.add == PollingSet::none) return;
  if (random_.chance(5)) {
    set_.refused(change.add);
  } else {
    open_ring(change.add);
  }
}

void Process::open_ring(std::uint32_t from) {
  Peer& peer = peers_[from];
  require(peer.stream.ring_state() == RingState::none, "nobody joins twice");
  ++tally_.opened;
  peer.receive_memory = std::make_shared<Memory>(std::size_t{options_.slots} * options_.slot_bytes);
  peer.receive_ring = std::make_shared<ReceiveRing>(peer.receive_memory->data(), options_.slots,
                                                    options_.slot_bytes);
  peer.stream.ring_opened(peer.receive_ring.get());
  send_control(from, {control_kind::ring_open, options_.slots, options_.slot_bytes, 1, 0},
               peer.receive_memory);
  set_.added(from, peer.receive_ring.get());
  require(set_.size() <= options_.set_capacity + 1, "memory is bounded by the polling set");
}

void Process::close_some_ring() {
  const std::uint32_t peer = random_.below(static_cast<std::uint32_t>(peers_.size()));
  if (peers_[peer].stream.ring_state() == RingState::open) peers_[peer].stream.close_ring();
}

void Process::free_one() {
  if (taken_.empty()) return;
  const std::size_t i = random_.below(static_cast<std::uint32_t>(taken_.size()));
  const Taken taken = taken_[i];
  taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(i));
  free_slot(taken);
}

void Process::free_slot(const Taken& taken) {
  check_payload(taken.peer, taken.number, taken.size_bytes, taken.payload);
  std::byte* const at = taken.memory->data() + std::size_t{taken.slot} * options_.slot_bytes;
  const std::vector<std::byte> before(at, at + wire_bytes(taken.size_bytes));
  taken.ring->free(taken.slot);
  if (options_.fault == Fault::tails_not_cleared && taken.in_place) {
    for (std::size_t end = line_bytes; end <= before.size(); end += line_bytes)
      at[end - 1] = before[end - 1];
  }
}

// --- Invariants

void Process::check_payload(std::uint32_t from, std::uint64_t number, std::uint32_t size_bytes,
                            const std::byte* payload) const {
  for (std::size_t i = 0; i < size_bytes; ++i) {
    require(payload[i] == byte_of(from, rank_, number, i),
            "every message has the bytes that were sent, until it is freed");
  }
}

bool Process::busy() const {
  return !taken_.empty() || !endings_.empty() ||
         std::any_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.stream.wants_explicit(); });
}

/// All is quiet: nothing is under way between this process and the other one.
void Process::check_at_rest(const Process& other) const {
  const Peer& mine = peers_[other.rank_];
  const Peer& theirs = other.peers_[rank_];
  require(mine.received == theirs.sent, "every message is delivered");
  require(mine.unordered_received == theirs.unordered_sent, "every unordered message is delivered");
  require(mine.held.empty(), "no message waits for ever");
  require(mine.stream.ring_state() != RingState::closing,
          "a ring that closes is closed in the end");
  require((mine.receive_ring != nullptr) == (mine.stream.ring_state() == RingState::open),
          "a ring is there as long as it is open");
  require(set_.contains(other.rank_) == (mine.receive_ring != nullptr),
          "the members of the polling set have rings");
  if (!mine.receive_ring) {
    require(theirs.stream.send_ring() == nullptr, "nobody sends into a closed ring");
  } else if (theirs.send_ring) {
    require(theirs.send_ring->free_slots() + mine.receive_ring->credits() == options_.slots,
            "every slot is accounted for");
  } else {
    require(mine.receive_ring->credits() == 0, "nothing came through a refused ring");
  }
}

// --- All processes

namespace {

struct World {
  World(const Options& options, std::uint64_t seed, Tally& tally)
      : random(seed), links(options.processes) {
    for (auto& row : links) row.resize(options.processes);
    for (std::uint32_t rank = 0; rank < options.processes; ++rank)
      processes.emplace_back(rank, options, links, random, tally);
  }

  Random random;
  std::vector<std::vector<Link>> links;  ///< [to][from]
  std::vector<Process> processes;
};

/// Something happens in the network, or nothing.
void network_turn(World& world) {
  const auto count = static_cast<std::uint32_t>(world.processes.size());
  const std::uint32_t to = world.random.below(count);
  const std::uint32_t from = world.random.below(count);
  Link& link = world.links[to][from];
  if (world.random.chance(25)) {
    if (link.messages.empty()) return;
    ChannelMessage message = std::move(link.messages.front());
    link.messages.pop_front();
    world.processes[to].message_arrived(from, std::move(message));
    return;
  }
  constexpr std::array<std::size_t, 6> pieces{1, 9, 15, 64, 200, 1024};
  link.land(pieces[world.random.below(pieces.size())]);
}

void process_turn(World& world, const Options& options) {
  const auto count = static_cast<std::uint32_t>(world.processes.size());
  const std::uint32_t rank = world.random.below(count);
  Process& process = world.processes[rank];
  // Half of the traffic goes to a neighbour that changes, so that polling sets have something to
  // choose.
  const std::uint32_t peer =
      world.random.chance(50) ? (rank + 1) % count : world.random.below(count);
  if (peer != rank && world.random.chance(12)) process.send(peer);
  if (peer != rank && world.random.chance(1)) process.send_unordered(peer);
  if (world.random.chance(30)) process.free_one();
  if (world.random.chance(40)) process.poll();
  if (world.random.chance(5)) process.send_explicit();
  if (world.random.below(1000) < options.close_permille) process.close_some_ring();
}

void deliver_everything(World& world) {
  for (std::size_t to = 0; to < world.links.size(); ++to) {
    for (std::size_t from = 0; from < world.links.size(); ++from) {
      Link& link = world.links[to][from];
      while (!link.writes.empty()) link.land(SIZE_MAX);
      while (!link.messages.empty()) {
        ChannelMessage message = std::move(link.messages.front());
        link.messages.pop_front();
        world.processes[to].message_arrived(static_cast<std::uint32_t>(from), std::move(message));
      }
    }
  }
}

bool is_busy(const World& world) {
  const auto has_messages = [](const std::vector<Link>& row) {
    return std::any_of(row.begin(), row.end(), [](const Link& link) { return !link.empty(); });
  };
  return std::any_of(world.links.begin(), world.links.end(), has_messages) ||
         std::any_of(world.processes.begin(), world.processes.end(),
                     [](const Process& process) { return process.busy(); });
}

/// No new messages from the program: does everything end?
void come_to_rest(World& world) {
  for (int round = 0; round < 2000; ++round) {
    deliver_everything(world);
    for (Process& process : world.processes) {
      process.poll();
      process.free_one();
      process.send_explicit();
    }
    if (!is_busy(world)) return;
  }
  throw Violation("everything comes to rest");
}

}  // namespace

std::string run(const Options& options, std::uint64_t seed, std::uint32_t turns, Tally& tally) {
  World world(options, seed, tally);
  try {
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      network_turn(world);
      process_turn(world, options);
    }
    come_to_rest(world);
    for (const Process& process : world.processes) {
      for (const Process& other : world.processes) {
        if (&process != &other) process.check_at_rest(other);
      }
    }
  } catch (const Violation& violation) {
    return violation.what();
  }
  return "";
}

}  // namespace overlap::ring::sim
