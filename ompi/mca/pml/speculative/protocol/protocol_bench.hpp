// For tests: the protocol of one process within reach, and messages for it; the test plays the
// other process.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol.hpp"

namespace overlap::speculative::bench {

using Bytes = std::vector<std::byte>;

template <class Header>
Bytes bytes_of(const Header& header, std::string_view payload = {}) {
  Bytes bytes(sizeof header + payload.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!payload.empty()) std::memcpy(bytes.data() + sizeof header, payload.data(), payload.size());
  return bytes;
}

/// What a test relies on before it tests anything.
inline void expect(bool holds) {
  if (!holds) throw std::logic_error("the test's own messages and receives are wrong");
}

/// MPI_COMM_WORLD, or one that has to be spoken in first.
inline NewCommunicator communicator(bool world) {
  NewCommunicator fresh{.context = 7, .my_rank = 0, .size = 2};
  if (world) fresh.agreed_incarnation = 0;
  return fresh;
}

/// Process 0 of two; the test plays process 1.
struct Side final : Host {
  explicit Side(HazardPolicy policy = HazardPolicy::envelope_sequence, bool world = true)
      : protocol(config_for(policy), *this, counters),
        comm(protocol.add_communicator(communicator(world))) {}

  void deliver(ReceiveOp&, std::uint64_t, std::span<const std::byte> payload) override {
    delivered.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
  }
  std::uint64_t process_of(const Communicator&, std::int32_t rank) override {
    return static_cast<std::uint64_t>(rank);
  }
  bool is_ending() const override { return ending; }
  const char* arrives(const Bytes& message) {
    expect(find_fault(message) == nullptr);
    return protocol.on_message(message);
  }
  void post(ReceiveOp& op, std::uint64_t capacity_bytes, bool speculate) {
    op.source = 1;
    op.tag = 5;
    op.capacity_bytes = capacity_bytes;
    op.speculate = speculate;
    expect(protocol.post_receive(comm, op) == nullptr);
  }
  /// Actions since the last time.
  std::vector<Action> taken() {
    std::vector<Action> actions = std::move(protocol.actions());
    protocol.actions().clear();
    return actions;
  }
  std::size_t unexpected() const { return comm.unexpected_count; }

  static Config config_for(HazardPolicy policy) {
    Config config;
    config.hazard_policy = policy;
    return config;
  }

  Counters counters;
  Protocol protocol;
  Communicator& comm;
  std::vector<std::string> delivered;
  bool ending = false;
};

inline SequencedHeader head(Kind kind, std::uint16_t sequence, std::uint16_t incarnation = 0) {
  return {kind_version(kind), 0, 7, 1, 5, sequence, incarnation};
}
inline Bytes eager(std::uint16_t sequence, std::string_view payload = "x") {
  return bytes_of(head(Kind::eager, sequence), payload);
}
inline Bytes rts(std::uint16_t sequence, Handle send = 1, std::uint64_t length_bytes = 100) {
  RtsHeader header{};
  header.head = head(Kind::rts, sequence);
  header.length_bytes = length_bytes;
  header.send = send;
  return bytes_of(header);
}
inline Bytes rtr(std::uint16_t sequence, std::uint32_t base_sequence = 0, std::uint16_t index = 0) {
  RtrHeader header{};
  header.head = head(Kind::rtr, sequence);
  header.capacity_bytes = 1000;
  header.receive = Handle{1} << 32U;
  header.base_sequence = base_sequence;
  header.index = index;
  return bytes_of(header);
}
inline Bytes done_for(Handle target, bool to_receiver) {
  return bytes_of(TargetedHeader{kind_version(Kind::done),
                                 to_receiver ? flag::to_receiver : std::uint8_t{0}, 0, 0, target});
}

inline constexpr const char* seen = "a sequence number that has been seen already";

}  // namespace overlap::speculative::bench
