// The plainest code that can use the protocol as btl/ring does, for one process of a simulation.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "polling_set.hpp"
#include "simulated_network.hpp"
#include "stream.hpp"

namespace overlap::ring::sim {

/// What the tests plant to see whether it is noticed. All of them sit around the product's code,
/// none in it.
enum class Fault : std::uint8_t {
  none,
  one_flag_value,       ///< always the primary one
  tails_not_cleared,    ///< after in_place
  tails_cleared_early,  ///< by advance() instead of free()
  header_not_cleared,   ///< head flag and size stay
  size_not_cleared,     ///< only the size stays
  credits_not_sent,     ///< taken from the ring, lost on the way
  ring_closed_early,    ///< obeyed when it arrives instead of in its turn
  credits_after_close,  ///< credits of a closing ring go on being sent
  slots_freed_early,    ///< the sender's, while writes are under way
};

struct Options {
  std::uint32_t processes = 2;
  std::uint32_t slots = 5;
  std::uint32_t slot_bytes = 256;
  std::uint32_t set_capacity = 1;
  SetPolicy policy = SetPolicy::traffic;
  PollOrder order = PollOrder::sequential;
  std::uint32_t in_place_pct = 40;
  std::uint32_t close_permille = 2;  ///< of a process's turns: a ring is closed for no reason
  Fault fault = Fault::none;
};

/// How much of what there is to test has happened.
struct Tally {
  std::uint64_t delivered = 0;
  std::uint64_t through_rings = 0;
  std::uint64_t in_place = 0;
  std::uint64_t full_rings = 0;
  std::uint64_t held = 0;
  std::uint64_t opened = 0;
  std::uint64_t closed = 0;
  std::uint64_t refused = 0;
  std::uint64_t unordered = 0;
  std::uint64_t explicit_messages = 0;
};

class Process {
 public:
  /// @param links  [to][from]: of all processes
  Process(std::uint32_t rank, const Options& options, std::vector<std::vector<Link>>& links,
          Random& random, Tally& tally);

  // What a program and the library above do, one small thing at a time.
  void send(std::uint32_t peer);
  void send_unordered(std::uint32_t peer);
  void free_one();
  void close_some_ring();
  // What the progress engine does.
  void poll();
  void send_explicit();
  void message_arrived(std::uint32_t peer, ChannelMessage message);

  [[nodiscard]] bool busy() const;
  void check_at_rest(const Process& other) const;

 private:
  struct Taken {
    std::uint32_t peer;
    std::shared_ptr<ReceiveRing> ring;
    std::uint32_t slot;
    std::uint64_t number;
    std::uint32_t size_bytes;
    const std::byte* payload;
    bool in_place;
    MemoryHandle memory;
  };
  struct Peer {
    Stream stream;
    std::unique_ptr<SendRing> send_ring;
    MemoryHandle send_memory;
    MemoryHandle remote;  ///< the peer's receive ring
    std::shared_ptr<ReceiveRing> receive_ring;
    MemoryHandle receive_memory;
    bool declined = false;            ///< our receive ring, by the peer
    std::deque<ChannelMessage> held;  ///< came before their turn
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t unordered_sent = 0;
    std::uint64_t unordered_received = 0;
  };
  struct Ending {
    std::uint32_t peer;
    MemoryHandle memory;
    std::shared_ptr<ReceiveRing> ring;  ///< nullptr: a send ring
  };

  [[nodiscard]] Link& to(std::uint32_t peer) { return links_[peer][rank_]; }
  [[nodiscard]] MessageHeader next_header(Peer& peer, std::uint8_t tag, std::uint32_t size_bytes,
                                          Channel channel, std::uint8_t control);
  void send_control(std::uint32_t peer, const ControlBody& body, MemoryHandle ring);
  void post(std::uint32_t peer, MessageHeader header, const std::vector<std::byte>& payload);
  std::uint32_t drain(std::uint32_t peer);
  void take_from_ring(std::uint32_t peer, const ReceiveRing::Arrival& arrival);
  void take_from_channel(std::uint32_t peer, const ChannelMessage& message);
  void note(std::uint32_t peer, const Noted& noted);
  void end_receive_ring(std::uint32_t peer);
  void take_control(std::uint32_t peer, const ChannelMessage& message);
  void count(std::uint32_t peer, Channel channel);
  void open_ring(std::uint32_t peer);
  void free_slot(const Taken& taken);
  void finish_endings();
  void check_payload(std::uint32_t from, std::uint64_t number, std::uint32_t size_bytes,
                     const std::byte* payload) const;

  std::uint32_t rank_;
  const Options& options_;
  std::vector<std::vector<Link>>& links_;
  Random& random_;
  Tally& tally_;
  PollingSet set_;
  std::vector<Peer> peers_;
  std::vector<Taken> taken_;
  std::vector<Ending> endings_;
};

/// Run until `turns` are over and all is quiet. @returns  "" or the invariant that does not hold
[[nodiscard]] std::string run(const Options& options, std::uint64_t seed, std::uint32_t turns,
                              Tally& tally);

}  // namespace overlap::ring::sim
