// For tests: ranks with an interpreter per stream, a network that reorders and refuses, and checks
// of what a barrier promises.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "barrier_plan.hpp"
#include "dice.hpp"
#include "interpreter.hpp"

namespace overlap::coll_mq::model {

/// Faults of the surroundings that the checks must find.
enum class Plant : std::uint8_t {
  none,
  forget_sequence,  ///< a message counts for the oldest collective
  forget_step,      ///< every message is the first of its edge
  forget_stream,    ///< every message is the first stream's
  drop_kept,        ///< what comes before its collective has begun is lost
  drop_refused,     ///< what the transport refused is lost
  drop_tell,        ///< a sender is not told that its peer has caught up
  run_away,         ///< a sender believes that its peer has ended everything
  free_early,       ///< a stream is given up with its collectives under way
  repeat,           ///< a message arrives twice, and counts as the next one then
};

struct Case {
  Rank size = 2;
  BarrierShape shape{};
  std::uint32_t window = 2;
  Cookie collectives = 2;  ///< in each stream
  Cookie ahead = 2;        ///< so many are started before the first has ended
  std::size_t streams = 1;
  std::size_t shuts = 0;  ///< how often a rank's transport refuses everything for a while
  bool one_way = false;   ///< two messages to each rank's successor instead of a barrier
};

/// The plan of one rank: two messages to its successor, none back.
inline Plan one_way_plan(Rank rank, Rank size) {
  PlanWriter writer(rank, size);
  for (int i = 0; i < 2; ++i) {
    if (rank + 1 < size) writer.send(rank + 1);
    if (rank > 0) writer.receive(rank - 1);
  }
  if (rank > 0) writer.wait(rank - 1, 2);
  return writer.take();
}

/// The state of an interpreter between two events, in one number.
struct Digest {
  std::uint64_t value = 0;

  void add(std::uint64_t more) { value = Dice(value * 0x100000001b3ULL + more).next(); }
  void add(const Interpreter& one) {
    add(one.failed_);
    add(one.oldest_.value());
    add(one.next_.value());
    add(one.pending_.size());
    for (const auto& slot : one.slots_) {
      add(static_cast<std::uint64_t>(slot.state));
      add(slot.task);
      add(slot.arrivals);
    }
    add(one.peers_);
  }

 private:
  void add(const Arrivals& arrivals) {
    // A table that has not grown yet is one of zeros.
    for (std::size_t i = 0; i < arrivals.seen_.size(); ++i)
      if (arrivals.seen_[i] != 0) add(i << 16 | arrivals.seen_[i]);
    std::uint64_t any_order = 0;
    for (const auto& early : arrivals.early_)
      any_order += Dice(std::uint64_t{early.edge} << 16 | early.step).next();
    add(any_order);
  }
  void add(const PeerTable& peers) {
    for (const auto& edge : peers.edges_) {
      add(edge.oldest.value());
      add(edge.asked * 2U + edge.asks);
      add(edge.wanted.value());
    }
    for (const auto& control : peers.stalled_) {
      add(static_cast<std::uint64_t>(control.kind) << 16 | control.edge);
      add(control.sequence.value());
    }
  }
};

/// One state of the whole. Copies go different ways.
class World {
 public:
  struct Choice {
    enum class Kind : std::uint8_t { start, deliver, shut, open };
    Kind kind{};
    std::size_t which = 0;  ///< rank, or flight
    std::size_t stream = 0;
  };

  World(const Case& the_case, Plant plant) : case_(the_case), plant_(plant) {
    // Numbers start again on the way.
    const Sequence first(Sequence::mask - 1);
    for (Rank r = 0; r < case_.size; ++r) {
      Process process;
      for (std::size_t s = 0; s < case_.streams; ++s) {
        process.streams.push_back({Interpreter(case_.window, first), 0, 0, false});
        plan_ = process.streams[s].interpreter.add(
            case_.one_way ? one_way_plan(r, case_.size) : barrier_plan(r, case_.size, case_.shape));
      }
      processes_.push_back(std::move(process));
    }
  }

  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  [[nodiscard]] std::uint64_t key() const {
    Digest digest;
    for (const Process& process : processes_) {
      digest.add(process.shuts * 2 + process.is_shut);
      for (const Stream& stream : process.streams) {
        digest.add(stream.started);
        digest.add(stream.ended * 2 + stream.is_free);
        digest.add(stream.interpreter);
      }
    }
    std::uint64_t any_order = 0;
    for (const Flight& flight : flights_) {
      const Message& message = flight.message;
      Digest one;
      one.add(flight.from << 32 | flight.to << 16 | flight.stream);
      one.add(std::uint64_t{message.sequence.value()} << 32 | message.oldest.value());
      one.add(std::uint64_t{message.step} << 8 | static_cast<unsigned>(message.kind));
      any_order += one.value;
    }
    digest.add(any_order);
    return digest.value;
  }
  [[nodiscard]] std::vector<Choice> choices() const {
    using Kind = Choice::Kind;
    std::vector<Choice> choices;
    for (std::size_t r = 0; r < processes_.size(); ++r) {
      const Process& process = processes_[r];
      for (std::size_t s = 0; s < case_.streams; ++s) {
        const Stream& stream = process.streams[s];
        if (stream.started < case_.collectives && stream.started - stream.ended < case_.ahead)
          choices.push_back({Kind::start, r, s});
      }
      if (process.is_shut) choices.push_back({Kind::open, r, 0});
      if (!process.is_shut && process.shuts < case_.shuts) choices.push_back({Kind::shut, r, 0});
    }
    for (std::size_t f = 0; f < flights_.size(); ++f) {
      // Equal messages count once.
      const auto same = [&](const Flight& other) { return other == flights_[f]; };
      if (std::none_of(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(f), same))
        choices.push_back({Kind::deliver, f, 0});
    }
    return choices;
  }
  void apply(const Choice& choice) {
    switch (choice.kind) {
      case Choice::Kind::start: start(choice.which, choice.stream); break;
      case Choice::Kind::deliver: deliver(choice.which); break;
      case Choice::Kind::shut:
        processes_[choice.which].is_shut = true;
        ++processes_[choice.which].shuts;
        break;
      case Choice::Kind::open:
        processes_[choice.which].is_shut = false;
        for (Stream& stream : processes_[choice.which].streams) stream.interpreter.room();
        advance(choice.which);
        break;
    }
  }
  /// Nothing can happen any more.
  void check_end() {
    for (const Process& process : processes_)
      for (const Stream& stream : process.streams) {
        if (stream.ended != case_.collectives) complain("a collective never ends");
        if (!stream.is_free && !stream.interpreter.is_idle()) complain("a stream is never idle");
      }
  }

