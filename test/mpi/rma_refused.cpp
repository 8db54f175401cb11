// A sandbox that forbids the kernel's copies into other processes, in the middle of a job: what
// has gone by them goes as messages from then on.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "scene.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

namespace {

using namespace overlap::test;

using Word = std::int64_t;

constexpr int origin = 0, target = 1;
constexpr int words = 64, blocks = 16;  // every fourth word

/// One word, blocks with gaps, and a swap of the second word; each ends.
void change(const Window& window, MPI_Datatype every_fourth) {
  const std::vector<Word> ones(blocks, 1);
  Word seen = -1;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
  MPI_Accumulate(ones.data(), 1, MPI_INT64_T, target, window.at(target, 0), 1, MPI_INT64_T, MPI_SUM,
                 window.win);
  MPI_Win_flush(target, window.win);
  MPI_Accumulate(ones.data(), blocks, MPI_INT64_T, target, window.at(target, 0), 1, every_fourth,
                 MPI_SUM, window.win);
  MPI_Win_flush(target, window.win);
  MPI_Fetch_and_op(ones.data(), &seen, MPI_INT64_T, target, window.at(target, sizeof(Word)),
                   MPI_SUM, window.win);
  MPI_Win_flush(target, window.win);
  const Word next = seen + 2;
  Word before = seen + 1;
  MPI_Compare_and_swap(&next, &before, &seen, MPI_INT64_T, target, window.at(target, sizeof(Word)),
                       window.win);
  MPI_Win_flush(target, window.win);
  CHECK(seen == before);
  MPI_Put(ones.data(), blocks, MPI_INT64_T, target, window.at(target, 2 * sizeof(Word)), 1,
          every_fourth, window.win);
  MPI_Win_unlock(target, window.win);
}

/// Two pages, the second of which its owner opens for writing when it writes there itself, as
/// programs do that note which of their pages have changed.
class WatchedPages {
 public:
  static constexpr std::size_t page_bytes = 4096;
  WatchedPages() {
    void* const at =
        mmap(nullptr, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    memory = static_cast<std::byte*>(at);
    second_page = memory + page_bytes;
    struct sigaction action {};
    action.sa_handler = [](int) { mprotect(second_page, page_bytes, PROT_READ | PROT_WRITE); };
    sigaction(SIGSEGV, &action, &before_);
  }
  ~WatchedPages() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(memory, 2 * page_bytes);
  }
  WatchedPages(const WatchedPages&) = delete;
  WatchedPages& operator=(const WatchedPages&) = delete;
  static void watch(int protection = PROT_READ) { mprotect(second_page, page_bytes, protection); }

  std::byte* memory = nullptr;

 private:
  static inline std::byte* second_page = nullptr;
  struct sigaction before_ {};
};

}  // namespace

TEST_CASE("an accumulate whose second page the kernel refuses is applied once") {
  if (size() < 2) return;
  constexpr int count = 2 * WatchedPages::page_bytes / sizeof(Word);
  WatchedPages pages;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(pages.memory, 2 * WatchedPages::page_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                 &win);
  const std::vector<Word> ones(count, 1);
  MPI_Datatype halves = MPI_DATATYPE_NULL;  // of the two pages
  MPI_Type_vector(2, count / 4, count / 2, MPI_INT64_T, &halves);
  MPI_Type_commit(&halves);
  const auto add = [&] {
    MPI_Accumulate(ones.data(), count, MPI_INT64_T, target, 0, count, MPI_INT64_T, MPI_SUM, win);
  };
  MPI_Win_fence(0, win);
  if (rank() == target) WatchedPages::watch();
  MPI_Win_fence(0, win);
  if (rank() == origin) add();
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  if (rank() == target) WatchedPages::watch();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == origin) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    add();
    MPI_Accumulate(ones.data(), count / 2, MPI_INT64_T, target, 0, 1, halves, MPI_SUM, win);
    MPI_Win_unlock(target, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == target) {
    const auto* const found = reinterpret_cast<const Word*>(pages.memory);
    for (int i = 0; i < count; ++i) CHECK(found[i] == (i % (count / 2) < count / 4 ? 3 : 2));
  }
  MPI_Type_free(&halves);
  MPI_Win_free(&win);
}

TEST_CASE("a page that the kernel refuses concerns no other window") {
  if (size() < 2) return;
  const int protection = GENERATE(PROT_NONE, PROT_READ);  // the first one is what is asked first
  WatchedPages pages;
  std::vector<Word> elsewhere(words, 0);
  MPI_Win watched = MPI_WIN_NULL, other = MPI_WIN_NULL;
  MPI_Win_create(pages.memory, 2 * WatchedPages::page_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                 &watched);
  MPI_Win_create(elsewhere.data(), words * sizeof(Word), sizeof(Word), MPI_INFO_NULL,
                 MPI_COMM_WORLD, &other);
  Steps steps;
  const Word seven = 7;
  MPI_Win_fence(0, watched);
  if (rank() == target) WatchedPages::watch(protection);
  MPI_Win_fence(0, watched);
  if (rank() == origin)
    MPI_Put(&seven, 1, MPI_INT64_T, target, WatchedPages::page_bytes, 1, MPI_INT64_T, watched);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, watched);
  if (rank() == origin) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, other);
    MPI_Accumulate(&seven, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, other);
    MPI_Win_unlock(target, other);
    steps.reach(1);
  } else {
    steps.wait_for(1);  // it makes no call of MPI meanwhile
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == target) {
    CHECK(*reinterpret_cast<const Word*>(pages.memory + WatchedPages::page_bytes) == 7);
    CHECK(elsewhere[0] == 7);
  }
  MPI_Win_free(&other);
  MPI_Win_free(&watched);
}

TEST_CASE("Writes of the kernel that are refused go as messages") {
  if (size() < 2) return;
  MPI_Datatype every_fourth = MPI_DATATYPE_NULL;
  MPI_Type_vector(blocks, 1, words / blocks, MPI_INT64_T, &every_fourth);
  MPI_Type_commit(&every_fourth);
  const Window created(words * sizeof(Word), Kind::create);
  const Window dynamic(words * sizeof(Word), Kind::dynamic);
  for (const Window* const window : {&created, &dynamic}) {
    if (rank() == target) std::memset(window->memory, 0, words * sizeof(Word));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  constexpr int rounds = 4;
  for (int round = 0; round < rounds; ++round) {
    if (round == rounds / 2) {
      if (rank() == origin && !forbid(SYS_process_vm_writev)) {
        WARN("this system knows no filters");
        break;
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
    for (const Window* const window : {&created, &dynamic}) {
      if (rank() == origin) change(*window, every_fourth);
      MPI_Barrier(MPI_COMM_WORLD);  // the target takes part
      if (rank() != target) continue;
      Word found[words];
      MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window->win);
      std::memcpy(found, window->memory, sizeof found);
      MPI_Win_unlock(target, window->win);
      INFO(round << ": " << (window == &created ? "created" : "dynamic"));
      CHECK(found[0] == 2 * (round + 1));
      CHECK(found[1] == 2 * (round + 1));
      CHECK(found[2] == 1);
      CHECK(found[3] == 0);
      CHECK(found[4] == round + 1);
      CHECK(found[words - 4] == round + 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Type_free(&every_fourth);
}
