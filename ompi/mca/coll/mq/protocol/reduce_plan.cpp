// Reductions as plans.
// SPDX-License-Identifier: BSD-3-Clause
#include "reduce_plan.hpp"

#include <cstdint>
#include <span>
#include <vector>

#include "tree.hpp"

namespace overlap::coll_mq {

namespace {

constexpr Place input{Buffer::input, 0, 1};
constexpr Place output{Buffer::output, 0, 1};

/// A rank's part of the result, as it grows. What has been sent is never changed: the next part is
/// put together elsewhere.
class Part {
 public:
  Part(PlanWriter& writer, const ReduceShape& shape) : writer_(writer), order_(shape.order) {
    // The result goes to where the input is.
    if (shape.in_place) move_to_fresh();
  }

  [[nodiscard]] Place place() const noexcept { return place_; }
  void send(Rank peer) {
    writer_.send(peer, place_);
    is_fixed_ = true;
  }
  /// @returns  where a part of that peer will come
  Place receive(Rank peer) {
    const Place to = writer_.scratch(1);
    writer_.receive(peer, to);
    return to;
  }
  void join_higher(Place come) {
    writer_.reduce(place_, come);
    place_ = come;
    is_fixed_ = false;
  }
  void join_lower(Place come) {
    if (order_ == Order::any) return join_higher(come);
    if (is_fixed_) move_to_fresh();
    writer_.reduce(come, place_);
  }

 private:
  void move_to_fresh() {
    const Place fresh = writer_.scratch(1);
    writer_.copy(place_, fresh);
    place_ = fresh;
    is_fixed_ = false;
  }