 private:
  struct Stream {
    Interpreter interpreter;
    Cookie started = 0;
    Cookie ended = 0;
    bool is_free = false;  ///< the communicator is gone
  };
  struct Process {
    std::vector<Stream> streams;
    bool is_shut = false;
    std::size_t shuts = 0;
  };
  struct Flight {
    std::size_t from = 0;
    std::size_t to = 0;
    std::size_t stream = 0;
    Message message;
    [[nodiscard]] bool operator==(const Flight&) const noexcept = default;
  };

  void complain(const char* what) {
    if (fault_.empty()) fault_ = what;
  }

  void start(std::size_t rank, std::size_t s) {
    Stream& stream = processes_[rank].streams[s];
    stream.interpreter.start(plan_, stream.started++);
    advance(rank);
  }
  void deliver(std::size_t index) {
    Flight flight = flights_[index];
    flights_[index] = flights_.back();
    flights_.pop_back();
    take(flight);
    if (plant_ == Plant::repeat && flight.message.kind == MessageKind::data) {
      flight.message.sequence = flight.message.sequence + 1;
      take(flight);
    }
    advance(flight.to);
  }
  void take(Flight flight) {
    Message& message = flight.message;
    const bool is_data = message.kind == MessageKind::data;
    if (plant_ == Plant::forget_stream) flight.stream = 0;
    Stream& stream = processes_[flight.to].streams[flight.stream];
    if (plant_ == Plant::forget_step) message.step = 0;
    if (plant_ == Plant::forget_sequence && is_data)
      message.sequence = Sequence(Sequence::mask - 1) + static_cast<std::uint32_t>(stream.ended);
    if (plant_ == Plant::drop_tell && message.kind == MessageKind::tell) return;
    if (plant_ == Plant::drop_kept && stream.started == stream.ended && is_data) return;
    if (plant_ == Plant::run_away) message.oldest = message.sequence + 1;
    if (stream.is_free) {
      if (is_data) complain("a message comes for a stream that is gone");
      return;
    }
    const auto arrival = stream.interpreter.arrived(static_cast<Rank>(flight.from), message);
    if (arrival.kind == Arrival::Kind::refused) complain("a message is refused");
    if (arrival.kind == Arrival::Kind::stale) complain("a message is stale");
  }
  void advance(std::size_t rank) {
    Process& process = processes_[rank];
    for (std::size_t s = 0; s < process.streams.size(); ++s) {
      Stream& stream = process.streams[s];
      while (auto action = stream.interpreter.advance()) {
        if (action->kind == Action::Kind::finished) {
          end(s, stream, *action);
        } else if (!process.is_shut) {
          flights_.push_back({rank, static_cast<std::size_t>(action->peer), s, action->message});
        } else if (plant_ != Plant::drop_refused) {
          stream.interpreter.retry(*action);
        }
      }
      free(stream);
    }
  }
  void end(std::size_t s, Stream& stream, const Action& action) {
    ++stream.ended;
    if (action.outcome != Outcome::done) complain("a collective fails");
    if (case_.one_way) return;
    for (const Process& other : processes_)
      if (other.streams[s].started <= action.cookie)
        complain("a rank leaves before all have entered");
  }
  /// The program frees the communicator when it has started all; it goes when the last has ended.
  void free(Stream& stream) {
    if (stream.started < case_.collectives || case_.one_way) return;
    if (stream.interpreter.is_idle() || plant_ == Plant::free_early) stream.is_free = true;
  }

  Case case_;
  Plant plant_;
  PlanId plan_ = 0;
  std::vector<Process> processes_;
  std::vector<Flight> flights_;
  std::string fault_;
};

struct Outcomes {
  std::string fault;
  std::size_t states = 0;
  std::size_t ends = 0;
};

/// Go every way; from a state that was there before, once.
inline Outcomes explore(const Case& the_case, Plant plant = Plant::none) {
  Outcomes outcomes;
  std::unordered_set<std::uint64_t> seen;
  std::vector<World> open{World(the_case, plant)};
  while (!open.empty()) {
    World world = std::move(open.back());
    open.pop_back();
    auto choices = world.choices();
    if (choices.empty()) {
      world.check_end();
      ++outcomes.ends;
    }
    if (!world.fault().empty()) {
      outcomes.fault = world.fault();
      return outcomes;
    }
    for (const auto& choice : choices) {
      World next = world;
      next.apply(choice);
      if (!seen.insert(next.key()).second) continue;
      ++outcomes.states;
      open.push_back(std::move(next));
    }
  }
  return outcomes;
}

/// Go one way. @returns  the fault
inline std::string walk(const Case& the_case, std::uint64_t seed, Plant plant = Plant::none) {
  Dice dice(seed);
  World world(the_case, plant);
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
