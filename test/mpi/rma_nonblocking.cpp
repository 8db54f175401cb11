// Field: non-blocking epochs: each call, mixed with the blocking ones, the requests, what a flush
// covers (P5.1, P5.2).
// SPDX-License-Identifier: BSD-3-Clause
#include "nonblocking.hpp"
#include "scene.hpp"

#include <functional>
#include <initializer_list>

using namespace overlap::test;

namespace {

/// A call that either waits or returns a request, which is collected.
class Calls {
 public:
  Calls(bool opens_without_waiting, bool closes_without_waiting)
      : open_(opens_without_waiting), close_(closes_without_waiting) {}
  template <class Request, class Blocking, class... Arguments>
  void open(Request nonblocking, Blocking blocking, const Arguments&... arguments) {
    make(open_, nonblocking, blocking, arguments...);
  }
  template <class Request, class Blocking, class... Arguments>
  void close(Request nonblocking, Blocking blocking, const Arguments&... arguments) {
    make(close_, nonblocking, blocking, arguments...);
  }
  void finish_all() {
    REQUIRE(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(),
                        MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    requests_.clear();
  }

 private:
  template <class Request, class Blocking, class... Arguments>
  void make(bool without_waiting, Request nonblocking, Blocking blocking,
            const Arguments&... arguments) {
    if (without_waiting)
      requests_.push_back(request_of(nonblocking, arguments...));
    else
      REQUIRE(blocking(arguments...) == MPI_SUCCESS);
  }
  bool open_, close_;
  std::vector<MPI_Request> requests_;
};

/// Run with windows of every kind, a word per rank, and every mixture of calls.
template <class Action>
void on_every_mixture(Action&& action) {
  for (const Kind kind : every_kind) {
    for (const bool open : {false, true}) {
      for (const bool close : {false, true}) {
        CAPTURE(name_of(kind), open, close);
        Array<Word> window(ranks(), -1, kind);
        Calls calls(open, close);
        action(window, calls);
        MPI_Barrier(MPI_COMM_WORLD);
      }
    }
  }
}

}  // namespace

TEST_CASE("Windows of osc/newrma have non-blocking epochs") {
  for (const Kind kind : every_kind) {
    CAPTURE(name_of(kind));
    Array<Word> window(1, 0, kind);
    int flag = -1;
    CHECK(MPIX_Win_nonblocking(window.win, &flag) == MPI_SUCCESS);
    CHECK(flag == 1);
  }
}

TEST_CASE("Start and complete, post and wait") {
  on_every_mixture([](Array<Word>& window, Calls& calls) {
    const Group from(window.win, {window.left()}), to(window.win, {window.right()});
    for (Word turn = 0; turn < 5; ++turn) {
      calls.open(MPIX_Win_ipost, MPI_Win_post, from, 0, window.win);
      calls.open(MPIX_Win_istart, MPI_Win_start, to, 0, window.win);
      const Word value = 10 * turn + rank();
      put(window, value, window.right(), self());
      calls.close(MPIX_Win_icomplete, MPI_Win_complete, window.win);
      calls.close(MPIX_Win_iwait, MPI_Win_wait, window.win);
      calls.finish_all();
      CHECK(window[static_cast<std::size_t>(window.left())] == 10 * turn + window.left());
    }
  });
}

TEST_CASE("A request for the end of an epoch is complete when everything has gone out", "[host]") {
  if (size() < 2) return;
  constexpr int operations = 2000, words = 8;
  Steps steps;
  Array<Word> window(words, 0, Kind::create);
  const std::vector<Word> ones(words, 1);
  MPI_Group world = MPI_GROUP_NULL, other = MPI_GROUP_NULL;
  const int peer = rank() == 0 ? 1 : 0;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &peer, &other);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    MPI_Win_start(other, 0, window.win);
    for (int i = 0; i < operations; ++i)
      MPI_Accumulate(ones.data(), words, MPI_INT64_T, 1, 0, words, MPI_INT64_T, MPI_SUM,
                     window.win);
    MPI_Request request = request_of(MPIX_Win_icomplete, window.win);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    steps.wait_for(1);  // outside MPI
  } else if (rank() == 1) {
    MPI_Win_post(other, 0, window.win);
    compute(std::chrono::milliseconds(5));
    MPI_Win_wait(window.win);
    CHECK(own(window, words - 1) == operations);
    steps.reach(1);
  }
  MPI_Group_free(&other);
  MPI_Group_free(&world);
}

