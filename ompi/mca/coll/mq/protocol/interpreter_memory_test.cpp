// After the first ones, barriers allocate nothing.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#include "ompi/mca/coll/mq/protocol/barrier_plan.hpp"
#include "ompi/mca/coll/mq/protocol/interpreter.hpp"
#include "test/support/catch.hpp"

#if defined(__SANITIZE_ADDRESS__)
TEST_CASE("barriers allocate nothing after the first ones") {
  WARN("skipped: AddressSanitizer counts allocations itself");
}
#else
namespace {
std::size_t allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace overlap::coll_mq;

TEST_CASE("barriers allocate nothing after the first ones") {
  const Rank size = 6;
  std::vector<Interpreter> ranks;
  PlanId barrier = 0;
  for (Rank r = 0; r < size; ++r) {
    ranks.emplace_back(4);
    barrier = ranks.back().add(barrier_plan(r, size));
  }
  std::size_t before = 0;
  for (Cookie i = 0; i < 1000; ++i) {
    if (i == 100) before = allocations;
    for (Interpreter& rank : ranks) rank.start(barrier, i);
    for (std::size_t ended = 0; ended < ranks.size();) {
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        while (const auto action = ranks[r].advance()) {
          if (action->kind == Action::Kind::finished) {
            ++ended;
            continue;
          }
          // One in seven finds no room.
          if ((i + r) % 7 == 0 && ranks[r].counts().stalled < i) {
            ranks[r].retry(*action);
            continue;
          }
          static_cast<void>(ranks[static_cast<std::size_t>(action->peer)].arrived(
              static_cast<Rank>(r), action->message));
        }
        ranks[r].room();
      }
    }
  }
  const std::size_t after = allocations;
  CHECK(after == before);
}

}  // namespace
#endif
