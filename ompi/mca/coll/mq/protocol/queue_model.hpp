// For tests: ranks whose barriers run in management queues, by the queues' rules and in counters of
// their widths.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "barrier_plan.hpp"
#include "counter.hpp"
#include "dice.hpp"

namespace overlap::coll_mq::model {

enum class QueuePlant : std::uint8_t {
  none,
  enable_early,    ///< a send is enabled in front of the wait before it
  enable_all,      ///< an enable lets go whatever is posted
  same_base,       ///< waits of later barriers count from the first one's base
  one_completion,  ///< one completion queue for all edges
  receive_short,   ///< receives for what is posted, not for one barrier more
  no_wrap,         ///< completion indices compare as plain numbers
  no_wrap_entry,   ///< the same for enables
  no_credits,      ///< posts without counting what the queues hold
};

struct QueueCase {
  Rank size = 2;
  BarrierShape shape{};
  std::uint32_t barriers = 2;
  std::uint32_t ahead = 2;     ///< posted at once
  std::uint32_t entries = 64;  ///< of a management queue
};

class QueueWorld {
 public:
  struct Choice {
    enum class Kind : std::uint8_t { post, manage, transfer };
    Kind kind{};
    std::size_t rank = 0;
    std::size_t edge = 0;
  };

  QueueWorld(const QueueCase& the_case, QueuePlant plant) : case_(the_case), plant_(plant) {
    for (Rank r = 0; r < case_.size; ++r) {
      Member member;
      member.plan = barrier_plan(r, case_.size, case_.shape);
      for (const Edge& edge : member.plan.edges) {
        Queues queues;
        queues.peer = static_cast<std::size_t>(edge.peer);
        if (plant_ != QueuePlant::receive_short)
          queues.receives_end = queues.receives_end + edge.receives;
        member.queues.push_back(queues);
      }
      members_.push_back(std::move(member));
    }
  }

  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  [[nodiscard]] std::vector<Choice> choices() const {
    using Kind = Choice::Kind;
    std::vector<Choice> choices;
    for (std::size_t r = 0; r < members_.size(); ++r) {
      const Member& member = members_[r];
      if (may_post(member)) choices.push_back({Kind::post, r, 0});
      if (!member.management.empty() && may_go(member, member.management.front()))
        choices.push_back({Kind::manage, r, 0});
      for (std::size_t e = 0; e < member.queues.size(); ++e)
        if (member.queues[e].sends_enabled - member.queues[e].sends_gone > 0)
          choices.push_back({Kind::transfer, r, e});
    }
    return choices;
  }
  void apply(const Choice& choice) {
    Member& member = members_[choice.rank];
    switch (choice.kind) {
      case Choice::Kind::post: post(member); break;
      case Choice::Kind::manage: manage(member); break;
      case Choice::Kind::transfer: transfer(choice.rank, member.queues[choice.edge]); break;
    }
  }
  void check_end() {
    for (const Member& member : members_)
      if (member.ended != case_.barriers) complain("a barrier never ends");
  }
  [[nodiscard]] std::uint64_t key() const {
    std::uint64_t key = 0;
    const auto add = [&](std::uint64_t more) { key = Dice(key * 0x100000001b3ULL + more).next(); };
    for (const Member& member : members_) {
      add(member.posted);
      add(member.management.size());
      for (const Queues& queues : member.queues) {
        add(queues.sends_gone.value());
        add(queues.sends_enabled.value());
        add(queues.produced.value());
        add(queues.receives_used.value());
      }
    }
    return key;
  }

 private:
  /// Those of one edge; all begin shortly before their counters do so again.
  struct Queues {
    std::size_t peer = 0;
    EntryIndex sends_end{EntryIndex::mask};      ///< posted
    EntryIndex sends_enabled{EntryIndex::mask};  ///< may go
    EntryIndex sends_gone{EntryIndex::mask};
    EntryIndex enables_end{EntryIndex::mask};  ///< what posted enables will have let go
    EntryIndex receives_end{EntryIndex::mask};
    EntryIndex receives_used{EntryIndex::mask};
    CompletionIndex produced{CompletionIndex::mask};
    CompletionIndex waited_end{CompletionIndex::mask};  ///< what posted waits wait for
  };
  /// In the management queue, with the index that it has been given.
  struct Entry {
    TaskKind kind{};
    bool is_last = false;  ///< signalled
    std::size_t edge = 0;
    CompletionIndex completions;
    EntryIndex sends;
  };
  struct Member {
    Plan plan;
    std::vector<Queues> queues;
    std::deque<Entry> management;
    std::uint32_t posted = 0;
    std::uint32_t ended = 0;
  };

