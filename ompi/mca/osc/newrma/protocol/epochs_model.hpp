// For tests: several ranks with their epochs, a network that is FIFO per pair and otherwise as it
// likes, and checks of what MPI promises.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "epochs_program.hpp"

namespace overlap::newrma::model {

enum class Plant : std::uint8_t {
  none,
  drop_notice,
  repeat_notice,
  swap_pair,     ///< a message overtakes the one before it
  grant_early,   ///< without looking at the lock
  flush_early,   ///< confirmed before anything has arrived
  apply_late,    ///< operations leave the FIFO
  unlock_early,  ///< confirmed by the origin's side of the network
};

struct ModelEvent : Event {
  std::function<void()> check;
  int times = 0;
};

struct Message {
  NoticeMessage notice{};
  ModelOp* op = nullptr;  ///< instead of a notice
  bool is_reply = false;
};

class World {
 public:
  /// @param choose  one of n
  World(Program& program, std::function<std::size_t(std::size_t)> choose, Plant plant = Plant::none)
      : program_(program), choose_(std::move(choose)), plant_(plant) {
    locks_ = std::vector<WindowLock>(static_cast<std::size_t>(program.count));
    called_.resize(locks_.size());
    touching_.resize(locks_.size());
    untouchable_.resize(locks_.size());
    for (Rank r = 0; r < program.count; ++r) ranks_.push_back(std::make_unique<Process>(*this, r));
    for (Plan& plan : program_.plans) {
      plan.opened_at = plan.closed_at = 0;
      plan.ended = false;
      for (const auto& [peer, nth] : plan.nth)
        if (plan.kind == EpochKind::access)
          accesses_[{plan.rank, peer, nth}] = &plan;
        else
          exposures_[{plan.rank, peer, nth}] = &plan;
    }
    for (ModelOp& op : program_.ops) op.started = op.sent = op.applied = op.done = false;
  }

  /// @returns  the first fault, or nothing
  std::string run() {
    for (int i = 0; i < 100000 && fault_.empty(); ++i) {
      auto actions = enabled();
      if (actions.empty()) break;
      actions[choose_(actions.size())]();
    }
    if (fault_.empty()) check_end();
    return fault_;
  }

 private:
  struct Process : Host {
    Process(World& its_world, Rank its_rank)
        : world(its_world),
          rank(its_rank),
          epochs(*this, locks_of_all, rank, world.program_.count, world.program_.reorder) {}
    virtual ~Process() = default;
    void send(Rank to, const NoticeMessage& notice) override { world.on_send(rank, to, notice); }
    void start(Operation& operation) override {
      world.on_start(*this, static_cast<ModelOp&>(operation));
    }
    void happened(Event& event) override { world.on_event(static_cast<ModelEvent&>(event)); }
    [[noreturn]] void end_without_memory() override { throw std::bad_alloc(); }
    WindowLock* lock_of(Rank other) override {
      const bool is_mapped = other == rank || world.program_.maps.contains({rank, other});
      return is_mapped ? &world.locks_[static_cast<std::size_t>(other)] : nullptr;
    }
    World& world;
    Rank rank;
    ProcessLocks locks_of_all;
    Epochs epochs;
    std::size_t next = 0;
    bool is_curious = true;  ///< something has happened since it looked in vain
    ModelEvent* blocked_by = nullptr;
    bool awaits_all = false;
    std::deque<ModelEvent> events;
    std::vector<ModelOp*> running;
  };

  void fail(const std::string& text) {
    if (fault_.empty()) fault_ = text;
  }
  void require(bool holds, const char* text) {
    if (!holds) fail(text);
  }
  void changed() {
    ++activity_;
    for (auto& rank : ranks_) rank->is_curious = true;
  }

  std::vector<std::function<void()>> enabled() {
    std::vector<std::function<void()>> actions;
    for (auto& each : ranks_) {
      Process& p = *each;
      if (can_go_on(p)) actions.emplace_back([this, &p] { go_on(p); });
      for (ModelOp* op : p.running) actions.emplace_back([this, &p, op] { advance(p, *op); });
      if (p.epochs.has_unasked()) actions.emplace_back([&p] { p.epochs.ask_ahead(); });
      if (p.is_curious && p.epochs.awaits_lock()) {
        actions.emplace_back([this, &p] {
          p.is_curious = false;
          const auto before = activity_;
          p.epochs.poll();
          if (activity_ != before) changed();
        });
      }
    }
    for (auto& [pair, queue] : queues_) {
      if (!queue.empty())
        actions.emplace_back([this, key = pair] { deliver(key.first, key.second); });
    }
    if (actions.empty() && !late_.empty()) actions.emplace_back([this] { apply_late(); });
    return actions;
  }

