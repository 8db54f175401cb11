// Barriers as task lists, in a model machine: what the explorer lets several processes post in
// every order, at many times.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <string>

#include "model.hpp"
#include "opal/fabric/management_queue.hpp"

namespace overlap::fabric::soft::model {

enum class Plant : std::uint8_t {
  none,
  enable_early,   ///< before the wait
  wrong_base,     ///< waits count from the base of the barrier before
  receive_short,  ///< nobody posts receive entries again
  shared_queue,   ///< two incoming edges have one counting queue
  unmanaged,      ///< sends leave when they are posted
  enable_short,   ///< one enable fewer than sends
  wait_short,     ///< the last wait is left out
  interleaved,    ///< two lists of one queue are mixed
  signal_early,   ///< the list reports before its last task
  mixed_groups,   ///< both groups' messages of an edge are counted together
};

/// One rank of one group of processes, with a queue pair and counting queue for each partner.
struct Member {
  struct Edge {
    Queue* out = nullptr;
    EnableIndex enables;
    std::uint32_t counting = 0;
    WaitIndex waits;
  };
  std::map<std::size_t, Edge> edges;  ///< by partner
  Lists* lists = nullptr;
  Lists* service = nullptr;
  std::uint32_t posted = 0;    ///< barriers
  std::uint32_t supplied = 0;  ///< blocks of receive entries
  std::vector<Time> entered;
};

/// Processes and the groups that all of them are in.
class World {
 public:
  static constexpr std::uint32_t block_barriers = 2;  ///< receive entries for so many at a time

  World(std::size_t ranks, std::size_t groups, const WireSettings& settings, Time task_ns,
        Plant plant = Plant::none)
      : plant_(plant), members_(groups, std::vector<Member>(ranks)) {
    for (std::size_t r = 0; r < ranks; ++r)
      machine.add(static_cast<std::uint32_t>(r), settings).client->task_ns = task_ns;
    for (auto& group : members_) {
      for (std::size_t r = 0; r < ranks; ++r) make_member(group, r);
    }
    for (std::size_t g = 0; g < groups; ++g) {
      for (std::size_t r = 0; r < ranks; ++r) {
        supply(g, r);
        supply(g, r);
      }
    }
  }

  /// Rank r enters its next barrier of a group.
  void post_barrier(std::size_t g, std::size_t r) {
    Member& member = members_[g][r];
    member.entered.push_back(machine.now);
    std::vector<Command> commands = barrier(g, r);
    ++member.posted;
    if (plant_ == Plant::interleaved && member.posted % 2 == 0) {
      mix(*member.lists, std::move(commands), member.posted);
    } else {
      post(*member.lists, std::move(commands), member.posted);
    }
  }

  /// Let time pass; the processes do what they do when a service list has ended.
  void run_for(Time ns) {
    const Time end = machine.now + ns;
    do {
      machine.run_until(std::min(end, machine.now + 1000));
      for (std::size_t g = 0; g < members_.size(); ++g) {
        for (std::size_t r = 0; r < members_[g].size(); ++r) serve(g, r);
      }
    } while (machine.now < end);
  }

