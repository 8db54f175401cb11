// Field: non-blocking epochs: the seven ways in which ranks wait for each other in one-sided
// communication (P5.2). Rank 0 is early. Its closing call returns a request, and the message that
// lets the others do their part is sent after that: a call that waited would wait for ever.
// SPDX-License-Identifier: BSD-3-Clause
#include "nonblocking.hpp"

using namespace overlap::test;

namespace {

constexpr int early = 0;

/// Run a pattern on windows of every kind, a word per rank.
template <class AtEarly, class AtLate>
void on_every_kind(AtEarly&& at_early, AtLate&& at_late) {
  if (size() < 2) return;
  for (const Kind kind : every_kind) {
    CAPTURE(name_of(kind));
    Array<Word> window(ranks(), -1, kind);
    if (rank() == early)
      at_early(window);
    else
      at_late(window);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/// Rank 0 accesses all others.
void put_to_others(const Array<Word>& window, const Word& value) {
  for (const int other : others()) put(window, value, other, 0);
}

}  // namespace

TEST_CASE("Late Post: an access epoch ends before its targets have posted") {
  const Word value = 1;
  const bool opens_without_waiting = GENERATE(false, true);
  on_every_kind(
      [&](Array<Word>& window) {
        const Group to(window.win, others());
        if (opens_without_waiting)
          finish(request_of(MPIX_Win_istart, to, 0, window.win));
        else
          MPI_Win_start(to, 0, window.win);
        put_to_others(window, value);
        MPI_Request ended = request_of(MPIX_Win_icomplete, window.win);
        CHECK(stays_incomplete(ended));
        tell_others();
        finish(ended);
      },
      [&](Array<Word>& window) {
        const Group from(window.win, {early});
        await(early);
        CHECK(own(window) == -1);
        MPI_Win_post(from, 0, window.win);
        MPI_Win_wait(window.win);
        CHECK(window[0] == value);
      });
}

TEST_CASE("Early Transfer: operations are issued before their target is ready") {
  const Word value = 2;
  on_every_kind(
      [&](Array<Word>& window) {
        const Group to(window.win, others());
        Word fetched = 0;
        finish(request_of(MPIX_Win_istart, to, 0, window.win));
        put_to_others(window, value);
        get(window, fetched, others().back(), 1);
        tell_others();
        MPI_Win_complete(window.win);
        CHECK(fetched == 7);
      },
      [&](Array<Word>& window) {
        const Group from(window.win, {early});
        await(early);
        window.locally([&] { window[1] = 7; });
        finish(request_of(MPIX_Win_ipost, from, 0, window.win));
        MPI_Win_wait(window.win);
        CHECK(window[0] == value);
      });
}

TEST_CASE("Early Wait: an exposure epoch is closed before its origins have started") {
  const Word value = 3;
  on_every_kind(
      [&](Array<Word>& window) {
        const Group from(window.win, others());
        finish(request_of(MPIX_Win_ipost, from, 0, window.win));
        MPI_Request ended = request_of(MPIX_Win_iwait, window.win);
        CHECK(stays_incomplete(ended));
        tell_others();
        finish(ended);
        for (std::size_t i = 1; i < ranks(); ++i) CHECK(window[i] == value);
      },
      [&](Array<Word>& window) {
        const Group to(window.win, {early});
        await(early);
        MPI_Win_start(to, 0, window.win);
        put(window, value, early, self());
        MPI_Win_complete(window.win);
      });
}

TEST_CASE("Late Complete: what an origin does after its operations does not delay its targets") {
  const Word value = 4;
  on_every_kind(
      [&](Array<Word>& window) {
        const Group to(window.win, others());
        finish(request_of(MPIX_Win_istart, to, 0, window.win));
        put_to_others(window, value);
        MPI_Request ended = request_of(MPIX_Win_icomplete, window.win);
        tell_others();
        for (const int other : others()) await(other);  // instead of work: targets are through
        finish(ended);
      },
      [&](Array<Word>& window) {
        const Group from(window.win, {early});
        await(early);
        MPI_Win_post(from, 0, window.win);
        MPI_Win_wait(window.win);
        CHECK(window[0] == value);
        tell(early);
      });
}

TEST_CASE("Early Fence: an epoch is closed before others have issued their operations") {
  const Word value = 5, back = 6;
  on_every_kind(
      [&](Array<Word>& window) {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win);
        put_to_others(window, value);
        MPI_Request ended = request_of(MPIX_Win_ifence, MPI_MODE_NOSUCCEED, window.win);
        CHECK(stays_incomplete(ended));
        tell_others();
        finish(ended);
        for (std::size_t i = 1; i < ranks(); ++i) CHECK(window[i] == back);
      },
      [&](Array<Word>& window) {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win);
        await(early);
        put(window, back, early, self());
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
        CHECK(window[0] == value);
      });
}