  bool can_go_on(Process& p) {
    if (p.blocked_by != nullptr && p.blocked_by->times == 0) return false;
    if (p.awaits_all &&
        !std::ranges::all_of(p.events, [](const auto& event) { return event.times > 0; }))
      return false;
    const auto& steps = program_.steps[static_cast<std::size_t>(p.rank)];
    if (p.next == steps.size()) return false;
    return steps[p.next].what != Do::test || p.is_curious;
  }

  ModelEvent& event(Process& p, std::function<void()> check) {
    p.events.emplace_back();
    p.events.back().check = std::move(check);
    return p.events.back();
  }
  void on_event(ModelEvent& event) {
    changed();
    require(++event.times == 1, "an event happened twice");
    if (event.check) event.check();
  }

  void go_on(Process& p) {
    const Step& step = program_.steps[static_cast<std::size_t>(p.rank)][p.next];
    p.blocked_by = nullptr;
    p.awaits_all = step.what == Do::await;
    Plan* plan = step.plan;
    ++clock_;
    const auto opens = [&](Plan* which) {
      if (which != nullptr) which->opened_at = clock_;
    };
    const auto closes = [&]() -> ModelEvent* {
      if (plan != nullptr) plan->closed_at = clock_;
      ModelEvent& ended = event(p, [this, plan] { check_ended(*plan); });
      if (step.blocks) p.blocked_by = &ended;
      return &ended;
    };
    bool is_legal = true;
    Epochs& e = p.epochs;
    switch (step.what) {
      case Do::fence: {
        const std::size_t number = ++called_[static_cast<std::size_t>(p.rank)];
        if (plan != nullptr) plan->closed_at = clock_;
        ModelEvent& ended = event(p, [this, plan, number] {
          for (const std::size_t each : called_)
            require(each >= number, "a fence let one go early");
          if (plan != nullptr) check_ended(*plan);
        });
        if (step.blocks) p.blocked_by = &ended;
        ++clock_;
        opens(step.next);
        is_legal = e.fence(&ended, step.next != nullptr, step.no_precede);
        break;
      }
      case Do::start:
        opens(plan);
        is_legal = e.start(plan->group);
        break;
      case Do::complete: is_legal = e.complete(closes()); break;
      case Do::post:
        opens(plan);
        is_legal = e.post(plan->group);
        break;
      case Do::wait: is_legal = e.wait(closes()); break;
      case Do::test: {
        bool done = false;
        p.is_curious = false;
        is_legal = e.test(done);
        if (!done && is_legal) return;
        plan->closed_at = clock_;
        check_ended(*plan);
        break;
      }
      case Do::lock: {
        opens(plan);
        ModelEvent& granted = event(p, [this, plan] { touch(*plan, plan->group[0]); });
        if (step.blocks) p.blocked_by = &granted;
        is_legal = e.lock(plan->type, step.target, plan->no_check, &granted);
        break;
      }
      case Do::unlock: is_legal = e.unlock(step.target, closes()); break;
      case Do::lock_all: {
        opens(plan);
        std::vector<Rank> now;
        for (Rank r = 0; r < program_.count; ++r)
          if (step.local && p.lock_of(r) != nullptr) now.push_back(r);
        ModelEvent& granted = event(p, {});
        if (step.blocks) p.blocked_by = &granted;
        is_legal = e.lock_all(plan->no_check, now, &granted, step.blocks);
        break;
      }
      case Do::unlock_all: is_legal = e.unlock_all(closes()); break;
      case Do::flush:
      case Do::flush_all: {
        std::vector<ModelOp*> covered;
        for (ModelOp& op : program_.ops)
          if (op.plan->rank == p.rank && op.age != 0 && issued_.contains(&op) &&
              op.plan->closed_at == 0 && (step.what == Do::flush_all || op.target == step.target))
            covered.push_back(&op);
        ModelEvent& flushed = event(p, [this, covered, local = step.local] {
          for (const ModelOp* op : covered)
            require(op->done && (local || op->applied), "a flush ended early");
        });
        if (step.blocks) p.blocked_by = &flushed;
        is_legal = step.what == Do::flush ? e.flush(step.target, step.local, flushed)
                                          : e.flush_all(step.local, flushed);
        break;
      }
      case Do::op: {
        Access* access = e.access_to(step.target);
        is_legal = access != nullptr;
        if (!is_legal) break;
        step.op->writes = step.op->mode != Mode::fetch;
        issued_.insert(step.op);
        e.add(*step.op, *access);
        break;
      }
      case Do::await: break;
    }
    require(is_legal, "a legal call was refused");
    ++p.next;
    changed();
  }