  /// @returns  "" or what is wrong
  [[nodiscard]] std::string check(bool is_over) const {
    for (const auto& group : members_) {
      for (const Member& member : group) {
        if (std::string fault = check(group, member, is_over); !fault.empty()) return fault;
      }
    }
    if (is_over && !members_.empty() && machine.engine.next_wake() != never)
      return "the engine has something left to do";
    return {};
  }
  /// After an error each list is reported once: successes, at most one error, flushed ones; those
  /// that are not reported wait for something that has not broken.
  [[nodiscard]] std::string check_after_error() const {
    for (const auto& group : members_) {
      for (std::size_t r = 0; r < group.size(); ++r) {
        const Member& member = group[r];
        const Process& process = *machine.processes[r];
        if (!process.alive) continue;
        bool failed = false;
        for (std::size_t i = 0; i < member.lists->seen.size(); ++i) {
          const Completion& completion = member.lists->seen[i].completion;
          if (completion.id != i + 1) return "lists are reported out of order";
          const bool good = completion.status == CompletionStatus::success;
          if (good && failed) return "success behind an error";
          if (failed && completion.status != CompletionStatus::flushed) return "a second error";
          failed |= !good;
        }
        const Manager& manager = *member.lists->manager;
        if (failed != (manager.state == ManagerState::failed)) return "an error is not reported";
        if (failed && member.lists->seen.size() != member.posted) return "a list is not flushed";
        if (!failed && member.lists->seen.size() < member.posted &&
            (manager.state != ManagerState::waiting ||
             manager.queue->broken != CompletionStatus::success))
          return "a list stands still without a reason";
      }
    }
    return machine.touched_dead ? "memory of a dead process was touched" : "";
  }

  [[nodiscard]] std::size_t ranks() const noexcept { return machine.processes.size(); }
  [[nodiscard]] Member& member(std::size_t g, std::size_t r) { return members_[g][r]; }

  Machine machine;

 private:
  /// Recursive doubling; ranks above the largest power of two signal first and wait last (P6.3).
  struct Exchange {
    std::size_t partner = 0;
    bool sends = true;
    bool waits = true;
  };
  [[nodiscard]] std::vector<Exchange> exchanges(std::size_t r) const {
    std::size_t power = 1;
    while (power * 2 <= ranks()) power *= 2;
    if (r >= power) return {{r - power, true, false}, {r - power, false, true}};
    std::vector<Exchange> all;
    const bool has_extra = r + power < ranks();
    if (has_extra) all.push_back({r + power, false, true});
    for (std::size_t bit = 1; bit < power; bit *= 2) all.push_back({r ^ bit, true, true});
    if (has_extra) all.push_back({r + power, true, false});
    return all;
  }

  void make_member(std::vector<Member>& group, std::size_t r) {
    Process& process = *machine.processes[r];
    Member& member = group[r];
    member.lists = &machine.add_lists(process);
    member.service = &machine.add_lists(process);
    for (const Exchange& exchange : exchanges(r)) {
      if (member.edges.count(exchange.partner) == 0) connect(group, r, exchange.partner);
    }
  }
  void connect(std::vector<Member>& group, std::size_t r, std::size_t partner) {
    if (group[partner].edges.count(r) != 0) return;  // by the partner
    Queue& asking = machine.connect(*machine.processes[r], *machine.processes[partner]);
    Queue& answering = *machine.queues.back();
    group[r].edges[partner] = make_edge(group[r], r, asking, partner);
    group[partner].edges[r] = make_edge(group[partner], partner, answering, r);
  }
  Member::Edge make_edge(const Member& member, std::size_t r, Queue& queue, std::size_t partner) {
    Process& process = *machine.processes[r];
    Member::Edge edge;
    edge.out = &queue;
    const bool shares = plant_ == Plant::shared_queue && !member.edges.empty();
    std::uint32_t& of_partner = by_partner_[{r, partner}];
    if (shares) {
      edge.counting = member.edges.begin()->second.counting;
    } else if (plant_ == Plant::mixed_groups && of_partner != 0) {
      edge.counting = of_partner;
    } else {
      edge.counting = machine.add_counting(process);
    }
    of_partner = edge.counting;
    queue.pair->managed = plant_ != Plant::unmanaged;
    queue.pair->receive_completions = process.counting[edge.counting - 1];
    return edge;
  }