TEST_CASE("Fences") {
  on_every_mixture([](Array<Word>& window, Calls& calls) {
    std::vector<Word> values(6);
    calls.open(MPIX_Win_ifence, MPI_Win_fence, MPI_MODE_NOPRECEDE, window.win);
    for (std::size_t turn = 0; turn < values.size(); ++turn) {
      values[turn] = static_cast<Word>(100 * turn) + rank();
      for (int to = 0; to < size(); ++to) put(window, values[turn], to, self());
      const bool last = turn + 1 == values.size();
      calls.close(MPIX_Win_ifence, MPI_Win_fence, last ? MPI_MODE_NOSUCCEED : 0, window.win);
    }
    calls.finish_all();
    for (std::size_t i = 0; i < ranks(); ++i)
      CHECK(window[i] == static_cast<Word>(100 * (values.size() - 1) + i));
  });
}

TEST_CASE("Locks and unlocks") {
  const int type = GENERATE(MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED);
  on_every_mixture([type](Array<Word>& window, Calls& calls) {
    const Word one = 1;
    window.locally([&] { window[0] = 0; });
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < 5; ++turn) {
      for (int to = 0; to < size(); ++to) {
        calls.open(MPIX_Win_ilock, MPI_Win_lock, type, to, 0, window.win);
        add(window, one, to, 0);
        calls.close(MPIX_Win_iunlock, MPI_Win_unlock, to, window.win);
      }
    }
    calls.finish_all();
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(own(window) == 5 * size());
  });
}

TEST_CASE("Lock_all, unlock_all and flushes") {
  on_every_mixture([](Array<Word>& window, Calls& calls) {
    const int to = window.right();
    const Word first = 1 + rank(), second = 100 + rank();
    Word fetched = -1;
    calls.open(MPIX_Win_ilock_all, MPI_Win_lock_all, 0, window.win);
    put(window, first, to, self());
    calls.close(MPIX_Win_iflush_local, MPI_Win_flush_local, to, window.win);
    calls.close(MPIX_Win_iflush, MPI_Win_flush, to, window.win);
    calls.finish_all();
    get(window, fetched, to, self());
    calls.close(MPIX_Win_iflush_local_all, MPI_Win_flush_local_all, window.win);
    calls.finish_all();
    CHECK(fetched == first);
    put(window, second, to, self());
    calls.close(MPIX_Win_iflush_all, MPI_Win_flush_all, window.win);
    calls.finish_all();
    MPI_Barrier(MPI_COMM_WORLD);  // flushed: the neighbour finds it under a lock of its own
    get(window, fetched, rank(), static_cast<std::size_t>(window.left()));
    calls.close(MPIX_Win_iunlock_all, MPI_Win_unlock_all, window.win);
    calls.finish_all();
    CHECK(fetched == 100 + window.left());
  });
}

