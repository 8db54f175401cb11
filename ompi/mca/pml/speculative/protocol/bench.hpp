// For tests: the receiving parts of process 0 of two, each within reach; the test plays process 1.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cancellation.hpp"
#include "config.hpp"
#include "offers.hpp"
#include "outbox.hpp"
#include "receive_machine.hpp"
#include "streams.hpp"
#include "unexpected_messages.hpp"

namespace overlap::speculative {

struct Bench : Host {
  static constexpr std::int32_t tag = 5;

  explicit Bench(const Config& chosen = {})
      : config(chosen),
        hazard(make_hazard_control(config.hazard_policy, counters, config.envelopes)) {}

  void deliver(ReceiveOp& op, std::uint64_t offset_bytes,
               std::span<const std::byte> payload) override {
    const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
    delivered.push_back({&op, offset_bytes, text});
  }
  std::uint64_t process_of(const Communicator&, std::int32_t rank) override {
    return static_cast<std::uint64_t>(rank);
  }

  /// Post a receive from process 1.
  void post(ReceiveOp& op, std::uint64_t capacity_bytes = 100, std::int32_t from = 1) {
    op.source = from;
    op.tag = tag;
    op.capacity_bytes = capacity_bytes;
    op.speculate = true;
    comm.post(op);
    op.state = ReceiveState::queued;
  }
  /// The same, and send its RTR.
  void offer(ReceiveOp& op, bool names_memory = true) {
    post(op);
    offers.try_offer(op);
    op.names_memory = names_memory;
  }
  /// The actions since the last time.
  std::vector<Action> taken() {
    std::vector<Action> actions = std::move(outbox.actions());
    outbox.actions().clear();
    return actions;
  }
  ReceiveEnvelope& envelope() { return *peer.receive_envelopes.get(tag, config.envelopes); }

  struct Delivered {
    const ReceiveOp* op;
    std::uint64_t offset_bytes;
    std::string text;
    friend bool operator==(const Delivered&, const Delivered&) = default;
  };

  Config config;
  Counters counters;
  std::unique_ptr<HazardControl> hazard;
  UnexpectedMessages unexpected{counters};
  Streams streams{*this, 0, true, HeldBound{}, first_agreed_context};
  Outbox outbox{streams};
  Communicator& comm = streams.add({.context = 7, .size = 2, .agreed_incarnation = 0});
  Peer& peer = comm.peer(1);
  ReceiveMachine machine{config.hazard_policy, counters, outbox};
  Offers offers{config, counters, *hazard, outbox, machine};
  Cancellation cancellation{*this, unexpected, machine, offers};
  std::vector<Delivered> delivered;
};

[[nodiscard]] inline std::span<const std::byte> payload_of(const std::string& text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace overlap::speculative