  void complain(const char* what) {
    if (fault_.empty()) fault_ = what;
  }
  [[nodiscard]] bool may_post(const Member& member) const {
    if (member.posted == case_.barriers || member.posted - member.ended == case_.ahead)
      return false;
    return plant_ == QueuePlant::no_credits ||
           member.management.size() + credits_of(member.plan).management <= case_.entries;
  }
  [[nodiscard]] bool may_go(const Member& member, const Entry& entry) const {
    if (entry.kind != TaskKind::wait) return true;
    const CompletionIndex produced =
        member.queues[plant_ == QueuePlant::one_completion ? 0 : entry.edge].produced;
    if (plant_ == QueuePlant::no_wrap) return produced.value() >= entry.completions.value();
    return produced - entry.completions >= 0;
  }

  void post(Member& member) {
    ++member.posted;
    for (std::size_t e = 0; e < member.queues.size(); ++e) {
      auto& end = member.queues[e].receives_end;
      end = end + member.plan.edges[e].receives;
    }
    auto tasks = managed_tasks(member.plan);
    if (plant_ == QueuePlant::enable_early)
      for (std::size_t i = 2; i < tasks.size(); ++i)
        if (tasks[i].kind == TaskKind::send_enable && tasks[i - 2].kind == TaskKind::wait) {
          std::swap(tasks[i - 2], tasks[i - 1]);
          std::swap(tasks[i - 1], tasks[i]);
        }
    for (const Task& task : tasks) post(member, task);
    if (member.management.empty()) {
      ++member.ended;  // one rank
    } else {
      member.management.back().is_last = true;
    }
    if (member.management.size() > case_.entries) complain("a queue overflows");
  }
  void post(Member& member, const Task& task) {
    Queues& queues = member.queues[task.edge];
    Entry entry{task.kind, false, task.edge, {}, {}};
    if (is_send(task.kind)) {
      ++queues.sends_end;
      return;
    }
    if (task.kind == TaskKind::wait) {
      CompletionIndex& end =
          member.queues[plant_ == QueuePlant::one_completion ? 0 : task.edge].waited_end;
      const bool moves_on = plant_ != QueuePlant::same_base || member.posted == 1;
      entry.completions = moves_on ? end + task.count : end;
      end = entry.completions;
    } else {
      queues.enables_end = queues.enables_end + task.count;
      entry.sends = queues.enables_end;
      if (queues.sends_end - entry.sends < 0) complain("an enable comes before its send");
    }
    member.management.push_back(entry);
  }
  void manage(Member& member) {
    const Entry entry = member.management.front();
    member.management.pop_front();
    Queues& queues = member.queues[entry.edge];
    if (entry.kind == TaskKind::send_enable) {
      const bool is_news = plant_ == QueuePlant::no_wrap_entry
                               ? entry.sends.value() > queues.sends_enabled.value()
                               : entry.sends - queues.sends_enabled > 0;
      if (is_news) queues.sends_enabled = entry.sends;
      if (plant_ == QueuePlant::enable_all) queues.sends_enabled = queues.sends_end;
    }
    if (!entry.is_last) return;
    ++member.ended;
    for (const Member& other : members_)
      if (other.posted < member.ended) complain("a rank leaves before all have entered");
  }
  void transfer(std::size_t from, Queues& out) {
    ++out.sends_gone;
    Member& to = members_[out.peer];
    for (Queues& in : to.queues) {
      if (in.peer != from) continue;
      if (in.receives_end - in.receives_used <= 0) complain("a receive is short");
      ++in.receives_used;
      ++(plant_ == QueuePlant::one_completion ? to.queues[0] : in).produced;
    }
  }

  QueueCase case_;
  QueuePlant plant_;
  std::vector<Member> members_;
  std::string fault_;
};

/// Go every way; from a state that was there before, once. @returns  the fault
inline std::string explore(const QueueCase& the_case, QueuePlant plant = QueuePlant::none) {
  std::unordered_set<std::uint64_t> seen;
  std::vector<QueueWorld> open{QueueWorld(the_case, plant)};
  while (!open.empty()) {
    QueueWorld world = std::move(open.back());
    open.pop_back();
    const auto choices = world.choices();
    if (choices.empty()) world.check_end();
    if (!world.fault().empty()) return world.fault();
    for (const auto& choice : choices) {
      QueueWorld next = world;
      next.apply(choice);
      if (seen.insert(next.key()).second) open.push_back(std::move(next));
    }
  }
  return {};
}

/// Go one way. @returns  the fault
inline std::string walk(const QueueCase& the_case, std::uint64_t seed) {
  Dice dice(seed);
  QueueWorld world(the_case, QueuePlant::none);
  while (world.fault().empty()) {
    const auto choices = world.choices();
    if (choices.empty()) {
      world.check_end();
      break;
    }
    world.apply(choices[dice.below(choices.size())]);
  }
  return world.fault();
}

}  // namespace overlap::coll_mq::model
