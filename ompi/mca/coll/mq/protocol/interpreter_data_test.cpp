// Collectives with data through interpreters: several under way, messages in any order, some before
// their collective has begun.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ompi/mca/coll/mq/protocol/bcast_plan.hpp"
#include "ompi/mca/coll/mq/protocol/dice.hpp"
#include "ompi/mca/coll/mq/protocol/exchange_plan.hpp"
#include "ompi/mca/coll/mq/protocol/interpreter.hpp"
#include "ompi/mca/coll/mq/protocol/reduce_plan.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap::coll_mq;
using model::Dice;

/// x -> slope x + offset, modulo 2^32: putting two behind each other is not commutative.
struct Element {
  std::uint32_t slope = 1;
  std::uint32_t offset = 0;
  bool operator==(const Element&) const noexcept = default;
};
Element combine(Element left, Element right) {
  return {left.slope * right.slope, left.slope * right.offset + left.offset};
}
Element element(Rank rank, Cookie cookie, std::size_t index = 0) {
  Dice dice(static_cast<std::uint64_t>(rank) << 32 | cookie << 16 | index);
  return {static_cast<std::uint32_t>(dice.next()), static_cast<std::uint32_t>(dice.next())};
}

/// The buffers of one collective at one rank.
struct Buffers {
  std::vector<Element> input;
  std::vector<Element> output;
  std::vector<Element> scratch;

  std::span<Element> at(const Place& place) {
    if (place.blocks == 0) return {};
    auto& all = place.buffer == Buffer::input    ? input
                : place.buffer == Buffer::output ? output
                                                 : scratch;
    return std::span(all).subspan(place.first, place.blocks);
  }
};

struct Flight {
  Rank from = 0;
  Rank to = 0;
  Message message;
  std::vector<std::byte> payload;
};

class Group {
 public:
  explicit Group(Rank size) : size_(size) {
    for (Rank r = 0; r < size; ++r) {
      Interpreter& one = ranks_.emplace_back(4).interpreter;
      const Plan plans[kinds] = {bcast_plan(r, size, size / 2, {3, 2}),
                                 allreduce_plan(r, size),
                                 straight_allreduce_plan(r, size),
                                 shared_allreduce_plan(r, size),
                                 alltoall_plan(r, size, ExchangeShape::bruck),
                                 alltoall_plan(r, size, ExchangeShape::straight),
                                 allgather_plan(r, size, ExchangeShape::bruck),
                                 allgather_plan(r, size, ExchangeShape::straight)};
      for (std::size_t kind = 0; kind < kinds; ++kind) plans_[kind] = one.add(plans[kind]);
    }
  }
  void run(Dice& dice, Cookie count) {
    std::size_t steps = 0;
    for (bool over = false; !over; ++steps) {
      REQUIRE(steps < 20000 * ranks_.size());
      const auto r = static_cast<Rank>(dice.below(ranks_.size()));
      Process& process = ranks_[static_cast<std::size_t>(r)];
      if (process.next < count && dice.one_in(4)) start(r, process, process.next++);
      if (!flights_.empty()) deliver(dice.below(flights_.size()));
      advance(r, process);
      over = flights_.empty();
      for (const Process& one : ranks_)
        over = over && one.ended == count && one.interpreter.is_idle();
    }
  }

 private:
  enum Kind : std::uint8_t {
    bcast,
    allreduce,
    straight_allreduce,
    shared_allreduce,
    alltoall,
    straight_alltoall,
    allgather,
    straight_allgather,
    kinds
  };
  static Kind kind_of(Cookie cookie) { return static_cast<Kind>(cookie % kinds); }

  struct Process {
    explicit Process(std::uint32_t window) : interpreter(window) {}
    Interpreter interpreter;
    Cookie next = 0;
    Cookie ended = 0;
    std::map<Cookie, Buffers> buffers;
  };