TEST_CASE("Wait at Fence: epochs are closed before others have opened them") {
  const Word first = 7, second = 8;
  on_every_kind(
      [&](Array<Word>& window) {
        MPI_Request opened = request_of(MPIX_Win_ifence, MPI_MODE_NOPRECEDE, window.win);
        put_to_others(window, first);
        MPI_Request middle = request_of(MPIX_Win_ifence, 0, window.win);
        put_to_others(window, second);
        MPI_Request ended = request_of(MPIX_Win_ifence, MPI_MODE_NOSUCCEED, window.win);
        CHECK(stays_incomplete(middle));
        CHECK(stays_incomplete(ended));
        tell_others();
        finish(opened);
        finish(middle);
        CHECK(stays_incomplete(ended));
        for (const int other : others()) {
          await(other);
          tell(other);
        }
        finish(ended);
      },
      [&](Array<Word>& window) {
        await(early);
        CHECK(own(window) == -1);
        MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win);
        finish(request_of(MPIX_Win_ifence, 0, window.win));
        // Operations of the second epoch may be here or not.
        tell(early);
        await(early);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
        CHECK(window[0] == second);
      });
}

TEST_CASE("Late Unlock: a lock that another rank keeps delays the epoch, not its program") {
  const Word value = 9;
  const int type = GENERATE(MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED);
  on_every_kind(
      [&](Array<Word>& window) {
        // Rank 0 keeps the lock; here the others are early.
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, early, 0, window.win);
        window[0] = 0;
        tell_others();
        for (const int other : others()) await(other);
        CHECK(window[0] == 0);
        MPI_Win_unlock(early, window.win);
        for (const int other : others()) await(other);
        CHECK(own(window) == value * (size() - 1));
      },
      [&](Array<Word>& window) {
        await(early);
        MPI_Request locked = request_of(MPIX_Win_ilock, type, early, 0, window.win);
        add(window, value, early, 0);
        MPI_Request ended = request_of(MPIX_Win_iunlock, early, window.win);
        CHECK(stays_incomplete(ended));
        tell(early);
        finish(locked);
        finish(ended);
        tell(early);
      });
}

TEST_CASE("Late Unlock: lock_all") {
  const Word value = 10;
  on_every_kind(
      [&](Array<Word>& window) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, early, 0, window.win);
        window[0] = 0;
        tell_others();
        for (const int other : others()) await(other);
        CHECK(window[0] == 0);
        MPI_Win_unlock(early, window.win);
        for (const int other : others()) await(other);
        CHECK(own(window) == value * (size() - 1));
      },
      [&](Array<Word>& window) {
        await(early);
        MPI_Request locked = request_of(MPIX_Win_ilock_all, 0, window.win);
        add(window, value, early, 0);
        MPI_Request ended = request_of(MPIX_Win_iunlock_all, window.win);
        CHECK(stays_incomplete(ended));
        tell(early);
        finish(locked);
        finish(ended);
        tell(early);
      });
}
