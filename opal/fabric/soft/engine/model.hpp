// A model machine around the engine for tests: memory, queues and completions as plain containers,
// time as a number.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine.hpp"

namespace overlap::fabric::soft::model {

inline constexpr std::uint64_t memory_base = 0x10000;

struct Seen {
  Time at = 0;
  Completion completion;
};

struct Told {
  std::uint32_t client = 0;
  std::uint32_t pair = 0;
  Event event;
};

class Machine;

/// A management queue of a process, and what was posted to it.
struct Lists {
  Manager* manager = nullptr;
  std::deque<Command> posted;
  std::uint32_t position = 0;
  std::vector<Seen> seen;
};

/// A process with one completion queue, one receive queue and registered memory.
struct Process {
  Client* client = nullptr;
  std::uint32_t id = 0;
  Completions* completions = nullptr;
  Receives* receives = nullptr;
  std::vector<std::byte> memory;
  std::uint32_t key = 0;
  std::deque<Receive> posted;
  bool starved = false;
  bool alive = true;
  bool removed = false;  ///< the engine knows that it is dead
  std::vector<Seen> seen;
  std::size_t completion_entries = SIZE_MAX;  ///< nobody takes entries out of `seen`
  std::vector<Completions*> counting;         ///< by number, from 1
  std::vector<std::unique_ptr<Lists>> lists;
  std::vector<std::size_t> notified;  ///< entries of `seen` at each call of notify()
};

struct Queue {
  Pair* pair = nullptr;
  std::uint32_t number = 0;
  std::deque<Submission> posted;
  std::uint32_t position = 0;
};

/// Runs the engine in virtual time. Every wake-up is one that the engine asked for: what it forgets
/// to ask for never happens.
class Machine final : public Host {
 public:
  explicit Machine() : engine(*this) {}

  Process& add(std::uint32_t node, const WireSettings& settings, std::size_t bytes = 1U << 16U,
               unsigned rights = access::any, const RetrySettings& retry = {}) {
    processes.push_back(std::make_unique<Process>());
    Process& process = *processes.back();
    process.client = &engine.directory().add_client(node, settings, &process, retry);
    process.id = process.client->id;
    process.completions = &engine.directory().add_completions(*process.client, &process);
    process.receives = &engine.directory().add_receives(*process.client, &process);
    process.memory.resize(bytes);
    process.key = engine.regions().add({process.id, memory_base, bytes, rights, nullptr});
    return process;
  }
  /// @returns  the number of a counting queue
  std::uint32_t add_counting(Process& process) {
    Completions& made = engine.directory().add_completions(*process.client, &process);
    made.counting = true;
    process.counting.push_back(&made);
    return static_cast<std::uint32_t>(process.counting.size());
  }
  Lists& add_lists(Process& process) {
    process.lists.push_back(std::make_unique<Lists>());
    Lists& lists = *process.lists.back();
    lists.manager = &engine.directory().add_manager(*process.client, &lists);
    return lists;
  }
  /// Post a list: its last command is signalled.
  void post(Lists& lists, std::vector<Command> commands, std::uint64_t id) {
    for (Command& command : commands) {
      command.posted = now;
      command.position = lists.position++;
      command.id = id;
      command.signalled = &command == &commands.back();
      lists.posted.push_back(command);
    }
    engine.ring(*lists.manager, now);
  }
  Queue& add_pair(Process& process) {
    queues.push_back(std::make_unique<Queue>());
    Queue& queue = *queues.back();
    queue.pair = &engine.directory().add_pair(*process.client, *process.completions,
                                              process.receives, &queue);
    queue.number = queue.pair->number;
    return queue;
  }
  /// A connected pair of queue pairs. @returns  that of `from`
  Queue& connect(Process& from, Process& to) {
    Queue& asking = add_pair(from);
    Queue& answering = add_pair(to);
    if (!engine.connect(*asking.pair, to.id, PrivateData{}, now) ||
        !engine.accept(told.back().event.request, *answering.pair)) {
      throw std::logic_error("not connected");
    }
    return asking;
  }
  void kill(Process& process) {
    process.alive = false;
    engine.remove_client(*process.client, now);
    process.removed = true;
  }

