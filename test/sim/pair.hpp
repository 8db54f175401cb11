// Two modelled processes whose messages a test moves by hand: for stories. For tests only.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "process.hpp"

namespace overlap::speculative::sim {

class Pair final : public Network {
 public:
  explicit Pair(HazardPolicy policy, Config config = {}, Transport transport = {},
                bool world = true, std::optional<Config> of_sender = {}) {
    for (int rank = 0; rank < 2; ++rank) {
      Config own = rank == 0 && of_sender ? *of_sender : config;
      own.hazard_policy = policy;
      processes_[rank].emplace(*this, rank, 2, own, transport, Fault::none, world);
    }
  }

  Process& sender() { return *processes_[0]; }
  Process& receiver() { return *processes_[1]; }

  Send& send(SendMode mode, std::size_t length_bytes, int tag = 5) {
    return sender().isend(1, tag, length_bytes, mode, ++last_id_);
  }
  Send& rendezvous(std::size_t length_bytes = 6) {
    return send(SendMode::rendezvous, length_bytes);
  }
  Send& eager() { return send(SendMode::eager, 2); }
  /// Predicts rendezvous.
  Receive& receive_large(std::size_t capacity_bytes = 6, int tag = 5) {
    return receiver().irecv(0, tag, capacity_bytes, true);
  }
  Receive& receive_small() { return receiver().irecv(0, 5, 2, false); }

  /// Deliver the oldest message of this kind that is on its way. @returns  false when there is none
  bool deliver(Kind kind) {
    for (std::size_t i = 0; i < in_flight_.size(); ++i) {
      if (in_flight_[i].kind() != kind) continue;
      const Message message = std::move(in_flight_[i]);
      in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(i));
      process(message.to).deliver(message);
      return true;
    }
    return false;
  }
  /// Take the oldest message of this kind off the network.
  [[nodiscard]] std::optional<Message> take(Kind kind) {
    for (std::size_t i = 0; i < in_flight_.size(); ++i) {
      if (in_flight_[i].kind() != kind) continue;
      Message message = std::move(in_flight_[i]);
      in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(i));
      return message;
    }
    return std::nullopt;
  }
  [[nodiscard]] int on_its_way(Kind kind) const {
    int count = 0;
    for (const Message& message : in_flight_) count += message.kind() == kind ? 1 : 0;
    return count;
  }
  /// The oldest message of this kind that is on its way.
  template <class Header>
  [[nodiscard]] Header peek(Kind kind) const {
    for (const Message& message : in_flight_) {
      if (message.kind() == kind) return load<Header>(message.unprefixed());
    }
    throw Violation("no such message is on its way");
  }
  /// The last piece of the oldest transfer, which has stalled, is posted.
  bool go_on_posting() {
    if (jobs_.empty() || !jobs_.front().stalled) return false;
    process(jobs_.front().rank).go_on_posting(jobs_.front());
    return true;
  }
  /// The oldest transfer moves its data; a chained DONE follows. @returns  false when there is none
  bool move_data() {
    if (jobs_.empty()) return false;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    if (job.stalled) process(job.rank).go_on_posting(job);
    const bool moved = process(job.rank).move_data(job);
    if (moved) {
      for (Message& done : job.chained) in_flight_.push_back(std::move(done));
    }
    moved_.push_back({std::move(job), moved});
    return true;
  }
  /// The process that started the oldest transfer that has moved learns of its end.
  bool notice() {
    if (moved_.empty()) return false;
    const Moved ended = std::move(moved_.front());
    moved_.pop_front();
    process(ended.job.rank).notice(ended.job, ended.moved);
    return true;
  }
  bool finish_transfer() {
    if (moved_.empty() && !move_data()) return false;
    return notice();
  }
  [[nodiscard]] bool quiet() const { return in_flight_.empty() && jobs_.empty() && moved_.empty(); }
  /// Deliver everything in order until nothing moves.
  void settle() {
    while (!quiet()) {
      while (!in_flight_.empty()) deliver(in_flight_.front().kind());
      finish_transfer();
    }
  }

  /// The time that the processes are told; 0: none.
  std::uint64_t clock_ns = 0;
  [[nodiscard]] std::uint64_t now_ns() const noexcept override { return clock_ns; }

  bool transmit(Message message) override {
    in_flight_.push_back(std::move(message));
    return true;
  }
  void start(Job job) override { jobs_.push_back(std::move(job)); }
  Process& process(int rank) override { return *processes_[rank]; }

 private:
  struct Moved {
    Job job;
    bool moved;
  };
  std::optional<Process> processes_[2];
  std::deque<Message> in_flight_;
  std::deque<Job> jobs_;
  std::deque<Moved> moved_;
  int last_id_ = 0;
};

inline const Counters& at_sender(Pair& pair) { return pair.sender().counters(); }
inline const Counters& at_receiver(Pair& pair) { return pair.receiver().counters(); }

/// Did this receive get exactly that message?
[[nodiscard]] inline bool got(const Receive& receive, const Send& send) {
  if (!receive.complete || receive.length_bytes != send.data.size() ||
      receive.matched_tag != send.tag)
    return false;
  for (std::size_t i = 0; i < receive.take_bytes(); ++i) {
    if (receive.buffer[i] != send.data[i]) return false;
  }
  return true;
}

}  // namespace overlap::speculative::sim
