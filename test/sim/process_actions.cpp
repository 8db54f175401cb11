// What a modelled process does with the protocol's actions: messages, transfers and their ends.
// SPDX-License-Identifier: BSD-3-Clause
#include "process.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace overlap::speculative::sim {
namespace {

/// The registration key of a modelled buffer: whose it is and which request's.
struct Key {
  std::int32_t rank;
  std::int32_t index;
};

template <class Header>
std::vector<std::byte> bytes_of(const Header& header, std::span<const std::byte> payload = {}) {
  return joined(std::as_bytes(std::span(&header, 1)), payload);
}

std::vector<std::byte> encoded(const ControlMessage& control) {
  std::array<std::byte, control_max_bytes> bytes;
  return {bytes.begin(),
          bytes.begin() + static_cast<std::ptrdiff_t>(encode(control, nullptr, bytes))};
}

std::vector<std::byte> with_memory(const ControlMessage& control, const void* memory, Key key,
                                   bool accessible) {
  if (!accessible) return encoded(control);
  const MemoryDescription description{reinterpret_cast<std::uintptr_t>(memory),
                                      std::as_bytes(std::span(&key, 1))};
  std::array<std::byte, control_max_bytes> bytes;
  const std::size_t length = encode(control, &description, bytes);
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)};
}

Key key_of(const RemoteMemory& memory) {
  Key key{};
  if (!memory.accessible || memory.key_bytes != sizeof key)
    throw Violation("a transfer without a key");
  std::memcpy(&key, memory.key.data(), sizeof key);
  return key;
}

}  // namespace

// Transfers -----------------------------------------------------------------------------

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

bool Process::copy(Peer& peer, const RemoteMemory& memory, std::span<std::byte> into) {
  if (transport_.copies_every == 0 || ++copies_ % transport_.copies_every != 0) return false;
  const Key key = key_of(memory);
  if (key.rank != peer.rank) throw Violation("a copy of another process's memory");
  const Send& from = network_.process(key.rank).sends()[static_cast<std::size_t>(key.index)];
  if (from.complete) throw Violation("a copy from the buffer of a send that has ended");
  if (into.size() != from.data.size()) throw Violation("a copy of another length");
  std::ranges::copy(from.data, into.begin());
  return true;
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
      const bool all = transport_.write != Transport::Write::fails_midway;
      write_at(job.send->target,
               std::span(send.data).first(all ? job.send->take_bytes : job.send->take_bytes / 2));
      return all;
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

// Actions -------------------------------------------------------------------------------

void Process::perform_actions() {
  if (performing_) return;  // from a callback: whoever performs goes on with what it has added
  performing_ = true;
  // A step may add actions while earlier ones are done; the vector may move, so each is copied.
  auto& actions = protocol_.actions();
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Action action = actions[i];
    perform(action);
  }
  actions.clear();
  performing_ = false;
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
        case Transport::Write::fails_midway:
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
  Message message{rank_, action.peer->rank, -1, 0, {}};
  const bool accessible = transport_.write != Transport::Write::none;
  const Kind kind = action.message.kind();
  if (kind == Kind::rts) {
    Send& send = send_of(*action.send);
    message.bytes =
        with_memory(action.message, send.data.data(), {rank_, send.index}, transport_.reads);
    message.send_id = send.id;
  } else if (kind == Kind::grant && action.receive == nullptr) {
    message.bytes = encoded(action.message);  // no request's
  } else if (kind == Kind::rtr || kind == Kind::grant) {
    Receive& receive = receive_of(*action.receive);
    message.bytes = with_memory(action.message, receive.buffer.data(), {rank_, receive.index},
                                accessible && registers());
    if (kind == Kind::rtr) {
      receive.names_memory =
          !(load<RtrHeader>(behind_prefix(message.bytes)).head.flags & flag::no_memory);
    }
  } else {
    message.bytes = encoded(action.message);
    if (kind == Kind::rtr_ack) message.send_id = send_of(*action.send).id;
  }
  plant_in(message.bytes);
  network_.transmit(std::move(message));
}

/// Does the next registration of a receive's buffer succeed?
bool Process::registers() noexcept {
  return transport_.registers_every == 0 || ++registrations_ % transport_.registers_every == 0;
}

void Process::complete(Receive& receive, bool cancelled) {
  if (receive.complete || receive.cancelled) throw Violation("a receive ended twice");
  (cancelled ? receive.cancelled : receive.complete) = true;
  receive.owned_by_user = true;
  if (receive.state != ReceiveState::idle) throw Violation("a receive ended that is not idle");
  network_.completed(receive);
}

}  // namespace overlap::speculative::sim