  [[nodiscard]] std::vector<Command> barrier(std::size_t g, std::size_t r) {
    Member& member = members_[g][r];
    std::vector<Command> commands;
    const std::vector<Exchange> all = exchanges(r);
    for (const Exchange& exchange : all) {
      Member::Edge& edge = member.edges.at(exchange.partner);
      if (exchange.sends) {
        WorkRequest request;
        request.opcode = Opcode::write_with_immediate;
        request.signalled = true;
        machine.post(*edge.out, request);
        Command enable;
        enable.kind = Command::Kind::send_enable;
        enable.number = edge.out->number;
        enable.index = edge.enables.add(1, true);
        if (plant_ == Plant::enable_short && member.posted == 1) --enable.index;
        if (plant_ == Plant::enable_early && !commands.empty()) {
          commands.insert(commands.end() - 1, enable);
        } else {
          commands.push_back(enable);
        }
      }
      if (exchange.waits) {
        Command wait;
        wait.kind = Command::Kind::wait;
        wait.number = edge.counting;
        wait.index = edge.waits.add(1, true);
        if (plant_ == Plant::wrong_base && member.posted > 0)
          wait.index = (wait.index - 1) & WaitIndex::mask;
        const bool left_out = plant_ == Plant::wait_short && &exchange == &all.back();
        if (!left_out) commands.push_back(wait);
      }
    }
    return commands;
  }

  void post(Lists& lists, std::vector<Command> commands, std::uint64_t id) {
    machine.post(lists, std::move(commands), id);
    if (plant_ != Plant::signal_early || lists.posted.size() < 2) return;
    lists.posted.back().signalled = false;
    lists.posted[lists.posted.size() - 2].signalled = true;
  }
  /// The list's first commands get in front of the last one of the list before.
  void mix(Lists& lists, std::vector<Command> commands, std::uint64_t id) {
    if (lists.posted.empty()) return post(lists, std::move(commands), id);
    Command last = lists.posted.back();
    lists.posted.pop_back();
    last.position = lists.position;
    std::vector<Command> rest{commands.back()};
    commands.pop_back();
    for (Command& command : commands) {
      command.posted = machine.now;
      lists.posted.push_back(command);
    }
    lists.posted.push_back(last);
    machine.post(lists, rest, id);
  }

  /// Receive entries for one block of barriers, and a service list that ends with a block.
  void supply(std::size_t g, std::size_t r) {
    Member& member = members_[g][r];
    for (std::size_t i = 0; i < member.edges.size() * block_barriers; ++i)
      machine.post_receive(*machine.processes[r], 0, 0, 0);
    std::vector<Command> commands;
    ++member.supplied;
    for (const auto& [partner, edge] : member.edges) {
      Command wait;
      wait.kind = Command::Kind::wait;
      wait.number = edge.counting;
      wait.index = (member.supplied * block_barriers) & WaitIndex::mask;
      commands.push_back(wait);
    }
    if (!commands.empty()) machine.post(*member.service, commands, member.supplied);
  }
  void serve(std::size_t g, std::size_t r) {
    Member& member = members_[g][r];
    if (!machine.processes[r]->alive || plant_ == Plant::receive_short) return;
    for (;;) {
      const std::size_t ended = member.service->seen.size();
      const bool good =
          ended > 0 && member.service->seen.back().completion.status == CompletionStatus::success;
      if (!good || member.supplied >= ended + 2) return;
      supply(g, r);
    }
  }

  [[nodiscard]] std::string check(const std::vector<Member>& group, const Member& member,
                                  bool is_over) const {
    const std::vector<Seen>& seen = member.lists->seen;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i].completion.id != i + 1) return "lists are reported out of order";
      if (seen[i].completion.status != CompletionStatus::success) return "a list has failed";
      for (const Member& other : group) {
        if (other.entered.size() <= i || other.entered[i] > seen[i].at)
          return "a barrier ended before everybody had entered";
      }
    }
    if (is_over && seen.size() != member.posted) return "a barrier does not end";
    return {};
  }

  Plant plant_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint32_t> by_partner_;
  std::vector<std::vector<Member>> members_;
};

}  // namespace overlap::fabric::soft::model
