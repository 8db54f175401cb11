// Two modelled processes, the network between them, and everything that can happen next.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "explorer.hpp"

namespace overlap::speculative::sim {

struct Hash128 {
  std::uint64_t a = 0x9e3779b97f4a7c15U;
  std::uint64_t b = 0xc2b2ae3d27d4eb4fU;
  void mix(std::uint64_t value) noexcept {
    a = (a ^ value) * 0xff51afd7ed558ccdU;
    a ^= a >> 32U;
    b = (b + value + 0x165667b19e3779f9U) * 0xc4ceb9fe1a85ec53U;
    b ^= b >> 29U;
  }
  bool operator==(const Hash128&) const = default;
};
struct HashOf {
  std::size_t operator()(const Hash128& hash) const noexcept { return hash.a; }
};

/// What can happen next.
struct Option {
  enum class What : std::uint8_t {
    call,
    leave,  ///< a message for which there was no room
    deliver,
    deliver_chained,  ///< a DONE behind its data: no order to other messages, whatever the network
                      ///< keeps
    post,             ///< the last piece of a stalled transfer
    move,             ///< the data of a transfer with a chained DONE; its poster does not know yet
    finish,  ///< the poster learns of the end; without a chained DONE the data moves at this time
             ///< too
  };
  What what = What::call;
  int rank = 0;           ///< whose call, or who receives, or whose transfer
  std::size_t index = 0;  ///< message or transfer in its list
};

/// What the explorer searches: both processes, and what is under way between them.
class World final : public Network {
 public:
  explicit World(const Case& test);

  /// What can happen next. Nothing: the end.
  void options(std::vector<Option>& out) const;
  void take(const Option& option);
  /// Two worlds in the same state go on alike.
  [[nodiscard]] Hash128 state() const noexcept;
  /// An option in words, for the story of a violation.
  [[nodiscard]] std::string tell(const Option& option) const;

  void check_end();
  /// The job has ended by break_off: what is complete is right.
  void check_broken();

  // Network
  bool transmit(Message message) override;
  /// The callback of a request: it may call MPI.
  void completed(Receive& receive) override;
  void start(Job job) override;
  Process& process(int rank) override { return *processes_[rank]; }

 private:
  struct Flying {
    Message message;
    std::uint64_t number;
  };
  struct Running {
    Job job;
    std::uint64_t number;
    bool has_moved = false;
    bool moved = false;  ///< what became of it
  };

  void note(int rank, std::uint64_t input) noexcept { history_[rank].mix(input); }

  [[nodiscard]] bool may_call(int rank) const noexcept;

  void call(int rank);
  /// @param mark  which queue, in the history
  void deliver(const Option& option, std::deque<Flying>& queue, std::uint64_t mark);

  void check_matching(int sender, int generation, bool broken);
  void check_left_over(int sender, const std::vector<Send*>& unmatched, std::size_t open_receives);
  void check_gone(int sender, int generation);

  const Case& test_;
  std::optional<Process> processes_[2];
  std::size_t next_call_[2] = {};
  std::vector<Receive*> by_call_[2];
  std::deque<Message> waiting_[2];
  bool stopped_[2] = {};
  unsigned reposted_ = 0;
  int process_being_called_ = 1;  ///< callbacks concern process 1 only
  std::deque<Flying> in_flight_[2];
  std::deque<Flying> chained_[2];
  std::uint64_t moved_[2] = {};  ///< [rank] bit per transfer
  std::vector<Running> jobs_;
  std::uint64_t sent_[2] = {};
  std::uint64_t started_[2] = {};
  Hash128 history_[2];
};

}  // namespace overlap::speculative::sim
