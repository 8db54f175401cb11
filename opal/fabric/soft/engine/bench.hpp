// Two connected queue pairs and all parts of the engine but the engine: each part's test calls it
// alone and looks at what it has done to the others.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "access_check.hpp"
#include "admission.hpp"
#include "arrivals.hpp"
#include "completion_queues.hpp"
#include "connections.hpp"
#include "data_mover.hpp"
#include "delivery.hpp"
#include "directory.hpp"
#include "failures.hpp"
#include "lanes.hpp"
#include "management.hpp"
#include "regions.hpp"
#include "requester.hpp"
#include "retirement.hpp"
#include "schedule.hpp"

namespace overlap::fabric::soft::bench {

/// Notes every call; answers what the test has put there.
struct NotingHost final : Host {
  struct Copy {
    std::uint32_t to = 0;
    std::uint64_t bytes = 0;
    bool last = false;
  };
  struct Notified {
    std::uint32_t client = 0;
    std::size_t completions = 0;  ///< that were there when the host was called
  };
  struct Told {
    std::uint32_t client = 0;
    std::uint32_t pair = 0;
    Event event;
  };

  [[nodiscard]] Copied copy(const Client& to, std::span<const Piece> target, const Client&,
                            std::span<const Piece>, bool last) noexcept override {
    std::uint64_t bytes = 0;
    for (const Piece& piece : target) bytes += piece.bytes;
    copies.push_back({to.id, bytes, last});
    return answer;
  }
  [[nodiscard]] Copied atomic(const Client&, const Piece&, const WorkRequest&,
                              std::uint64_t& old) noexcept override {
    old = 41;
    return answer;
  }
  [[nodiscard]] bool fetch(Pair&, Submission& out) override {
    if (posted.empty()) return false;
    out = posted.front();
    posted.pop_front();
    return true;
  }
  [[nodiscard]] bool take_receive(Receives&, Receive& out) override {
    if (receives.empty()) return false;
    out = receives.front();
    receives.pop_front();
    return true;
  }
  [[nodiscard]] bool complete(Completions&, Pair&, const Completion& completion,
                              std::uint32_t) override {
    if (completions.size() >= completion_entries) return false;
    completions.push_back(completion);
    return true;
  }
  [[nodiscard]] bool fetch(Manager&, Command& out) override {
    if (commands.empty()) return false;
    out = commands.front();
    commands.pop_front();
    return true;
  }
  [[nodiscard]] Completions* find_counting(const Client&, std::uint32_t number) noexcept override {
    return number < counting.size() ? counting[number] : nullptr;
  }
  void count(Completions&, Pair&, bool sent, std::uint32_t position) noexcept override {
    counted.emplace_back(sent, position);
  }
  [[nodiscard]] bool complete(Manager&, const Completion& completion, std::uint32_t) override {
    lists.push_back(completion);
    return true;
  }
  void notify(Client& client) noexcept override {
    notified.push_back({client.id, completions.size()});
  }
  void event(Client& client, Pair* pair, const Event& event) override {
    told.push_back({client.id, pair == nullptr ? 0 : pair->number, event});
  }

  Copied answer = Copied::done;
  std::size_t completion_entries = 100;
  std::deque<Submission> posted;
  std::deque<Receive> receives;
  std::deque<Command> commands;
  std::vector<Completions*> counting;  ///< by number
  std::vector<std::pair<bool, std::uint32_t>> counted;
  std::vector<Completion> lists;
  std::vector<Copy> copies;
  std::vector<Completion> completions;
  std::vector<Notified> notified;
  std::vector<Told> told;
};

struct Bench final : Steps {
  static constexpr std::uint64_t base = 0x10000;
  static constexpr std::uint64_t size = 1U << 20U;

  void go_on(Pair& pair, Stage stage) override { steps.emplace_back(&pair, stage); }
  void go_on(Manager& manager) override { managers.push_back(&manager); }

  [[nodiscard]] static WorkRequest request(Opcode opcode, std::uint32_t bytes,
                                           std::uint32_t local_key, std::uint32_t remote_key) {
    WorkRequest request;
    request.id = 7;
    request.opcode = opcode;
    request.signalled = true;
    request.gather_count = 1;
    request.gather[0] = {reinterpret_cast<const void*>(base), bytes, local_key};
    request.remote_address = base;
    request.remote_key = remote_key;
    return request;
  }
  [[nodiscard]] WorkRequest request(Opcode opcode, std::uint32_t bytes) const {
    return request(opcode, bytes, key_a, key_b);
  }
  /// A task in the send queue of `ab`, as if it had been fetched and started.
  Task& add_task(const WorkRequest& request) {
    Task& task = ab.tasks.emplace_back();
    task.submission.request = request;
    task.total_bytes = request.gather[0].bytes;
    ab.started = ab.end();
    if (task.is_read()) ++ab.outstanding_reads;
    return task;
  }

  NotingHost host;
  std::vector<std::pair<Pair*, Stage>> steps;
  std::vector<Manager*> managers;
  Schedule schedule;
  Wire wire{schedule.hidden()};
  Regions regions;
  Directory directory{wire};
  Connections connections{host, schedule, directory};
  AccessCheck access{regions};
  DataMover mover{host, access};
  CompletionQueues queues{host, *this};
  Lanes lanes{schedule, wire};
  Retirement retirement{schedule, queues};
  Failures failures{host, schedule, lanes, queues, retirement};
  Admission admission{host, schedule, access, mover, failures};
  Delivery delivery{schedule, queues, retirement, *this};
  Arrivals arrivals{schedule, lanes, mover, admission, delivery, failures};
  Requester requester{host, schedule, access, lanes, failures, retirement};
  Management management{host, schedule, directory, queues, failures, requester, *this};

  Client& a = directory.add_client(0, {}, nullptr);  // 1 byte per ns, 5 us, 200 ns per message
  Client& b = directory.add_client(1, {}, nullptr);
  Completions& completions_a = directory.add_completions(a, nullptr);
  Completions& completions_b = directory.add_completions(b, nullptr);
  Receives& receives_b = directory.add_receives(b, nullptr);
  Pair& ab = directory.add_pair(a, completions_a, nullptr, nullptr);
  Pair& ba = directory.add_pair(b, completions_b, &receives_b, nullptr);
  std::uint32_t key_a = regions.add({a.id, base, size, access::any, nullptr});
  std::uint32_t key_b = regions.add({b.id, base, size, access::any, nullptr});
  bool connected =
      connections.connect(ab, b.id, {}) && connections.accept(host.told.back().event.request, ba);
};

}  // namespace overlap::fabric::soft::bench
