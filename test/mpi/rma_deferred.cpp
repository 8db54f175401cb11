// Field: non-blocking epochs: epochs behind one that is closed and cannot end keep the order of the
// program, unless an info key lets them pass (P5.2, P5.3).
// SPDX-License-Identifier: BSD-3-Clause
#include "nonblocking.hpp"
#include "scene.hpp"

using namespace overlap::test;

namespace {

constexpr const char* keys[] = {"access_after_access", "access_after_exposure",
                                "exposure_after_exposure", "exposure_after_access"};

/// A word per rank, -1, and one info key set, or nullptr: none.
class Keyed {
 public:
  explicit Keyed(const char* key) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    if (key != nullptr) MPI_Info_set(info, key, "true");
    MPI_Win_create(words_.data(), static_cast<MPI_Aint>(words_.size() * sizeof(Word)), sizeof(Word),
                   info, MPI_COMM_WORLD, &win);
    MPI_Info_free(&info);
  }
  ~Keyed() {
    if (std::uncaught_exceptions() == 0) MPI_Win_free(&win);
  }
  Keyed(const Keyed&) = delete;
  Keyed& operator=(const Keyed&) = delete;

  void put(const Word& value, int to) const {
    MPI_Put(&value, 1, MPI_INT64_T, to, rank(), 1, MPI_INT64_T, win);
  }
  [[nodiscard]] Word from(int origin) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank(), 0, win);
    const Word value = words_[static_cast<std::size_t>(origin)];
    MPI_Win_unlock(rank(), win);
    return value;
  }

  MPI_Win win = MPI_WIN_NULL;

 private:
  std::vector<Word> words_ = std::vector<Word>(ranks(), -1);
};

bool is_key(const char* key, const char* name) {
  return key != nullptr && std::string(key) == name;
}

/// Every key alone, and none.
std::vector<const char*> each_key() {
  std::vector<const char*> result(std::begin(keys), std::end(keys));
  result.push_back(nullptr);
  return result;
}

/// What rank 0 opened second ends before the first epoch can, or it stays.
void expect_order(MPI_Request& later, bool passes) {
  if (passes)
    finish(later);
  else
    CHECK(stays_incomplete(later));
}

}  // namespace

TEST_CASE("A lock behind an access epoch that cannot end: its operations do not land before") {
  if (size() < 2) return;
  const Word first = 1, second = 2, third = 3;
  for (const Kind kind : every_kind) {
    for (const int type : {MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE}) {
      CAPTURE(name_of(kind), type);
      Array<Word> window(3, -1, kind);
      if (rank() == 0) {
        const Group to(window.win, {1});
        std::vector<MPI_Request> requests;
        requests.push_back(request_of(MPIX_Win_istart, to, 0, window.win));
        put(window, first, 1, 0);
        requests.push_back(request_of(MPIX_Win_icomplete, window.win));
        // Of mapped memory the lock's request waits, too.
        requests.push_back(request_of(MPIX_Win_ilock, type, 1, 0, window.win));
        put(window, second, 1, 0);
        put(window, second, 1, 1);
        requests.push_back(request_of(MPIX_Win_iunlock, 1, window.win));
        requests.push_back(request_of(MPIX_Win_ilock, type, size() - 1, 0, window.win));
        put(window, third, size() - 1, 2);
        requests.push_back(request_of(MPIX_Win_iunlock, size() - 1, window.win));
        for (const std::size_t closed : {1, 3, 5}) CHECK(stays_incomplete(requests[closed]));
        tell(1);
        REQUIRE(MPI_Waitall(static_cast<int>(requests.size()), requests.data(),
                            MPI_STATUSES_IGNORE) == MPI_SUCCESS);
      } else if (rank() == 1) {
        const Group from(window.win, {0});
        await(0);
        for (std::size_t i = 0; i < 3; ++i) CHECK(own(window, i) == -1);
        MPI_Win_post(from, 0, window.win);
        MPI_Win_wait(window.win);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank() == 1) {
        CHECK(own(window, 0) == second);
        CHECK(own(window, 1) == second);
      }
      if (rank() == size() - 1) CHECK(own(window, 2) == third);
    }
  }
}

