// Reductions as plans.
// SPDX-License-Identifier: BSD-3-Clause
#include "reduce_plan.hpp"

#include <cstdint>

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

Plan reduce_plan(Rank rank, Rank size, Rank root, ReduceShape shape) {
  PlanWriter writer(rank, size);
  const Rank top = shape.order == Order::any ? root : 0;
  const Rank node = rank >= top ? rank - top : rank - top + size;
  const auto rank_of = [&](Rank n) { return static_cast<Rank>((std::int64_t{n} + top) % size); };
  const TreePlace place = tree_place(node, size, 2);

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
