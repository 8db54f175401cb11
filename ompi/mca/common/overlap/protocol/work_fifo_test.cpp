// The FIFO of work that waits for room: order, re-entrancy, work that goes or comes back.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/protocol/work_fifo.hpp"

#include <functional>
#include <vector>

#include "test/support/catch.hpp"

using overlap::Work;
using overlap::WorkFifo;

namespace {

struct Piece final : Work {
  int number = 0;
  bool room = true;
  std::vector<int>* taken = nullptr;
  std::function<void()> inside;

  bool try_again() override {
    if (inside) inside();
    if (room) taken->push_back(number);
    return room;
  }
};

struct Pieces {
  std::vector<int> taken;
  Piece pieces[4];
  WorkFifo fifo;

  Pieces() {
    for (int i = 0; i < 4; ++i) {
      pieces[i].number = i;
      pieces[i].taken = &taken;
      fifo.push(pieces[i]);
    }
  }
};

}  // namespace

TEST_CASE("Work leaves the FIFO in order and not beyond the bound of a round") {
  Pieces p;
  CHECK(p.fifo.retry(3) == 3);
  CHECK(p.taken == std::vector<int>{0, 1, 2});
  CHECK(p.fifo.size() == 1);
  CHECK(p.pieces[3].waiting());
  CHECK_FALSE(p.pieces[0].waiting());
  CHECK(p.fifo.retry(3) == 1);
  CHECK(p.fifo.empty());
}

TEST_CASE("Work without room stays in front: nothing overtakes it") {
  Pieces p;
  p.pieces[1].room = false;
  CHECK(p.fifo.retry(10) == 1);
  CHECK(p.fifo.retry(10) == 0);
  CHECK(p.taken == std::vector<int>{0});
  CHECK(p.fifo.size() == 3);
  CHECK(p.pieces[1].waiting());
  p.pieces[1].room = true;
  CHECK(p.fifo.retry(10) == 3);
  CHECK(p.taken == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("A BTL that calls back into its user does not start a second round") {
  Pieces p;
  p.pieces[0].inside = [&p] { CHECK(p.fifo.retry(10) == 0); };
  CHECK(p.fifo.retry(10) == 4);
  CHECK(p.taken == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("Work that is used again inside its own turn goes to the end") {
  Pieces p;
  bool again = false;
  p.pieces[0].inside = [&] {
    if (again) return;
    again = true;
    CHECK_FALSE(p.pieces[0].waiting());
    p.fifo.push(p.pieces[0]);  // its request has completed and was started anew
  };
  CHECK(p.fifo.retry(10) == 5);
  CHECK(p.taken == std::vector<int>{0, 1, 2, 3, 0});
  CHECK(p.fifo.empty());
}

TEST_CASE("Clearing hands every piece out once") {
  Pieces p;
  int dropped = 0;
  p.fifo.clear([&dropped](Work& work) {
    CHECK_FALSE(work.waiting());
    ++dropped;
  });
  CHECK(dropped == 4);
  CHECK(p.fifo.empty());
}
