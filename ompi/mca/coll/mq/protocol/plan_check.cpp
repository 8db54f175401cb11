// Carries out the plans of a whole group on symbols, and says what is wrong with them.
// SPDX-License-Identifier: BSD-3-Clause
#include "plan_check.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <sstream>
#include <utility>

namespace overlap::coll_mq::check {

namespace {

/// @returns  the plan's edge to that rank; nullptr: none
const Edge* edge_to(const Plan& plan, Rank peer) {
  const auto found = std::find_if(plan.edges.begin(), plan.edges.end(),
                                  [&](const Edge& edge) { return edge.peer == peer; });
  return found == plan.edges.end() ? nullptr : &*found;
}

/// Numbers of sends and waits, and the other ends of the edges.
std::string check_form(const std::vector<Plan>& plans, const Plan& plan) {
  std::vector<std::uint32_t> sent(plan.edges.size());
  std::vector<std::uint32_t> waited(plan.edges.size());
  for (const Task& task : plan.tasks) {
    if (task.kind == TaskKind::copy || task.kind == TaskKind::reduce) continue;
    if (task.edge >= plan.edges.size()) return "a task names no edge";
    if (is_send(task.kind)) {
      if (task.step != sent[task.edge]++) return "a send has a wrong number";
      if (task.kind == TaskKind::write_immediate && task.from.blocks != 0)
        return "a write with immediate has a payload";
    } else if (task.kind == TaskKind::wait) {
      if (task.step != waited[task.edge]) return "a wait has a wrong base";
      waited[task.edge] += task.count;
    } else {
      return "a task that only management queues know";
    }
  }
  for (std::size_t i = 0; i < plan.edges.size(); ++i) {
    const Edge& edge = plan.edges[i];
    if (edge.peer == plan.rank || edge.peer < 0 || edge.peer >= plan.size)
      return "an edge leads nowhere";
    if (edge_to(plan, edge.peer) != &edge) return "two edges lead to the same rank";
    if (edge.sends != sent[i]) return "an edge has a wrong count of sends";
    if (edge.receives != waited[i]) return "a message is not waited for";
    if (edge.first_receive + edge.receives > plan.receives.size())
      return "a receive without a place";
    const Edge* back = edge_to(plans[static_cast<std::size_t>(edge.peer)], plan.rank);
    if (edge.sends != (back == nullptr ? 0 : back->receives)) return "a receive is missing";
    if (edge.receives != (back == nullptr ? 0 : back->sends)) return "a send is missing";
  }
  return {};
}

/// A block that is being used in a way that limits others.
enum class Use : std::uint8_t { open, arriving, sent };

/// One rank at work.
struct Worker {
  const Plan* plan = nullptr;
  Memory memory;
  std::vector<Value> scratch;
  std::vector<Use> input_use;
  std::vector<Use> output_use;
  std::vector<Use> scratch_use;
  std::size_t next = 0;  ///< task
  Knowledge known;

  std::vector<Value>& values(Buffer which) noexcept { return memory.buffer(which, scratch); }
  std::vector<Use>& uses(Buffer which) noexcept {
    if (which == Buffer::scratch) return scratch_use;
    return which == Buffer::input && !memory.in_place ? input_use : output_use;
  }
};

struct Packet {
  Knowledge known;
  std::vector<Value> values;
};

class Runner {
 public:
  Runner(const std::vector<Plan>& plans, std::vector<Memory> memory) : workers_(plans.size()) {
    for (std::size_t r = 0; r < plans.size(); ++r) {
      Worker& worker = workers_[r];
      worker.plan = &plans[r];
      if (!memory.empty()) worker.memory = std::move(memory[r]);
      worker.scratch.resize(plans[r].scratch_blocks);
      worker.input_use.resize(worker.memory.input.size());
      worker.output_use.resize(worker.memory.output.size());
      worker.scratch_use.resize(worker.scratch.size());
      worker.known = Knowledge(plans.size());
      worker.known.add(static_cast<Rank>(r));
      incoming_.emplace_back(plans[r].edges.size());
    }
  }

  Result run() {
    for (Worker& worker : workers_)
      for (const Place& place : worker.plan->receives)
        claim(worker, place, Use::arriving, "two messages come into one place");
    std::deque<std::size_t> ready;
    for (std::size_t r = 0; r < workers_.size(); ++r) ready.push_back(r);
    while (!ready.empty() && defect_.empty()) {
      const std::size_t r = ready.front();
      ready.pop_front();
      run_rank(workers_[r], ready);
    }
    Result result;
    for (Worker& worker : workers_) {
      if (worker.next < worker.plan->tasks.size()) complain(worker, "waits forever");
      result.known.push_back(std::move(worker.known));
      result.memory.push_back(std::move(worker.memory));
    }
    result.defect = std::move(defect_);
    return result;
  }

 private:
  void complain(const Worker& worker, const char* what) {
    if (!defect_.empty()) return;
    std::ostringstream text;
    text << "rank " << worker.plan->rank << " of " << worker.plan->size << ", task " << worker.next
         << ": " << what;
    defect_ = text.str();
  }

