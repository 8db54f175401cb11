// Barriers as plans.
// SPDX-License-Identifier: BSD-3-Clause
#include "barrier_plan.hpp"

#include <cstdint>

namespace overlap::coll_mq {

namespace {

/// One round among ranks that differ in one digit only: the rank's place in its group decides whom
/// it signals first, so that no member gets all signals at once.
void exchange(PlanWriter& writer, Rank rank, Rank stride, Rank group) {
  const Rank digit = rank / stride % group;
  const auto member = [&](Rank step) { return rank + ((digit + step) % group - digit) * stride; };
  for (Rank step = 1; step < group; ++step) {
    writer.receive(member(step));
    writer.send(member(step));
  }
  for (Rank step = group - 1; step > 0; --step) writer.wait(member(step));
}

}  // namespace

Plan barrier_plan(Rank rank, Rank size, BarrierShape shape) {
  PlanWriter writer(rank, size, shape.flavour);
  std::int64_t power = 1;
  while (power * shape.radix <= size) power *= shape.radix;
  const Rank last_group = static_cast<Rank>(size / power);
  const Rank regular = static_cast<Rank>(power * last_group);

  if (rank >= regular) {
    writer.receive(rank - regular);
    writer.send(rank - regular);
    writer.wait(rank - regular);
    return writer.take();
  }
  const bool has_extra = rank + regular < size;
  if (has_extra) {
    writer.receive(rank + regular);
    writer.wait(rank + regular);
  }
  for (Rank stride = 1; stride < power; stride *= shape.radix)
    exchange(writer, rank, stride, shape.radix);
  exchange(writer, rank, static_cast<Rank>(power), last_group);
  if (has_extra) writer.send(rank + regular);
  return writer.take();
}

}  // namespace overlap::coll_mq