TEST_CASE("A fence ends what others did while its rank used locks") {
  // The first fence exposes rank 0 to rank 1; rank 0 itself accesses other memory, by a lock.
  if (size() < 2) return;
  for (const Kind kind : every_kind) {
    CAPTURE(name_of(kind));
    Array<Word> window(ranks(), -1, kind);
    const Word value = 11;
    MPI_Win_fence(0, window.win);
    if (rank() == 0) {
      Word fetched = 0;
      MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
      get(window, fetched, 1, 0);
      MPI_Win_unlock(1, window.win);
      MPI_Request ended = request_of(MPIX_Win_ifence, MPI_MODE_NOSUCCEED, window.win);
      CHECK(stays_incomplete(ended));
      tell(1);
      finish(ended);
      CHECK(window[1] == value);
    } else {
      if (rank() == 1) {
        await(0);
        put(window, value, 0, 1);
      }
      MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Requests are completed by every call of MPI") {
  using Way = std::function<void(MPI_Request&)>;
  const std::initializer_list<Way> ways = {
      [](MPI_Request& request) {
        MPI_Status status;
        REQUIRE(MPI_Wait(&request, &status) == MPI_SUCCESS);
        int count = -1, cancelled = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(count == 0);
        CHECK(cancelled == 0);
      },
      [](MPI_Request& request) {
        int flag = 0;
        while (flag == 0) REQUIRE(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
      },
      [](MPI_Request& request) {
        MPI_Request several[] = {MPI_REQUEST_NULL, request};
        int index = -1;
        REQUIRE(MPI_Waitany(2, several, &index, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(index == 1);
        request = several[1];
      },
      [](MPI_Request& request) {
        int index = MPI_UNDEFINED, flag = 0;
        while (flag == 0)
          REQUIRE(MPI_Testany(1, &request, &index, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(index == 0);
      },
      [](MPI_Request& request) {
        int count = 0, index = -1;
        REQUIRE(MPI_Waitsome(1, &request, &count, &index, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        CHECK(count == 1);
      },
      [](MPI_Request& request) {
        int flag = 0;
        while (flag == 0)
          REQUIRE(MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
      },
      [](MPI_Request& request) {
        REQUIRE(poke_until([&request] { return is_complete(request); }));
        CHECK(request != MPI_REQUEST_NULL);  // MPI_Request_get_status leaves it
        REQUIRE(MPI_Request_free(&request) == MPI_SUCCESS);
      }};
  Array<Word> window(ranks(), -1);
  Word value = 0;
  for (const Way& complete : ways) {
    for (const bool with_sends : {false, true}) {
      value += 1;
      MPI_Request sent = MPI_REQUEST_NULL, received = MPI_REQUEST_NULL;
      Word message = -1;
      if (with_sends) {
        MPI_Irecv(&message, 1, MPI_INT64_T, window.left(), 1, MPI_COMM_WORLD, &received);
        MPI_Isend(&value, 1, MPI_INT64_T, window.right(), 1, MPI_COMM_WORLD, &sent);
      }
      MPI_Request request =
          request_of(MPIX_Win_ilock, MPI_LOCK_SHARED, window.right(), 0, window.win);
      complete(request);
      CHECK(request == MPI_REQUEST_NULL);
      put(window, value, window.right(), 0);
      request = request_of(MPIX_Win_iunlock, window.right(), window.win);
      complete(request);
      CHECK(request == MPI_REQUEST_NULL);
      finish(sent);
      finish(received);
      MPI_Barrier(MPI_COMM_WORLD);
      CHECK(own(window) == value);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
}

TEST_CASE("A freed request of an epoch that cannot end yet: the epoch ends all the same") {
  if (size() < 2) return;
  for (const Kind kind : every_kind) {
    CAPTURE(name_of(kind));
    Array<Word> window(2, -1, kind);
    const Word value = 5;
    if (rank() == 0) {
      const Group to(window.win, {1});
      finish(request_of(MPIX_Win_istart, to, 0, window.win));
      put(window, value, 1, 0);
      MPI_Request freed = request_of(MPIX_Win_icomplete, window.win);
      CHECK(stays_incomplete(freed));
      REQUIRE(MPI_Request_free(&freed) == MPI_SUCCESS);
      tell(1);  // and the window is freed with the epoch under way
    } else if (rank() == 1) {
      const Group from(window.win, {0});
      await(0);
      MPI_Win_post(from, 0, window.win);
      MPI_Request ended = request_of(MPIX_Win_iwait, window.win);
      finish(ended);
      CHECK(window[0] == value);
    }
  }
}

TEST_CASE("Many requests, of which most are freed") {
  Array<Word> window(1, 0);
  const Word one = 1;
  for (int turn = 0; turn < 200; ++turn) {
    MPI_Request requests[] = {
        request_of(MPIX_Win_ilock, MPI_LOCK_EXCLUSIVE, window.right(), 0, window.win),
        MPI_REQUEST_NULL};
    add(window, one, window.right(), 0);
    requests[1] = request_of(MPIX_Win_iunlock, window.right(), window.win);
    REQUIRE(MPI_Request_free(&requests[0]) == MPI_SUCCESS);
    if (turn % 50 == 49)
      finish(requests[1]);
    else
      REQUIRE(MPI_Request_free(&requests[1]) == MPI_SUCCESS);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(own(window) == 200);
}

TEST_CASE("The lock of mapped memory is there when its request is complete, and not before",
          "[host]") {
  if (size() < 2) return;
  const bool all = GENERATE(false, true);
  Array<Word> window(1, -1, Kind::allocate);
  if (rank() == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
    tell_others();
    for (const int other : others()) await(other);
    MPI_Win_unlock(0, window.win);
  } else {
    await(0);
    MPI_Request locked = all ? request_of(MPIX_Win_ilock_all, 0, window.win)
                             : request_of(MPIX_Win_ilock, MPI_LOCK_SHARED, 0, 0, window.win);
    CHECK(stays_incomplete(locked));
    tell(0);
    finish(locked);
    if (all)
      MPI_Win_unlock_all(window.win);
    else
      MPI_Win_unlock(0, window.win);
  }
}

TEST_CASE("A flush covers what was issued before it") {
  // The operation behind the flush goes to a rank whose lock another one keeps.
  if (size() < 2) return;
  const int first = 1, second = size() > 2 ? 2 : 0, holder = size() > 2 ? 2 : 1;
  const bool local = GENERATE(false, true);
  for (const Kind kind : every_kind) {
    CAPTURE(name_of(kind), local);
    Array<Word> window(1, -1, kind);
    if (rank() == holder) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, second, 0, window.win);
    if (rank() == holder) {
      tell(0);
      await(0);
      MPI_Win_unlock(second, window.win);
    }
    if (rank() == 0) {
      const Word one = 1, two = 2;
      await(holder);
      MPI_Request locked = request_of(MPIX_Win_ilock_all, 0, window.win);
      put(window, one, first, 0);
      MPI_Request flushed =
          request_of(local ? MPIX_Win_iflush_local_all : MPIX_Win_iflush_all, window.win);
      put(window, two, second, 0);
      MPI_Request later =
          request_of(local ? MPIX_Win_iflush_local_all : MPIX_Win_iflush_all, window.win);
      CHECK(stays_incomplete(later));
      finish(flushed);
      CHECK(stays_incomplete(later));
      tell(holder);
      finish(later);
      finish(locked);
      MPI_Win_unlock_all(window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == second) CHECK(own(window) == 2);
    if (rank() == first) CHECK(own(window) == 1);
  }
}

TEST_CASE("Flushes of one target complete in the order of their operations") {
  for (const Kind kind : every_kind) {
    CAPTURE(name_of(kind));
    Array<Word> window(2, -1, kind);
    Bytes large = pattern(largest_transfer / 8 * 8, 1);
    Array<unsigned char> wide(large.size(), 0xEE, kind);
    MPI_Request requests[3] = {
        request_of(MPIX_Win_ilock, MPI_LOCK_SHARED, wide.right(), 0, wide.win), MPI_REQUEST_NULL,
        MPI_REQUEST_NULL};
    MPI_Put(large.data(), static_cast<int>(large.size()), MPI_BYTE, wide.right(),
            wide.index(wide.right(), 0), static_cast<int>(large.size()), MPI_BYTE, wide.win);
    requests[1] = request_of(MPIX_Win_iflush, wide.right(), wide.win);
    requests[2] = request_of(MPIX_Win_iflush_local, wide.right(), wide.win);
    MPI_Request ended = request_of(MPIX_Win_iunlock, wide.right(), wide.win);
    finish(ended);  // the end of an epoch is behind its flushes
    for (MPI_Request& each : requests) {
      CHECK(is_complete(each));
      finish(each);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    wide.locally([&] { CHECK(first_wrong(wide.memory, large.size(), 1) == large.size()); });
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Accumulates behind an access epoch and a flush that lasts keep their order", "[host]") {
  if (size() < 2) return;
  constexpr int origin = 0, target = 1;
  constexpr std::chrono::milliseconds a_while(5);
  const Word words[] = {1, 2, 3};
  Steps steps;
  Array<Word> window(1, 0);
  const auto replace = [&](const Word& word) {
    MPI_Accumulate(&word, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_REPLACE, window.win);
  };
  if (rank() == origin) {
    const Group to(window.win, {target});
    MPI_Win_start(to, 0, window.win);
    put(window, words[0], target, 0);
    MPI_Win_complete(window.win);
  } else if (rank() == target) {
    const Group from(window.win, {origin});
    MPI_Win_post(from, 0, window.win);
    MPI_Win_wait(window.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == origin) {
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
    replace(words[0]);
    MPI_Request flush = request_of(MPIX_Win_iflush, target, window.win);
    steps.reach(1);
    steps.wait_for(2);
    replace(words[1]);  // between the answer, which nobody has looked at, and its arrival
    poke(a_while);
    replace(words[2]);
    steps.reach(3);
    finish(flush);
    MPI_Win_unlock(target, window.win);
  } else if (rank() == target) {
    steps.wait_for(1);
    poke(a_while);
    steps.reach(2);
    steps.wait_for(3);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == target) CHECK(own(window) == 3);
}

// The first window's next epoch begins, and gets its lock, where an adapter ends an operation.
TEST_CASE("A lock of another window behind an epoch that ends on its own") {
  constexpr std::size_t words = 131072;
  for (const Kind kind : {Kind::create, Kind::allocate}) {
    CAPTURE(name_of(kind));
    Array<Word> first(words, 3, kind), second(1, 0, kind);
    std::vector<Word> data(words, -1);
    const int to = first.right();
    for (int turn = 0; turn < 20; ++turn) {
      MPI_Win_lock(MPI_LOCK_SHARED, to, 0, first.win);
      MPI_Get(data.data(), words, MPI_INT64_T, to, first.index(to, 0), words, MPI_INT64_T,
              first.win);
      MPI_Request closed = request_of(MPIX_Win_iunlock, to, first.win);
      MPI_Win_lock(MPI_LOCK_SHARED, to, 0, first.win);
      MPI_Win_lock(MPI_LOCK_SHARED, to, 0, second.win);
      MPI_Win_unlock(to, second.win);
      MPI_Win_unlock(to, first.win);
      MPI_Wait(&closed, MPI_STATUS_IGNORE);
      REQUIRE(data == std::vector<Word>(words, 3));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}