  // Operations.

  void on_start(Process& p, ModelOp& op) {
    changed();
    require(!op.started, "an operation was started twice");
    op.started = true;
    check_start(op);
    p.running.push_back(&op);
    if (choose_(2) == 0) return;
    advance(p, op);
    if (op.sent && std::ranges::find(p.running, &op) != p.running.end()) advance(p, op);
  }

  void advance(Process& p, ModelOp& op) {
    changed();
    if (!op.sent) {
      op.sent = true;
      if (op.mode == Mode::transfer || op.target == p.rank) {
        apply(op);
      } else {
        queue(p.rank, op.target, {.op = &op});
        if (op.mode == Mode::fetch) std::erase(p.running, &op);  // until the reply
      }
      return;
    }
    std::erase(p.running, &op);
    op.done = true;
    p.epochs.operation_done(op);
  }

  void apply(ModelOp& op) {
    require(!op.applied, "an operation was applied twice");
    op.applied = true;
    const Plan& plan = *op.plan;
    if (plan.kind == EpochKind::access) {
      const Plan* exposure = exposures_[{op.target, plan.rank, plan.nth.at(op.target)}];
      require(exposure != nullptr && exposure->opened_at != 0, "applied before the post");
      require(exposure == nullptr || !exposure->ended, "applied after the wait");
    } else if (plan.kind == EpochKind::fence) {
      check_fence_of_target(op);
    } else {
      require(!plan.ended, "applied after the unlock");
      touch(*op.plan, op.target);
    }
  }

  void check_fence_of_target(const ModelOp& op) {
    require(called_[static_cast<std::size_t>(op.target)] >= op.plan->fence,
            "an operation came before its target's fence");
    for (const ModelOp& other : program_.ops)
      require(other.plan->kind != EpochKind::fence || other.plan->fence >= op.plan->fence ||
                  other.target != op.target || other.applied,
              "an operation came before those of an earlier fence");
    for (const Plan& plan : program_.plans)
      if (plan.kind == EpochKind::fence && plan.rank == op.target && plan.fence == op.plan->fence)
        require(!plan.ended, "an operation came after its target's fence");
  }

  void check_start(const ModelOp& op) {
    const Plan& plan = *op.plan;
    require(plan.opened_at != 0 && !plan.ended, "started outside its epoch");
    for (const Plan& other : program_.plans)
      require(other.rank != plan.rank || other.closed_at == 0 || other.ended ||
                  other.closed_at > plan.opened_at || may_pass(other, plan),
              "program order");
    if (plan.kind == EpochKind::access)
      require(op.target == plan.rank || posts_[{op.target, plan.rank}] >= plan.nth.at(op.target),
              "started before the post");
    if (plan.kind == EpochKind::fence) check_fence_of_target(op);
    if (plan.kind == EpochKind::lock || plan.kind == EpochKind::lock_all)
      touch(*op.plan, op.target);
  }

  bool may_pass(const Plan& earlier, const Plan& later) const {
    const auto never = [](const Plan& plan) {
      return plan.kind == EpochKind::fence || plan.kind == EpochKind::lock_all;
    };
    if (never(earlier) || never(later)) return false;
    const bool from = earlier.kind == EpochKind::exposure;
    if (later.kind == EpochKind::exposure)
      return from ? program_.reorder.exposure_after_exposure
                  : program_.reorder.exposure_after_access;
    return from ? program_.reorder.access_after_exposure : program_.reorder.access_after_access;
  }

  /// Holders of a lock: a newcomer that excludes them, or is excluded, sends them away for ever.
  void touch(Plan& plan, Rank target) {
    if (plan.no_check) return;
    auto& inside = touching_[static_cast<std::size_t>(target)];
    auto& gone = untouchable_[static_cast<std::size_t>(target)];
    require(!gone.contains(&plan), "two exclude each other and are inside");
    if (inside.contains(&plan)) return;
    const auto excludes = [](const Plan* each) {
      return each->kind == EpochKind::lock && each->type == LockType::exclusive;
    };
    if (excludes(&plan) || std::ranges::any_of(inside, excludes)) {
      gone.insert(inside.begin(), inside.end());
      inside.clear();
    }
    inside.insert(&plan);
  }

