// Field: one-sided communication: windows that are large or many, processes that fork.
// OVERLAP_TEST_LARGE=1: also transfers of more than 2 GiB, which take memory.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

using namespace overlap::test;

namespace {

constexpr std::size_t gib = std::size_t{1} << 30;

/// Bytes of memory that this process has in use.
long resident_bytes() {
  long pages = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  REQUIRE(file != nullptr);
  REQUIRE(std::fscanf(file, "%ld %ld", &pages, &resident) == 2);
  std::fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

/// A window whose memory comes to be where it is touched.
class Sparse {
 public:
  Sparse(std::size_t bytes, bool allocated, int unit) : bytes_(bytes), allocated_(allocated) {
    const auto length = static_cast<MPI_Aint>(bytes);
    if (allocated) {
      MPI_Win_allocate(length, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else {
      void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      REQUIRE(mapped != MAP_FAILED);
      memory = static_cast<unsigned char*>(mapped);
      MPI_Win_create(memory, length, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
  }
  ~Sparse() {
    MPI_Win_free(&win);
    if (!allocated_) munmap(memory, bytes_);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;

  unsigned char* memory = nullptr;
  MPI_Win win = MPI_WIN_NULL;

 private:
  std::size_t bytes_;
  bool allocated_;
};

int right() { return (rank() + 1) % size(); }

}  // namespace

TEST_CASE("Windows of 3 GiB: every call reaches beyond 2 GiB") {
  const bool allocated = GENERATE(false, true);
  const int unit = GENERATE(1, 4096);
  CAPTURE(allocated, unit);
  Sparse window(3 * gib + 8192, allocated, unit);
  constexpr std::size_t page = 4096;
  // On both sides of 2 GiB, and the last bytes.
  for (const std::size_t at : {2 * gib - page, 2 * gib, 3 * gib, 3 * gib + 8192 - page}) {
    const Bytes data = pattern(page, at / page + self());
    Bytes back = empty(page);
    const Word one = 1;
    Word old = -1;
    const auto displacement = static_cast<MPI_Aint>(at) / unit;
    MPI_Win_lock_all(0, window.win);
    MPI_Put(data.data(), page, MPI_BYTE, right(), displacement, page, MPI_BYTE, window.win);
    MPI_Win_flush(right(), window.win);
    MPI_Get(back.data(), page, MPI_BYTE, right(), displacement, page, MPI_BYTE, window.win);
    MPI_Win_flush(right(), window.win);
    MPI_Fetch_and_op(&one, &old, MPI_INT64_T, right(), displacement, MPI_SUM, window.win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, right(), displacement, 1, MPI_INT64_T, MPI_SUM,
                   window.win);
    MPI_Win_unlock_all(window.win);
    CHECK(holds(back, page, at / page + self()));
    Word first = 0;
    std::memcpy(&first, data.data(), sizeof first);
    CHECK(old == first);
    MPI_Barrier(MPI_COMM_WORLD);
    const auto left = static_cast<std::size_t>((rank() + size() - 1) % size());
    MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, window.win);
    const Bytes expected = pattern(page, at / page + left);
    Word wanted = 0, here = 0;
    std::memcpy(&wanted, expected.data(), sizeof wanted);
    std::memcpy(&here, window.memory + at, sizeof here);
    CHECK(here == wanted + 2);
    CHECK(std::memcmp(window.memory + at + 8, &expected[8], page - 8) == 0);
    MPI_Win_unlock(rank(), window.win);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("One transfer of more than 2 GiB") {
  if (setting("OVERLAP_TEST_LARGE", 0) == 0 || size() < 2) return;
  constexpr std::size_t bytes = 2 * gib + 4097;
  const bool allocated = GENERATE(false, true);
  CAPTURE(allocated);
  Sparse window(bytes, allocated, 1);
  MPI_Datatype chunk = MPI_DATATYPE_NULL;
  constexpr int chunk_bytes = 4097;
  MPI_Type_contiguous(chunk_bytes, MPI_BYTE, &chunk);
  MPI_Type_commit(&chunk);
  constexpr auto count = static_cast<int>(bytes / chunk_bytes);
  static_assert(std::size_t{count} * chunk_bytes > 2 * gib);
  const std::size_t marks[] = {0, gib, std::size_t{count} * chunk_bytes - 1};
  if (rank() == 0) {
    auto* const data =
        static_cast<unsigned char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    REQUIRE(data != MAP_FAILED);
    for (std::size_t i = 0; i < std::size(marks); ++i)
      data[marks[i]] = static_cast<unsigned char>(i + 1);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window.win);
    MPI_Put(data, count, chunk, 1, 0, count, chunk, window.win);
    MPI_Win_flush(1, window.win);
    for (const std::size_t mark : marks) data[mark] = 0;
    MPI_Get(data, count, chunk, 1, 0, count, chunk, window.win);
    MPI_Win_unlock(1, window.win);
    for (std::size_t i = 0; i < std::size(marks); ++i) CHECK(data[marks[i]] == i + 1);
    munmap(data, bytes);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 1) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
    for (std::size_t i = 0; i < std::size(marks); ++i) CHECK(window.memory[marks[i]] == i + 1);
    MPI_Win_unlock(1, window.win);
  }
  MPI_Type_free(&chunk);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("One accumulate of more elements than an int counts") {
  if (setting("OVERLAP_TEST_LARGE", 0) == 0) return;
  constexpr std::size_t bytes = 2 * gib;
  Sparse target(bytes, false, 1), origin(bytes, false, 1);
  MPI_Datatype half = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(bytes / 2), MPI_SIGNED_CHAR, &half);
  MPI_Type_commit(&half);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {  // to itself, whose memory it maps
    for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
      target.memory[at] = 1;
      origin.memory[at] = 2;
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, target.win);
    MPI_Accumulate(origin.memory, 2, half, 0, 0, 2, half, MPI_SUM, target.win);
    MPI_Win_unlock(0, target.win);
    for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1})
      CHECK(target.memory[at] == 3);
    CHECK(target.memory[bytes / 2 - 1] == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_free(&half);
}

TEST_CASE("Two ranks have 1000 windows at a time") {
  const int count = size() == 2 ? 1000 : 200;
  std::vector<std::unique_ptr<Array<Word>>> windows;
  for (int i = 0; i < 20; ++i)  // what is made once, is there
    windows.push_back(std::make_unique<Array<Word>>(ranks(), 0, Kind::create));
  std::vector<MPI_Comm> comms(count - 20);
  const long at_first = resident_bytes();
  for (MPI_Comm& each : comms) MPI_Comm_dup(MPI_COMM_WORLD, &each);
  const long before = resident_bytes();
  for (int i = 20; i < count; ++i)
    windows.push_back(std::make_unique<Array<Word>>(ranks(), 0, Kind::create));
  for (int i = 0; i < count; ++i) {
    const Word value = i + 1;
    Array<Word>& window = *windows[static_cast<std::size_t>(i)];
    for (int to = 0; to < size(); ++to) {
      MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window.win);
      put(window, value, to, self());
      MPI_Win_unlock(to, window.win);
    }
  }
  if (rank() == 0)
    std::fprintf(stderr, "  a window that all have accessed: %ld bytes, a communicator: %ld\n",
                 (resident_bytes() - before) / (count - 20), (before - at_first) / (count - 20));
  for (MPI_Comm& each : comms) MPI_Comm_free(&each);
  MPI_Barrier(MPI_COMM_WORLD);
  bool right = true;
  for (int i = 0; i < count; ++i) {
    Array<Word>& window = *windows[static_cast<std::size_t>(i)];
    window.locally([&] {
      for (std::size_t from = 0; from < ranks(); ++from) right = right && window[from] == i + 1;
    });
  }
  CHECK(right);
  MPI_Barrier(MPI_COMM_WORLD);
  // In the order in which they were made; the last one is in use until the end.
  const Word last = 7;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, windows.back()->win);
  put(*windows.back(), last, 0, self());
  for (std::size_t i = 0; i + 1 < windows.size(); ++i) windows[i] = nullptr;
  MPI_Win_unlock(0, windows.back()->win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    for (std::size_t from = 0; from < ranks(); ++from) CHECK(own(*windows.back(), from) == last);
  }
}

TEST_CASE("A child process of fork ends: the window stays as it is") {
  const Kind kind = GENERATE(Kind::create, Kind::allocate, Kind::shared, Kind::dynamic);
  CAPTURE(name_of(kind));
  Array<Word> window(ranks(), 0, kind);
  const Word mine = rank() + 1;
  MPI_Win_lock_all(0, window.win);
  put(window, mine, window.right(), self());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(3);
  add(window, mine, window.right(), self());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 3);
  MPI_Win_unlock_all(window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(own(window, static_cast<std::size_t>(window.left())) == 2 * (window.left() + 1));
}