TEST_CASE("A blocking epoch behind a closed one waits for it") {
  if (size() < 2) return;
  const Word first = 1, second = 2;
  for (const Kind kind : every_kind) {
    CAPTURE(name_of(kind));
    Array<Word> window(1, -1, kind);
    if (rank() == 0) {
      const Group to(window.win, {1});
      finish(request_of(MPIX_Win_istart, to, 0, window.win));
      put(window, first, 1, 0);
      MPI_Request ended = request_of(MPIX_Win_icomplete, window.win);
      CHECK(stays_incomplete(ended));
      tell(1);
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window.win);
      put(window, second, 1, 0);
      MPI_Win_unlock(1, window.win);
      CHECK(is_complete(ended));  // the order of the program
      finish(ended);
    } else if (rank() == 1) {
      const Group from(window.win, {0});
      await(0);
      MPI_Win_post(from, 0, window.win);
      MPI_Win_wait(window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 1) CHECK(own(window) == second);
  }
}

TEST_CASE("Access epochs one behind the other match the posts in order") {
  if (size() < 2) return;
  constexpr std::size_t epochs = 4;
  for (const Kind kind : every_kind) {
    CAPTURE(name_of(kind));
    Array<Word> window(epochs, -1, kind);
    std::vector<Word> values(epochs);
    if (rank() == 0) {
      const Group to(window.win, {1});
      std::vector<MPI_Request> ended(epochs);
      for (std::size_t i = 0; i < epochs; ++i) {
        values[i] = static_cast<Word>(i);
        finish(request_of(MPIX_Win_istart, to, 0, window.win));
        put(window, values[i], 1, i);
        ended[i] = request_of(MPIX_Win_icomplete, window.win);
      }
      for (std::size_t i = 0; i < epochs; ++i) {
        CHECK(stays_incomplete(ended[i]));
        tell(1);
        finish(ended[i]);
      }
    } else if (rank() == 1) {
      const Group from(window.win, {0});
      for (std::size_t i = 0; i < epochs; ++i) {
        await(0);
        finish(request_of(MPIX_Win_ipost, from, 0, window.win));
        MPI_Win_wait(window.win);
        for (std::size_t j = 0; j < epochs; ++j)
          CHECK(window[j] == (j <= i ? static_cast<Word>(j) : -1));
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Exposure epochs one behind the other") {
  if (size() < 2) return;
  const Word value = 3;
  for (const Kind kind : every_kind) {
    CAPTURE(name_of(kind));
    Array<Word> window(ranks(), -1, kind);
    if (rank() == 0) {
      std::vector<MPI_Request> ended;
      for (const int origin : others()) {
        const Group from(window.win, {origin});
        finish(request_of(MPIX_Win_ipost, from, 0, window.win));
        ended.push_back(request_of(MPIX_Win_iwait, window.win));
      }
      // From the last to the first: nobody passes.
      for (int origin = size() - 1; origin > 0; --origin) {
        tell(origin);
        for (const MPI_Request each : ended) CHECK(stays_incomplete(each));
        if (origin > 1) await(origin);
      }
      tell(1);
      REQUIRE(MPI_Waitall(size() - 1, ended.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS);
      for (std::size_t i = 1; i < ranks(); ++i) CHECK(window[i] == value);
    } else {
      const Group to(window.win, {0});
      await(0);
      if (rank() == 1) await(0);
      finish(request_of(MPIX_Win_istart, to, 0, window.win));
      put(window, value, 0, self());
      MPI_Request ended = request_of(MPIX_Win_icomplete, window.win);
      if (rank() > 1) tell(0);
      finish(ended);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Epochs of every kind one behind the other, closed before the first can end") {
  const bool has_neighbour = size() > 1;
  if (!has_neighbour) return;
  for (const Kind kind : every_kind) {
    CAPTURE(name_of(kind));
    Array<Word> window(1, 0, kind);
    const Word one = 1;
    const Group from(window.win, {window.left()}), to(window.win, {window.right()});
    std::vector<MPI_Request> requests;
    const auto keep = [&requests](MPI_Request request) { requests.push_back(request); };
    for (int turn = 0; turn < 3; ++turn) {
      keep(request_of(MPIX_Win_ipost, from, 0, window.win));
      keep(request_of(MPIX_Win_istart, to, 0, window.win));
      add(window, one, window.right(), 0);
      keep(request_of(MPIX_Win_icomplete, window.win));
      keep(request_of(MPIX_Win_iwait, window.win));
      keep(request_of(MPIX_Win_ilock, MPI_LOCK_SHARED, window.right(), 0, window.win));
      add(window, one, window.right(), 0);
      keep(request_of(MPIX_Win_iunlock, window.right(), window.win));
      keep(request_of(MPIX_Win_ilock_all, 0, window.win));
      add(window, one, window.right(), 0);
      keep(request_of(MPIX_Win_iflush, window.right(), window.win));
      keep(request_of(MPIX_Win_iunlock_all, window.win));
      keep(request_of(MPIX_Win_ifence, MPI_MODE_NOPRECEDE, window.win));
      add(window, one, window.right(), 0);
      keep(request_of(MPIX_Win_ifence, MPI_MODE_NOSUCCEED, window.win));
    }
    std::shuffle(requests.begin(), requests.end(), std::mt19937(static_cast<unsigned>(rank())));
    for (MPI_Request& each : requests) finish(each);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(own(window) == 12);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Info keys: access behind access") {
  if (size() < 2) return;
  const Word first = 1, second = 2;
  for (const char* key : each_key()) {
    CAPTURE(key != nullptr ? key : "none");
    Keyed window(key);
    const bool passes = is_key(key, "access_after_access");
    const int other = size() - 1;
    if (rank() == 0) {
      const Group to(window.win, {1});
      finish(request_of(MPIX_Win_istart, to, 0, window.win));
      window.put(first, 1);
      MPI_Request earlier = request_of(MPIX_Win_icomplete, window.win);
      finish(request_of(MPIX_Win_ilock, MPI_LOCK_SHARED, other, 0, window.win));
      window.put(second, other);
      MPI_Request later = request_of(MPIX_Win_iunlock, other, window.win);
      expect_order(later, passes);
      CHECK(stays_incomplete(earlier));
      tell(1);
      finish(earlier);
      finish(later);
    } else if (rank() == 1) {
      const Group from(window.win, {0});
      await(0);
      if (other == 1) CHECK(window.from(0) == (passes ? second : -1));
      MPI_Win_post(from, 0, window.win);
      MPI_Win_wait(window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 1 && other != 1) CHECK(window.from(0) == first);
    if (rank() == other && other != 1) CHECK(window.from(0) == second);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Info keys: access behind exposure") {
  if (size() < 2) return;
  const Word first = 1, second = 2;
  for (const char* key : each_key()) {
    CAPTURE(key != nullptr ? key : "none");
    Keyed window(key);
    const bool passes = is_key(key, "access_after_exposure");
    const int other = size() - 1;
    if (rank() == 0) {
      const Group from(window.win, {1});
      finish(request_of(MPIX_Win_ipost, from, 0, window.win));
      MPI_Request earlier = request_of(MPIX_Win_iwait, window.win);
      finish(request_of(MPIX_Win_ilock, MPI_LOCK_SHARED, other, 0, window.win));
      window.put(second, other);
      MPI_Request later = request_of(MPIX_Win_iunlock, other, window.win);
      expect_order(later, passes);
      CHECK(stays_incomplete(earlier));
      tell(1);
      finish(earlier);
      finish(later);
    } else if (rank() == 1) {
      const Group to(window.win, {0});
      await(0);
      if (other == 1) CHECK(window.from(0) == (passes ? second : -1));
      MPI_Win_start(to, 0, window.win);
      window.put(first, 0);
      MPI_Win_complete(window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) CHECK(window.from(1) == first);
    if (rank() == other) CHECK(window.from(0) == second);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Info keys: exposure behind access, exposure behind exposure") {
  if (size() < 3) return;  // rank 1 is late in the first epoch, rank 2 takes part in the second
  const Word first = 1, second = 2;
  const bool behind_access = GENERATE(false, true);
  for (const char* key : each_key()) {
    CAPTURE(key != nullptr ? key : "none", behind_access);
    Keyed window(key);
    const bool passes =
        is_key(key, behind_access ? "exposure_after_access" : "exposure_after_exposure");
    if (rank() == 0) {
      const Group late(window.win, {1}), ready(window.win, {2});
      MPI_Request earlier = MPI_REQUEST_NULL;
      if (behind_access) {
        finish(request_of(MPIX_Win_istart, late, 0, window.win));
        window.put(first, 1);
        earlier = request_of(MPIX_Win_icomplete, window.win);
      } else {
        finish(request_of(MPIX_Win_ipost, late, 0, window.win));
        earlier = request_of(MPIX_Win_iwait, window.win);
      }
      finish(request_of(MPIX_Win_ipost, ready, 0, window.win));
      MPI_Request later = request_of(MPIX_Win_iwait, window.win);
      expect_order(later, passes);
      CHECK(stays_incomplete(earlier));
      tell(1);
      finish(earlier);
      finish(later);
    } else if (rank() == 1) {
      const Group zero(window.win, {0});
      await(0);
      if (behind_access) {
        MPI_Win_post(zero, 0, window.win);
        MPI_Win_wait(window.win);
        CHECK(window.from(0) == first);
      } else {
        MPI_Win_start(zero, 0, window.win);
        window.put(first, 0);
        MPI_Win_complete(window.win);
      }
    } else if (rank() == 2) {
      const Group zero(window.win, {0});
      MPI_Win_start(zero, 0, window.win);
      window.put(second, 0);
      MPI_Win_complete(window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) CHECK(window.from(2) == second);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Info keys: an access epoch ends while messages of an earlier one wait for room",
          "[host]") {
  if (size() < 3) return;
  constexpr int target = 1, computes = 2;
  const bool waits = !direct() && !interrupts();  // for the one that computes
  const bool requests = GENERATE(false, true);
  CAPTURE(requests);
  const std::vector<Word> many(std::size_t{8} << 17U, 5);
  std::vector<Word> taken(rank() == computes ? many.size() : 0, 0);
  MPI_Win large = MPI_WIN_NULL;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "access_after_access", "true");
  MPI_Win_create(taken.data(), static_cast<MPI_Aint>(taken.size() * sizeof(Word)), sizeof(Word),
                 info, MPI_COMM_WORLD, &large);
  MPI_Info_free(&info);
  Steps steps;
  if (rank() == 0) {
    const Group to(large, {target});
    const int count = static_cast<int>(many.size());
    MPI_Win_lock(MPI_LOCK_SHARED, computes, 0, large);
    MPI_Accumulate(many.data(), 1, MPI_INT64_T, computes, 0, 1, MPI_INT64_T, MPI_SUM, large);
    MPI_Win_flush(computes, large);  // it has the lock
    steps.reach(1);
    steps.wait_for(2);
    MPI_Accumulate(many.data(), count, MPI_INT64_T, computes, 0, count, MPI_INT64_T, MPI_REPLACE,
                   large);
    MPI_Request earlier = request_of(MPIX_Win_iunlock, computes, large);
    CHECK((!waits || stays_incomplete(earlier)));
    MPI_Win_start(to, 0, large);
    if (requests)
      finish(request_of(MPIX_Win_icomplete, large));
    else
      MPI_Win_complete(large);
    CHECK((!waits || !is_complete(earlier)));
    steps.reach(3);
    finish(earlier);
  } else if (rank() == target) {
    const Group from(large, {0});
    MPI_Win_post(from, 0, large);
    MPI_Win_wait(large);
  } else if (rank() == computes) {
    while (steps.now() < 1) poke(microseconds(300));
    steps.reach(2);
    steps.wait_for(3);
  }
  MPI_Win_free(&large);
  if (rank() == computes) CHECK(taken == many);
}

TEST_CASE("Info keys let no lock_all and no fence pass") {
  if (size() < 2) return;
  const Word first = 1, second = 2;
  Keyed window("access_after_access");
  if (rank() == 0) {
    const Group to(window.win, {1});
    finish(request_of(MPIX_Win_istart, to, 0, window.win));
    window.put(first, 1);
    MPI_Request earlier = request_of(MPIX_Win_icomplete, window.win);
    MPI_Request locked = request_of(MPIX_Win_ilock_all, 0, window.win);
    window.put(second, 1);
    MPI_Request later = request_of(MPIX_Win_iunlock_all, window.win);
    CHECK(stays_incomplete(later));
    CHECK(stays_incomplete(earlier));
    tell(1);
    finish(earlier);
    finish(locked);
    finish(later);
  } else if (rank() == 1) {
    const Group from(window.win, {0});
    await(0);
    CHECK(window.from(0) == -1);
    MPI_Win_post(from, 0, window.win);
    MPI_Win_wait(window.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 1) CHECK(window.from(0) == second);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("MPI_Win_get_info shows the keys as they were given") {
  for (const char* given : each_key()) {
    Keyed window(given);
    MPI_Info info = MPI_INFO_NULL;
    MPI_Win_get_info(window.win, &info);
    for (const char* key : keys) {
      char value[8] = "";
      int found = 0;
      MPI_Info_get(info, key, sizeof value - 1, value, &found);
      CAPTURE(key);
      CHECK(found == 1);
      CHECK(std::string(value) == (is_key(given, key) ? "true" : "false"));
    }
    MPI_Info_free(&info);
  }
}