  void post(Queue& queue, const WorkRequest& request) {
    Submission submission;
    submission.request = request;
    submission.posted = now;
    submission.position = queue.position++;
    queue.posted.push_back(submission);
    if (!queue.pair->managed) engine.ring(*queue.pair, now);
  }
  /// Post a wait to the send queue itself.
  void post_wait(Queue& queue, std::uint32_t number, std::uint32_t index) {
    Submission submission;
    submission.request.opcode = Opcode::wait;
    submission.posted = now;
    submission.position = queue.position++;
    submission.wait_number = number;
    submission.wait_index = index;
    queue.posted.push_back(submission);
    if (!queue.pair->managed) engine.ring(*queue.pair, now);
  }
  void post_receive(Process& process, std::uint64_t id, std::uint64_t offset, std::uint32_t bytes) {
    process.posted.push_back({id, memory_base + offset, bytes, process.key});
    if (!process.starved) return;
    process.starved = false;
    engine.receives_posted(*process.receives, now);
  }

  /// Let time pass, waking up only when the engine wants it.
  void run_until(Time end) {
    for (;;) {
      engine.advance(now);
      if (engine.has_backlog()) {
        engine.move_piece();
        continue;
      }
      const Time wake = engine.next_wake();
      if (wake > end) break;
      now = std::max(now, wake);
      ++wakes;
    }
    now = end;
  }
  void run() { run_until(now + 3'600'000'000'000); }

  [[nodiscard]] Copied copy(const Client& to, std::span<const Piece> target, const Client& from,
                            std::span<const Piece> source, bool last) noexcept override {
    std::vector<std::byte> bytes;
    for (const Piece& piece : source) {
      const std::byte* start = piece.mapping;
      if (start == nullptr) start = memory_of(from, piece);
      if (start == nullptr) return is_dead(from) ? Copied::source_gone : Copied::source_failed;
      bytes.insert(bytes.end(), start, start + piece.bytes);
    }
    std::size_t done = 0;
    for (const Piece& piece : target) {
      std::byte* start = memory_of(to, piece);
      if (start == nullptr) return is_dead(to) ? Copied::target_gone : Copied::target_failed;
      std::memcpy(start, bytes.data() + done, piece.bytes);
      done += piece.bytes;
    }
    ++copies;
    ends += last ? 1 : 0;
    return done == bytes.size() && done <= piece_bytes ? Copied::done : Copied::source_failed;
  }
  [[nodiscard]] Copied atomic(const Client& client, const Piece& target, const WorkRequest& request,
                              std::uint64_t& old) noexcept override {
    std::byte* start = memory_of(client, target);
    if (start == nullptr) return is_dead(client) ? Copied::target_gone : Copied::target_failed;
    std::memcpy(&old, start, sizeof(old));
    const std::uint64_t sum = old + request.operand;
    if (request.opcode == Opcode::fetch_add) std::memcpy(start, &sum, sizeof(sum));
    if (request.opcode == Opcode::compare_swap && old == request.compare)
      std::memcpy(start, &request.operand, sizeof(old));
    return Copied::done;
  }
  [[nodiscard]] bool fetch(Pair& pair, Submission& out) override {
    Queue& queue = *static_cast<Queue*>(pair.host);
    if (queue.posted.empty()) return false;
    out = queue.posted.front();
    queue.posted.pop_front();
    return true;
  }
  [[nodiscard]] bool take_receive(Receives& receives, Receive& out) override {
    Process& process = *static_cast<Process*>(receives.host);
    process.starved = process.posted.empty();
    if (process.starved) return false;
    out = process.posted.front();
    process.posted.pop_front();
    return true;
  }
  [[nodiscard]] bool complete(Completions& completions, Pair&, const Completion& completion,
                              std::uint32_t) override {
    Process& process = *static_cast<Process*>(completions.host);
    if (process.seen.size() >= process.completion_entries) return false;
    process.seen.push_back({now, completion});
    return true;
  }
  [[nodiscard]] bool fetch(Manager& manager, Command& out) override {
    Lists& lists = *static_cast<Lists*>(manager.host);
    if (lists.posted.empty()) return false;
    out = lists.posted.front();
    lists.posted.pop_front();
    return true;
  }
  [[nodiscard]] Completions* find_counting(const Client& client,
                                           std::uint32_t number) noexcept override {
    const Process& process = *static_cast<Process*>(client.host);
    return number >= 1 && number <= process.counting.size() ? process.counting[number - 1]
                                                            : nullptr;
  }
  void count(Completions&, Pair&, bool, std::uint32_t) noexcept override { ++counts; }
  [[nodiscard]] bool complete(Manager& manager, const Completion& completion,
                              std::uint32_t) override {
    static_cast<Lists*>(manager.host)->seen.push_back({now, completion});
    return true;
  }
  void notify(Client& client) noexcept override {
    Process& process = *static_cast<Process*>(client.host);
    process.notified.push_back(process.seen.size());
  }
  void event(Client& client, Pair* pair, const Event& event) override {
    told.push_back({client.id, pair == nullptr ? 0 : pair->number, event});
  }