  void start(Rank rank, Process& process, Cookie cookie) {
    const PlanId plan = plans_[kind_of(cookie)];
    Buffers& buffers = process.buffers[cookie];
    const auto size = static_cast<std::size_t>(size_);
    buffers.output.resize(std::max<std::size_t>(size, 2));
    for (std::size_t i = 0; i < size; ++i) buffers.input.push_back(element(rank, cookie, i));
    if (kind_of(cookie) == bcast && rank == size_ / 2)
      buffers.output = {element(rank, cookie, 0), element(rank, cookie, 1)};
    buffers.scratch.resize(process.interpreter.plan(plan).scratch_blocks);
    process.interpreter.start(plan, cookie);
  }
  void deliver(std::size_t index) {
    std::swap(flights_[index], flights_.back());
    const Flight flight = std::move(flights_.back());
    flights_.pop_back();
    Process& process = ranks_[static_cast<std::size_t>(flight.to)];
    const Arrival arrival =
        process.interpreter.arrived(flight.from, flight.message, flight.payload);
    REQUIRE(arrival.kind != Arrival::Kind::refused);
    if (arrival.kind == Arrival::Kind::deliver)
      put(process.buffers.at(arrival.cookie).at(arrival.to), flight.payload);
  }
  static void put(std::span<Element> to, std::span<const std::byte> payload) {
    REQUIRE(to.size_bytes() == payload.size());
    std::memcpy(to.data(), payload.data(), payload.size());
  }
  void advance(Rank rank, Process& process) {
    while (auto action = process.interpreter.advance()) {
      Buffers& buffers = process.buffers[action->cookie];
      const auto from = buffers.at(action->from);
      const auto to = buffers.at(action->to);
      switch (action->kind) {
        case Action::Kind::send: {
          const auto bytes = std::as_bytes(from);
          flights_.push_back({rank, action->peer, action->message, {bytes.begin(), bytes.end()}});
          break;
        }
        case Action::Kind::deliver: put(to, action->payload); break;
        case Action::Kind::copy: std::copy(from.begin(), from.end(), to.begin()); break;
        case Action::Kind::reduce:
          for (std::size_t i = 0; i < to.size(); ++i) to[i] = combine(from[i], to[i]);
          break;
        case Action::Kind::finished:
          check(rank, action->cookie, buffers.output);
          ++process.ended;
          process.buffers.erase(action->cookie);
          break;
      }
    }
  }
  void check(Rank rank, Cookie cookie, const std::vector<Element>& output) const {
    const auto all = [&](std::size_t index) {
      Element result;
      for (Rank r = 0; r < size_; ++r) result = combine(result, element(r, cookie, index));
      return result;
    };
    const auto size = static_cast<std::size_t>(size_);
    switch (kind_of(cookie)) {
      case bcast:
        REQUIRE(output[0] == element(size_ / 2, cookie, 0));
        REQUIRE(output[1] == element(size_ / 2, cookie, 1));
        break;
      case allreduce:
      case straight_allreduce: REQUIRE(output[0] == all(0)); break;
      case shared_allreduce:
        for (std::size_t i = 0; i < size; ++i) REQUIRE(output[i] == all(i));
        break;
      case alltoall:
      case straight_alltoall:
      case allgather:
      case straight_allgather: {
        const bool gathers = kind_of(cookie) >= allgather;
        const std::size_t block = gathers ? 0 : static_cast<std::size_t>(rank);
        for (std::size_t i = 0; i < size; ++i)
          REQUIRE(output[i] == element(static_cast<Rank>(i), cookie, block));
        break;
      }
      case kinds: break;
    }
  }

  Rank size_;
  std::array<PlanId, kinds> plans_{};
  std::vector<Process> ranks_;
  std::vector<Flight> flights_;
};

TEST_CASE("data arrives where it belongs, in whatever order its messages come") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Dice dice(seed);
    const Rank size = 1 + static_cast<Rank>(dice.below(11));
    INFO("seed " << seed << ", size " << size);
    Group(size).run(dice, 24);
  }
}

}  // namespace