  void check_ended(Plan& plan) {
    require(!plan.ended, "an epoch ended twice");
    plan.ended = true;
    for (const ModelOp* op : plan.ops) {
      require(op->done, "an epoch ended before its operations");
      require(op->applied || plan.kind == EpochKind::access, "an epoch ended before they arrived");
    }
    if (plan.kind == EpochKind::exposure) {
      for (const auto& [origin, nth] : plan.nth) {
        const Plan* access = accesses_[{origin, plan.rank, nth}];
        require(access != nullptr && access->closed_at != 0, "a wait ended before the complete");
        if (access == nullptr) continue;
        for (const ModelOp* op : access->ops)
          require(op->target != plan.rank || op->applied, "a wait ended before an operation came");
      }
    }
    if (plan.kind == EpochKind::fence) {
      for (const ModelOp& op : program_.ops)
        require(op.plan->kind != EpochKind::fence || op.plan->fence != plan.fence ||
                    op.target != plan.rank || op.applied,
                "a fence ended before an operation came");
    }
  }

  // The network.

  void queue(Rank from, Rank to, const Message& message) {
    auto& messages = queues_[{from, to}];
    if (plant_ == Plant::apply_late && message.op != nullptr && !message.is_reply &&
        message.op->mode == Mode::message) {
      late_.push_back(message.op);
      return;
    }
    messages.push_back(message);
    if (plant_ == Plant::swap_pair && messages.size() > 1)
      std::swap(messages.back(), messages[messages.size() - 2]);
  }

  void apply_late() {
    ModelOp* op = late_.front();
    late_.pop_front();
    apply(*op);
  }

  void on_send(Rank from, Rank to, const NoticeMessage& notice) {
    changed();
    if (notice.notice == Notice::post) ++posts_[{from, to}];
    ++notices_;
    if (plant_ == Plant::drop_notice && notices_ == 5) return;
    const auto forge = [&](Notice answer) {
      queue(to, from, {.notice = {.notice = answer, .id = notice.id, .value = notice.value}});
    };
    if (plant_ == Plant::grant_early && notice.notice == Notice::lock) forge(Notice::granted);
    if (plant_ == Plant::flush_early && notice.notice == Notice::flush) forge(Notice::flushed);
    if (plant_ == Plant::unlock_early && notice.notice == Notice::unlock) forge(Notice::unlocked);
    queue(from, to, {.notice = notice});
    const bool repeats = plant_ == Plant::repeat_notice &&
                         (notice.notice == Notice::post || notice.notice == Notice::complete ||
                          notice.notice == Notice::fence);
    if (repeats) queue(from, to, {.notice = notice});
  }

  void deliver(Rank from, Rank to) {
    changed();
    auto& messages = queues_[{from, to}];
    const Message message = messages.front();
    messages.pop_front();
    Process& p = *ranks_[static_cast<std::size_t>(to)];
    if (message.op == nullptr) {
      p.epochs.on_notice(from, message.notice);
    } else if (message.is_reply) {
      message.op->done = true;
      p.epochs.operation_done(*message.op);
    } else {
      apply(*message.op);
      if (message.op->mode == Mode::fetch) queue(to, from, {.op = message.op, .is_reply = true});
    }
  }

  void check_end() {
    for (auto& each : ranks_) {
      Process& p = *each;
      require(p.next == program_.steps[static_cast<std::size_t>(p.rank)].size(), "deadlock");
      for (const ModelEvent& event : p.events)
        require(event.times == 1 && event.pending == 0, "an event was lost");
      require(!p.epochs.in_use(), "an epoch has not ended");
      require(!p.epochs.awaits_lock(), "a lock is still waited for");
      require(!p.epochs.in_passive_epoch(), "a lock is still open");
    }
    for (const ModelOp& op : program_.ops)
      require(op.started && op.applied && op.done, "an operation was lost");
    for (WindowLock& lock : locks_)
      require(lock.try_enter(lock.take(), LockType::exclusive), "a lock is not free");
  }

  Program& program_;
  std::function<std::size_t(std::size_t)> choose_;
  Plant plant_;
  std::string fault_;
  std::vector<WindowLock> locks_;
  std::vector<std::unique_ptr<Process>> ranks_;
  std::map<std::pair<Rank, Rank>, std::deque<Message>> queues_;
  std::deque<ModelOp*> late_;
  std::map<std::pair<Rank, Rank>, std::size_t> posts_;  ///< sent, [target, origin]
  std::map<std::tuple<Rank, Rank, std::size_t>, Plan*> accesses_, exposures_;
  std::set<const ModelOp*> issued_;
  std::vector<std::size_t> called_;  ///< fences, [rank]
  std::vector<std::set<Plan*>> touching_, untouchable_;
  std::uint64_t activity_ = 0;
  std::size_t clock_ = 0;
  std::size_t notices_ = 0;
};

}  // namespace overlap::newrma::model