  PlanWriter& writer_;
  Order order_;
  Place place_ = input;
  bool is_fixed_ = true;  ///< the program's, or sent
};

/// The whole result comes from that peer, after this rank's part has gone.
void receive_result(PlanWriter& writer, Rank from, bool in_place, auto send_part) {
  const Place to = in_place ? writer.scratch(1) : output;
  writer.receive(from, to);
  send_part();
  writer.wait(from);
  if (in_place) writer.copy(to, output);
}

/// The nearest higher one first, so that not all send to one at a time.
template <class Body>
void for_others(Rank rank, Rank size, Body&& body) {
  for (Rank i = 1; i < size; ++i) body(static_cast<Rank>((std::int64_t{rank} + i) % size));
}

/// Wait for each one's operand, the last one's first, and join it from the left.
/// @param operands  [rank]; this rank's own is not changed
/// @param fresh     taken if there is none that may be changed
/// @returns  where the result is: scratch
Place join_all(PlanWriter& writer, Rank rank, std::span<const Place> operands, Place fresh) {
  const auto last = static_cast<Rank>(operands.size() - 1);
  Place sum = operands.back();
  if (rank == last) {
    writer.copy(sum, fresh);
    sum = fresh;
  } else {
    writer.wait(last);
  }
  for (Rank r = last - 1; r >= 0; --r) {
    if (r != rank) writer.wait(r);
    writer.reduce(operands[static_cast<std::size_t>(r)], sum);
  }
  return sum;
}

}  // namespace

Plan allreduce_plan(Rank rank, Rank size, ReduceShape shape) {
  PlanWriter writer(rank, size);
  Rank power = 1;
  while (power <= size / 2) power *= 2;
  const Rank extra = size - power;
  // Neighbours join first, so that parts stay ranges of ranks.
  const bool in_pair = rank < 2 * extra;
  Part part(writer, shape);
  if (in_pair && rank % 2 == 1) {
    receive_result(writer, rank - 1, shape.in_place, [&] { part.send(rank - 1); });
    return writer.take();
  }
  if (in_pair) {
    const Place come = part.receive(rank + 1);
    writer.wait(rank + 1);
    part.join_higher(come);
  }
  const Rank node = in_pair ? rank / 2 : rank - extra;
  const auto rank_of = [&](Rank n) { return n < extra ? 2 * n : n + extra; };
  for (Rank stride = 1; stride < power; stride *= 2) {
    const Rank peer = rank_of(node ^ stride);
    const Place come = part.receive(peer);
    part.send(peer);
    writer.wait(peer);
    if (peer > rank) {
      part.join_higher(come);
    } else {
      part.join_lower(come);
    }
  }
  writer.copy(part.place(), output);
  if (in_pair) writer.send(rank + 1, output);
  return writer.take();
}

Plan straight_allreduce_plan(Rank rank, Rank size, bool in_place) {
  PlanWriter writer(rank, size);
  Place own = input;
  if (in_place) {
    own = writer.scratch(1);
    writer.copy(input, own);
  }
  std::vector<Place> operands(static_cast<std::size_t>(size), own);
  for_others(rank, size, [&](Rank other) {
    operands[static_cast<std::size_t>(other)] = writer.scratch(1);
    writer.receive(other, operands[static_cast<std::size_t>(other)]);
    writer.send(other, own);
  });
  writer.copy(join_all(writer, rank, operands, writer.scratch(1)), output);
  return writer.take();
}

Plan shared_allreduce_plan(Rank rank, Rank size, bool in_place) {
  PlanWriter writer(rank, size);
  const auto block = [](Buffer buffer, Rank owner) {
    return Place{buffer, static_cast<std::uint32_t>(owner), 1};
  };
  const auto like = [&](Rank owner) {
    return writer.scratch(1, static_cast<std::uint32_t>(owner));
  };
  std::vector<Place> operands(static_cast<std::size_t>(size), block(Buffer::input, rank));
  std::vector<Place> results(static_cast<std::size_t>(size));
  for_others(rank, size, [&](Rank other) {
    Place& operand = operands[static_cast<std::size_t>(other)];
    Place& result = results[static_cast<std::size_t>(other)];
    operand = like(rank);
    result = in_place ? like(other) : block(Buffer::output, other);
    writer.receive(other, operand);
    writer.receive(other, result);
    // In place it is overwritten.
    Place share = block(Buffer::input, other);
    if (in_place) {
      share = like(other);
      writer.copy(block(Buffer::input, other), share);
    }
    writer.send(other, share);
  });
  const Place sum = join_all(writer, rank, operands, like(rank));
  writer.copy(sum, block(Buffer::output, rank));
  for_others(rank, size, [&](Rank other) { writer.send(other, sum); });
  for_others(rank, size, [&](Rank other) {
    writer.wait(other);
    const Place& come = results[static_cast<std::size_t>(other)];
    if (in_place) writer.copy(come, block(Buffer::output, other));
  });
  return writer.take();
}

Plan reduce_plan(Rank rank, Rank size, Rank root, ReduceShape shape) {
  PlanWriter writer(rank, size);
  const Rank top = shape.order == Order::any ? root : 0;
  const Rank node = rank >= top ? rank - top : rank - top + size;
  const auto rank_of = [&](Rank n) { return static_cast<Rank>((std::int64_t{n} + top) % size); };
  const TreePlace place = tree_place(node, size, shape.radix);

  shape.in_place = shape.in_place && rank == root;
  Part part(writer, shape);
  // The nearest first: parts stay ranges of ranks.
  for (auto child = place.children.rbegin(); child != place.children.rend(); ++child) {
    const Place come = part.receive(rank_of(*child));
    writer.wait(rank_of(*child));
    part.join_higher(come);
  }
  const auto send_up = [&] {
    if (place.parent >= 0) part.send(rank_of(place.parent));
  };
  if (rank == root && rank != top) {
    receive_result(writer, top, shape.in_place, send_up);
  } else if (rank == root) {
    writer.copy(part.place(), output);
  } else {
    send_up();
    if (rank == top) part.send(root);
  }
  return writer.take();
}

}  // namespace overlap::coll_mq
