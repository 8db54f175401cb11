// Many processes of the real protocol code on a modelled network with virtual time. For tests only.
//
// Protocol code of a process runs only while the process is inside MPI: in a call, or waiting. What
// the network does by itself (messages under way, RDMA writes and reads) goes on while it computes;
// a message that has arrived waits in its inbox.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "process.hpp"

namespace overlap::speculative::sim {

/// 10 Gbit/s and 2 us, about the paper's network.
struct Fabric {
  std::uint64_t latency_ns = 2000;
  std::uint64_t bytes_per_us = 1250;
  std::uint64_t overhead_ns = 200;  ///< processor time for each message sent or looked at
  std::uint64_t jitter_max_ns =
      0;  ///< added to the latency at random: messages overtake each other
  std::uint64_t seed = 1;
};

struct Step {
  enum class What : std::uint8_t {
    compute,  ///< outside MPI for `ns`
    linger,   ///< inside MPI for `ns`
    send,
    receive,
    wait_send,     ///< for send number `which` of this process
    wait_receive,  ///< for receive number `which` of this process
    cancel,        ///< receive number `which`, when it exists and has not ended
    improbe,       ///< and receive what it finds
    hold,          ///< a matched probe: what it finds is received later
    receive_held,  ///< what has been held longest
    iprobe,        ///< look, and leave what is there
  };
  What what = What::compute;
  std::uint64_t ns = 0;
  int peer = 0;  ///< or any_source
  int tag = 0;
  std::size_t bytes = 0;
  SendMode mode = SendMode::eager;
  bool speculate = false;
  int which = 0;
};

/// What MPI's rules give to each receive of one process, by the plainest code that can say it.
/// Takes each message at the moment at which the process sees it in order.
class Reference {
 public:
  struct Arrival {
    int source;
    int tag;
    int send_id;
  };
  void post(int receive, int source, int tag);
  void arrive(const Arrival& message);
  /// A matched probe, or the receive of a message that is there. @returns  its send's id
  [[nodiscard]] std::optional<int> take(int source, int tag);
  void give(int receive, int send_id) { matches_[receive] = send_id; }
  [[nodiscard]] bool has(int source, int tag) const {
    return find(source, tag) != unexpected_.end();
  }
  void cancelled(int receive);
  /// @returns  the send's id, or -1
  [[nodiscard]] int match_of(int receive) const;

 private:
  struct Posted {
    int receive;
    int source;
    int tag;
  };
  [[nodiscard]] std::vector<Arrival>::const_iterator find(int source, int tag) const;

  std::vector<Posted> posted_;
  std::vector<Arrival> unexpected_;
  std::map<int, int> matches_;
};

class Simulator final : public Network {
 public:
  Simulator(int ranks, const Fabric& fabric, const Config& config, const Transport& transport,
            bool early_progress, bool patient = false);

  /// Run a program on every process until nothing happens any more. @returns  virtual time of the
  /// end
  std::uint64_t run(std::vector<std::vector<Step>> programs);
  /// Cancel the receives that are open and receive the messages that nobody has received; then
  /// nothing may be left over.
  void wind_up();

  [[nodiscard]] std::uint64_t clock(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)].clock_ns;
  }
  [[nodiscard]] Process& process(int rank) override {
    return *ranks_[static_cast<std::size_t>(rank)].process;
  }
  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }

  bool transmit(Message message) override;
  void start(Job job) override;
  void completed(Send& send) override;
  void completed(Receive& receive) override;
  void posted(Process& process, Receive& receive) override;
  [[nodiscard]] std::uint64_t now_ns() const noexcept override {
    return patient_ ? ranks_[static_cast<std::size_t>(current_)].clock_ns + 1 : 0;
  }

 private:
  struct Notice {  ///< in an inbox: a message, or the end of a transfer
    bool is_message;
    Message message;
    Job job;
    bool moved;
  };
  struct Event {
    enum class What : std::uint8_t { arrival, data_moves, transfer_ends, resume };
    std::uint64_t at_ns;
    std::uint64_t number;
    What what;
    int rank;
    std::shared_ptr<Notice> notice;
    bool operator<(const Event& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : number > other.number;
    }
  };
  struct Held {
    Arrived* message;
    int send_id;
    std::size_t bytes;
  };
  struct Rank {
    std::unique_ptr<Process> process;
    std::vector<Step> program;
    std::size_t next_step = 0;
    std::uint64_t clock_ns = 0;
    bool inside = false;
    bool waiting = false;  ///< for a request; otherwise for a resume event
    std::deque<std::shared_ptr<Notice>> inbox;
    Reference reference;
    std::deque<Held> held;              ///< by matched probes
    std::map<int, std::uint64_t> seen;  ///< forward messages given to the reference, by source
    std::map<int, std::map<std::uint64_t, Message>>
        early;  ///< and those that came before their turn
  };

  void at(std::uint64_t ns, Event::What what, int rank, std::shared_ptr<Notice> notice = nullptr);
  void loop();
  void go_on(Rank& rank);
  bool do_step(Rank& rank, const Step& step);
  bool await_rtr(Rank& rank);
  bool post(Rank& rank, const Step& step);
  void look(Rank& rank, const Step& step);
  bool hold(Rank& rank, const Step& step);
  void receive(Rank& rank, const Held& held);
  void progress(Rank& rank);
  void handle(Rank& rank, const Notice& notice);
  void send_chained(Job& job, std::uint64_t moved_ns);
  void tell_reference(Rank& rank, const Message& message);
  std::uint64_t occupy(int from, int to, std::uint64_t bytes, std::uint64_t ready_ns);
  void verify(Rank& rank, Receive& receive);

  Fabric fabric_;
  bool early_progress_;
  bool patient_;  ///< sends may wait for RTRs that usually cross them (P1.14)
  std::vector<Rank> ranks_;
  std::priority_queue<Event> events_;
  std::map<std::pair<int, int>, std::uint64_t> link_free_ns_;
  std::map<std::pair<int, int>, std::uint64_t> forward_sent_;
  std::vector<Send*> sends_by_id_;
  std::uint64_t next_event_ = 0;
  std::uint64_t random_;
  std::uint64_t messages_ = 0;
  int current_ = 0;
};

}  // namespace overlap::speculative::sim