  bool is_inside(Worker& worker, const Place& place) {
    if (place.blocks == 0) return true;
    if (place.buffer != Buffer::none &&
        std::size_t{place.first} + place.blocks <= worker.values(place.buffer).size())
      return true;
    complain(worker, "a place is outside of its buffer");
    return false;
  }
  void claim(Worker& worker, const Place& place, Use use, const char* complaint) {
    if (!is_inside(worker, place)) return;
    for (std::uint32_t i = 0; i < place.blocks; ++i) {
      Use& now = worker.uses(place.buffer)[place.first + i];
      if (now != Use::open && now != use) complain(worker, complaint);
      if (now == use && use == Use::arriving) complain(worker, complaint);
      now = use;
    }
  }

  void run_rank(Worker& worker, std::deque<std::size_t>& ready) {
    const auto& tasks = worker.plan->tasks;
    while (worker.next < tasks.size() && defect_.empty()) {
      const Task& task = tasks[worker.next];
      if (is_send(task.kind)) {
        send(worker, task);
        ready.push_back(static_cast<std::size_t>(worker.plan->edges[task.edge].peer));
      } else if (task.kind == TaskKind::wait) {
        if (!try_wait(worker, task)) return;
      } else {
        const auto from = read(worker, task.from);
        write(worker, task.to, from, task.kind == TaskKind::reduce);
      }
      ++worker.next;
    }
  }
  void send(Worker& worker, const Task& task) {
    const Rank peer = worker.plan->edges[task.edge].peer;
    const Plan& other = *workers_[static_cast<std::size_t>(peer)].plan;
    const auto back = static_cast<std::size_t>(edge_to(other, worker.plan->rank) - &other.edges[0]);
    incoming_[static_cast<std::size_t>(peer)][back].push_back(
        {worker.known, read(worker, task.from)});
    claim(worker, task.from, Use::sent, "sends from where a message comes in");
  }
  bool try_wait(Worker& worker, const Task& task) {
    auto& queue = incoming_[static_cast<std::size_t>(worker.plan->rank)][task.edge];
    if (queue.size() < task.count) return false;
    for (std::uint32_t i = 0; i < task.count; ++i) {
      const Place& to =
          worker.plan->receives[worker.plan->edges[task.edge].first_receive + task.step + i];
      Packet& packet = queue.front();
      worker.known.add(packet.known);
      if (packet.values.size() != to.blocks) complain(worker, "a message has another size");
      if (!defect_.empty()) return false;
      for (std::uint32_t b = 0; b < to.blocks; ++b) {
        worker.uses(to.buffer)[to.first + b] = Use::open;
        worker.values(to.buffer)[to.first + b] = std::move(packet.values[b]);
      }
      queue.pop_front();
    }
    return true;
  }
  std::vector<Value> read(Worker& worker, const Place& place) {
    if (!is_inside(worker, place)) return {};
    std::vector<Value> values;
    for (std::uint32_t i = 0; i < place.blocks; ++i) {
      values.push_back(worker.values(place.buffer)[place.first + i]);
      if (values.back().empty()) complain(worker, "reads what nobody has written");
      if (worker.uses(place.buffer)[place.first + i] == Use::arriving)
        complain(worker, "reads where a message may come in");
    }
    return values;
  }
  void write(Worker& worker, const Place& place, const std::vector<Value>& from, bool reduce) {
    if (!is_inside(worker, place)) return;
    if (from.size() != place.blocks) return complain(worker, "places of two sizes");
    for (std::uint32_t i = 0; i < place.blocks; ++i) {
      Value& value = worker.values(place.buffer)[place.first + i];
      const Use use = worker.uses(place.buffer)[place.first + i];
      if (use == Use::arriving) complain(worker, "writes where a message may come in");
      if (use == Use::sent) complain(worker, "changes what was sent");
      if (place.buffer == Buffer::input) complain(worker, "changes the program's input");
      if (reduce && value.empty()) complain(worker, "reduces what nobody has written");
      if (!reduce) {
        value = from[i];
      } else {
        value.insert(value.begin(), from[i].begin(), from[i].end());
      }
    }
  }

  std::vector<Worker> workers_;
  std::vector<std::vector<std::deque<Packet>>> incoming_;  ///< [rank][edge]
  std::string defect_;
};

}  // namespace

std::size_t Knowledge::count() const noexcept {
  std::size_t count = 0;
  for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
  return count;
}

Result run(const std::vector<Plan>& plans, std::vector<Memory> memory) {
  for (const Plan& plan : plans) {
    auto defect = check_form(plans, plan);
    if (defect.empty()) continue;
    std::ostringstream text;
    text << "rank " << plan.rank << " of " << plan.size << ": " << defect;
    return {text.str(), {}, {}};
  }
  return Runner(plans, std::move(memory)).run();
}

std::string check_barrier(const std::vector<Plan>& plans) {
  const Result result = run(plans);
  if (!result.defect.empty()) return result.defect;
  for (std::size_t r = 0; r < plans.size(); ++r)
    if (result.known[r].count() != plans.size()) {
      std::ostringstream text;
      text << "rank " << r << " of " << plans.size() << " leaves before all have entered";
      return text.str();
    }
  return {};
}

}  // namespace overlap::coll_mq::check