  Time now = 0;
  std::uint64_t wakes = 0;
  std::uint64_t copies = 0;
  std::uint64_t counts = 0;  ///< completions of counting queues
  std::uint64_t ends = 0;    ///< copies that ended a message
  std::vector<Told> told;
  std::vector<std::unique_ptr<Process>> processes;
  std::vector<std::unique_ptr<Queue>> queues;
  bool touched_dead = false;
  Engine engine;

 private:
  [[nodiscard]] static bool is_dead(const Client& client) noexcept {
    return !static_cast<Process*>(client.host)->alive;
  }
  [[nodiscard]] std::byte* memory_of(const Client& client, const Piece& piece) noexcept {
    Process& process = *static_cast<Process*>(client.host);
    touched_dead |= process.removed;
    if (!process.alive || piece.address < memory_base ||
        piece.address - memory_base + piece.bytes > process.memory.size())
      return nullptr;
    return process.memory.data() + (piece.address - memory_base);
  }
};

[[nodiscard]] inline WorkRequest request(Opcode opcode, const Process& from, std::uint64_t offset,
                                         std::uint32_t bytes, std::uint64_t id,
                                         bool signalled = true) {
  WorkRequest request;
  request.id = id;
  request.opcode = opcode;
  request.signalled = signalled;
  request.gather_count = 1;
  request.gather[0] = {reinterpret_cast<const void*>(memory_base + offset), bytes, from.key};
  return request;
}

[[nodiscard]] inline WorkRequest to(WorkRequest request, const Process& target,
                                    std::uint64_t offset) {
  request.remote_address = memory_base + offset;
  request.remote_key = target.key;
  return request;
}

/// 1 byte per ns, 5 us one way, 200 ns per message.
inline constexpr WireSettings settings{};

/// Two processes on two nodes, connected.
struct Two {
  Machine machine;
  Process& a = machine.add(0, settings, 8U << 20U);
  Process& b = machine.add(1, settings, 8U << 20U);
  Queue& ab = machine.connect(a, b);
};

/// Has this byte been written to?
[[nodiscard]] inline bool arrived(const Process& process, std::uint64_t offset) {
  return process.memory[offset] != std::byte{0};
}

/// Write a value that is not 0.
inline void mark(Process& process, std::uint64_t offset, std::size_t bytes, int value = 1) {
  std::fill_n(process.memory.begin() + static_cast<std::ptrdiff_t>(offset), bytes,
              static_cast<std::byte>(value));
}

}  // namespace overlap::fabric::soft::model
