// For tests: the epochs of one rank within reach; the test plays all others.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <new>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "epochs.hpp"

namespace overlap::newrma {

struct Bench : Host {
  struct NamedEvent : Event {
    std::string name;
    int times = 0;
  };
  struct NamedOperation : Operation {
    std::string name;
  };

  explicit Bench(Rank count = 4, Rank self = 0, Reorder reorder = {})
      : self_rank(self), epochs(*this, locks_of_all, self, count, reorder) {}
  virtual ~Bench() = default;

  void send(Rank to, const NoticeMessage& message) override {
    say(name_of(message.notice) + ">" + std::to_string(to));
    sent.emplace_back(to, message);
    if (inside_send) std::exchange(inside_send, {})();
  }
  void start(Operation& operation) override {
    auto& named = static_cast<NamedOperation&>(operation);
    say("start " + named.name);
    if (is_out_of_memory) throw std::bad_alloc();
    if (ends_at_once) epochs.operation_done(named);
  }
  struct Ended {};
  [[noreturn]] void end_without_memory() override { throw Ended{}; }
  void happened(Event& happening) override {
    auto& named = static_cast<NamedEvent&>(happening);
    ++named.times;
    say(named.name);
  }
  WindowLock* lock_of(Rank rank) override {
    return rank == self_rank || mapped.contains(rank) ? &locks[rank] : nullptr;
  }

  void took_ticket(Rank owner, WindowLock::Ticket) override {
    if (says_tickets) say("took " + std::to_string(owner));
  }
  void passed_turn(Rank owner) override {
    if (says_tickets) say("passed " + std::to_string(owner));
  }

  void let_guests_in(Rank owner) override {
    if (says_tickets) say("let guests in " + std::to_string(owner));
  }

  NamedEvent& event(const std::string& name) {
    events.emplace_back();
    events.back().name = name;
    return events.back();
  }
  /// Issue an operation that writes, or one that fetches.
  NamedOperation& put(Rank target, const std::string& name, bool writes = true) {
    operations.emplace_back();
    operations.back().name = name;
    operations.back().writes = writes;
    epochs.add(operations.back(), *epochs.access_to(target));
    return operations.back();
  }
  void get(Rank target, const std::string& name) { put(target, name, false); }
  void done(const std::string& name) {
    for (NamedOperation& each : operations)
      if (each.name == name) epochs.operation_done(each);
  }

  void hear(Rank from, Notice notice, std::uint64_t value = 0) {
    epochs.on_notice(from, {.notice = notice, .value = value});
  }
  /// Answer the last question of a kind.
  void answer(Notice question, Notice answer) {
    for (auto each = sent.rbegin(); each != sent.rend(); ++each) {
      if (each->second.notice != question) continue;
      const auto [to, message] = *each;
      epochs.on_notice(to, {.notice = answer, .id = message.id, .value = message.value});
      return;
    }
    say("nobody asked");
  }
  void grant() { answer(Notice::lock, Notice::granted); }
  void flushed() { answer(Notice::flush, Notice::flushed); }
  void unlocked() { answer(Notice::unlock, Notice::unlocked); }

  /// What it said since the last time, with commas.
  std::string said() { return std::exchange(text, {}); }

  static std::string name_of(Notice notice) {
    switch (notice) {
      case Notice::post: return "post";
      case Notice::complete: return "complete";
      case Notice::lock: return "lock";
      case Notice::granted: return "granted";
      case Notice::unlock: return "unlock";
      case Notice::unlocked: return "unlocked";
      case Notice::flush: return "flush";
      case Notice::flushed: return "flushed";
      case Notice::look: return "look";
      case Notice::fence: return "fence";
    }
    return {};
  }

  Rank self_rank;
  bool ends_at_once = false;
  bool is_out_of_memory = false;
  std::function<void()> inside_send;  ///< the next one brings messages in
  bool says_tickets = false;
  ProcessLocks locks_of_all;
  std::set<Rank> mapped;
  std::map<Rank, WindowLock> locks;
  std::deque<NamedEvent> events;
  std::deque<NamedOperation> operations;
  std::vector<std::pair<Rank, NoticeMessage>> sent;
  Epochs epochs;

 private:
  void say(const std::string& what) { text += (text.empty() ? "" : ", ") + what; }
  std::string text;
};

inline const std::vector<Rank> only_0{0};
inline const std::vector<Rank> only_1{1};
inline const std::vector<Rank> only_2{2};
inline const std::vector<Rank> only_3{3};
inline const std::vector<Rank> both{1, 2};

}  // namespace overlap::newrma
