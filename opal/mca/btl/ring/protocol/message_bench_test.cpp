// What does the protocol cost for one message of 8 bytes, both sides together? Expected: below 15
// ns, the copies included.
//
//   message_bench [messages = 20000 per round]
//
// "wire" is only what has to be done without a protocol: the payload into a line and the line to
// the other side, which stands for the adapter. The rest are whole messages: route, header, copy,
// seal; line to the other side; poll, peek, order, accept, advance, free.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "polling_set.hpp"
#include "receive_ring.hpp"
#include "send_ring.hpp"
#include "stream.hpp"

namespace {

using namespace overlap::ring;

constexpr std::size_t rounds = 101;
constexpr std::uint32_t slots = 100;
constexpr std::uint32_t slot_bytes = 2048;
constexpr std::uint32_t credits_every = slots / 2;

struct alignas(line_bytes) Line {
  std::byte bytes[line_bytes];
};

/// Two processes with one ring between them.
class Pair {
 public:
  Pair() {
    at_receiver_.ring_opened(&receive_);
    if (at_sender_
            .accept(at_receiver_.next_header(0, sizeof(ControlBody), Channel::send_receive),
                    Channel::send_receive)
            .fault != nullptr)
      std::abort();
    at_sender_.attach_send_ring(&send_);
    set_.added(0, &receive_);
  }

  /// @returns  something that depends on every payload
  std::uint64_t carry(std::uint32_t messages) {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < messages; ++i) {
      const std::uint64_t payload = i;
      if (at_sender_.route(sizeof payload, payload_max_bytes(slot_bytes)) != Channel::ring)
        std::abort();
      std::byte* const slot = send_.slot(send_.head_slot());
      std::memcpy(slot + header_bytes, &payload, sizeof payload);
      const SendRing::Sealed sealed =
          send_.seal(at_sender_.next_header(1, sizeof payload, Channel::ring));
      std::memcpy(receiver_[0].bytes + std::size_t{sealed.slot} * slot_bytes, slot, line_bytes);
      asm volatile("" ::: "memory");  // the adapter's work: not to be seen through
      set_.for_each([this, &sum](std::uint32_t) { return take(sum); });
      if (receive_.credits() == credits_every) give_credits_back();
    }
    return sum;
  }

 private:
  std::uint32_t take(std::uint64_t& sum) {
    ReceiveRing::Arrival arrival;
    if (!receive_.peek(arrival) || !at_receiver_.is_next(arrival.header)) return 0;
    if (at_receiver_.accept(arrival.header, Channel::ring).fault != nullptr) std::abort();
    receive_.advance();
    std::uint64_t payload = 0;
    std::memcpy(&payload, arrival.payload, sizeof payload);
    sum += payload;
    receive_.free(arrival.slot);
    static_cast<void>(set_.on_message(0, Channel::ring));
    return 1;
  }
  void give_credits_back() {
    if (at_sender_
            .accept(at_receiver_.next_header(1, 0, Channel::send_receive), Channel::send_receive)
            .fault != nullptr)
      std::abort();
  }

  std::vector<Line> sender_{slots * slot_bytes / line_bytes};
  std::vector<Line> receiver_{slots * slot_bytes / line_bytes};
  SendRing send_{sender_[0].bytes, slots, slot_bytes};
  ReceiveRing receive_{receiver_[0].bytes, slots, slot_bytes};
  Stream at_sender_;
  Stream at_receiver_;
  PollingSet set_{1, SetPolicy::traffic, PollOrder::recent, 10000};
};

std::uint64_t wire_only(std::uint32_t messages) {
  static std::vector<Line> from(slots * slot_bytes / line_bytes);
  static std::vector<Line> to(from.size());
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < messages; ++i) {
    const std::uint64_t payload = i;
    const std::size_t line = i % slots * (slot_bytes / line_bytes);
    std::memcpy(from[line].bytes + header_bytes, &payload, sizeof payload);
    asm volatile("" ::: "memory");
    std::memcpy(to[line].bytes, from[line].bytes, line_bytes);
    asm volatile("" ::: "memory");
    std::uint64_t arrived = 0;
    std::memcpy(&arrived, to[line].bytes + header_bytes, sizeof arrived);
    sum += arrived;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const auto messages =
      static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 20000);
  const std::uint64_t expected = std::uint64_t{messages} * (messages - 1) / 2;
  Pair pair;
  std::array<std::array<double, rounds>, 2> ns{};
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t v = 0; v < ns.size(); ++v) {
      const auto begin = std::chrono::steady_clock::now();
      const std::uint64_t sum = v == 0 ? wire_only(messages) : pair.carry(messages);
      ns[v][round] =
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
              .count() /
          messages;
      if (sum != expected) std::abort();
    }
  }
  constexpr std::array names{"wire", "whole message"};
  std::printf("%zu rounds of %u messages of 8 bytes, ring of %u slots of %u bytes\n", rounds,
              messages, slots, slot_bytes);
  std::printf("%-20s %8s %8s %8s\n", "ns per message", "least", "median", "p99");
  for (std::size_t v = 0; v < ns.size(); ++v) {
    std::sort(ns[v].begin(), ns[v].end());
    std::printf("%-20s %8.2f %8.2f %8.2f\n", names[v], ns[v].front(), ns[v][rounds / 2],
                ns[v][rounds * 99 / 100]);
  }
}
