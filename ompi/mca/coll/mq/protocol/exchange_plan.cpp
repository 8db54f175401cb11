// Exchanges of blocks between all ranks as plans.
// SPDX-License-Identifier: BSD-3-Clause
#include "exchange_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace overlap::coll_mq {

namespace {

Rank around(std::int64_t rank, Rank size) { return static_cast<Rank>((rank % size + size) % size); }

/// Joins copies of neighbouring blocks.
class Copier {
 public:
  explicit Copier(PlanWriter& writer) : writer_(writer) {}
  void copy(Place from, Place to) {
    if (from_.buffer == from.buffer && to_.buffer == to.buffer &&
        from_.first + from_.blocks == from.first && to_.first + to_.blocks == to.first) {
      from_.blocks += from.blocks;
      to_.blocks += to.blocks;
      return;
    }
    flush();
    from_ = from;
    to_ = to;
  }
  void flush() {
    if (from_.blocks != 0) writer_.copy(from_, to_);
    from_ = to_ = {};
  }

 private:
  PlanWriter& writer_;
  Place from_;
  Place to_;
};

constexpr Place block(Buffer buffer, Rank index) {
  return {buffer, static_cast<std::uint32_t>(index), 1};
}

/// Block i is for the rank i further on. A round moves those whose i has the round's bit; where
/// each one is now, `at` says, so that nothing is copied but what must lie together.
Plan bruck_alltoall(Rank rank, Rank size) {
  PlanWriter writer(rank, size);
  std::vector<Place> at;
  for (Rank i = 0; i < size; ++i) at.push_back(block(Buffer::input, around(rank + i, size)));
  Copier copier(writer);
  for (std::int64_t bit = 1; bit < size; bit *= 2) {
    std::uint32_t moving = 0;
    for (Rank i = 0; i < size; ++i) moving += (i & bit) != 0;
    const Place out = writer.scratch(moving);
    const Place in = writer.scratch(moving);
    writer.receive(around(rank - bit, size), in);
    Place from{Buffer::scratch, out.first, 1};
    Place to{Buffer::scratch, in.first, 1};
    for (Rank i = 0; i < size; ++i) {
      if ((i & bit) == 0) continue;
      copier.copy(at[static_cast<std::size_t>(i)], from);
      at[static_cast<std::size_t>(i)] = to;
      ++from.first;
      ++to.first;
    }
    copier.flush();
    writer.send(around(rank + bit, size), out);
    writer.wait(around(rank - bit, size));
  }
  // By output; the block from rank o has come all the way from there.
  for (Rank o = 0; o < size; ++o)
    copier.copy(at[static_cast<std::size_t>(around(rank - o, size))], block(Buffer::output, o));
  copier.flush();
  return writer.take();
}

Plan straight_alltoall(Rank rank, Rank size, bool in_place) {
  PlanWriter writer(rank, size);
  const auto blocks = static_cast<std::uint32_t>(size);
  Place from{Buffer::input, 0, blocks};
  Place to{Buffer::output, 0, blocks};
  if (in_place) {
    from = writer.scratch(blocks);
    to = writer.scratch(blocks);
    writer.copy({Buffer::input, 0, blocks}, from);
  }
  const auto part = [](Place whole, Rank index) {
    return Place{whole.buffer, whole.first + static_cast<std::uint32_t>(index), 1};
  };
  for (Rank i = 1; i < size; ++i) {
    writer.receive(around(rank - i, size), part(to, around(rank - i, size)));
    writer.send(around(rank + i, size), part(from, around(rank + i, size)));
  }
  for (Rank i = 1; i < size; ++i) writer.wait(around(rank - i, size));
  writer.copy(part(from, rank), part(to, rank));
  if (in_place) writer.copy(to, {Buffer::output, 0, blocks});
  return writer.take();
}

Plan bruck_allgather(Rank rank, Rank size, bool in_place) {
  PlanWriter writer(rank, size);
  const auto blocks = static_cast<std::uint32_t>(size);
  // Block i is of the rank i further on.
  const Place all = writer.scratch(blocks);
  writer.copy(in_place ? block(Buffer::output, rank) : block(Buffer::input, 0),
              {Buffer::scratch, all.first, 1});
  for (std::uint32_t have = 1; have < blocks; have *= 2) {
    const std::uint32_t more = std::min(have, blocks - have);
    writer.receive(around(std::int64_t{rank} + have, size),
                   {Buffer::scratch, all.first + have, more});
    writer.send(around(std::int64_t{rank} - have, size), {Buffer::scratch, all.first, more});
    writer.wait(around(std::int64_t{rank} + have, size));
  }
  const auto tail = static_cast<std::uint32_t>(size - rank);
  writer.copy({Buffer::scratch, all.first, tail},
              {Buffer::output, static_cast<std::uint32_t>(rank), tail});
  if (rank > 0)
    writer.copy({Buffer::scratch, all.first + tail, blocks - tail},
                {Buffer::output, 0, blocks - tail});
  return writer.take();
}

Plan straight_allgather(Rank rank, Rank size, bool in_place) {
  PlanWriter writer(rank, size);
  const Place own = block(Buffer::output, rank);
  const Place from = in_place ? own : block(Buffer::input, 0);
  for (Rank i = 1; i < size; ++i) {
    writer.receive(around(rank - i, size), block(Buffer::output, around(rank - i, size)));
    writer.send(around(rank + i, size), from);
  }
  if (!in_place) writer.copy(from, own);
  for (Rank i = 1; i < size; ++i) writer.wait(around(rank - i, size));
  return writer.take();
}

}  // namespace

Plan alltoall_plan(Rank rank, Rank size, ExchangeShape shape, bool in_place) {
  return shape == ExchangeShape::bruck ? bruck_alltoall(rank, size)
                                       : straight_alltoall(rank, size, in_place);
}

Plan allgather_plan(Rank rank, Rank size, ExchangeShape shape, bool in_place) {
  return shape == ExchangeShape::bruck ? bruck_allgather(rank, size, in_place)
                                       : straight_allgather(rank, size, in_place);
}

}  // namespace overlap::coll_mq
