// Under a limit on locked memory (`ulimit -l`), most of which buffers of large messages hold that
// stay registered for their next use. Right on every BTL, with every limit.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <sys/mman.h>

#include <utility>

using namespace overlap::test;

namespace {

/// Memory that goes back to the system when it is freed: Open MPI notices that.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    at_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at_ != MAP_FAILED);
  }
  ~Pages() {
    if (at_ != nullptr) munmap(at_, bytes_);
  }
  Pages(Pages&& other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  Pages& operator=(Pages&&) = delete;
  [[nodiscard]] void* data() const { return at_; }

 private:
  void* at_;
  std::size_t bytes_;
};

/// Each of them is sent from at rank 0 and received into at rank 1. They stay registered.
std::vector<Pages> exchange_buffers() {
  constexpr std::size_t count = 16, bytes = std::size_t{1} << 20U;
  std::vector<Pages> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    void* const data = buffers.emplace_back(bytes).data();
    if (sender()) {
      fill(data, bytes, i);
      MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, partner(), 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, partner(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      REQUIRE(first_wrong(data, bytes, i) == bytes);
    }
  }
  return buffers;
}

/// With locks, which are atomic operations without a result on some components.
class Window {
 public:
  Window() {
    MPI_Win_allocate(sizeof *word_, sizeof *word_, MPI_INFO_NULL, MPI_COMM_WORLD, &word_, &window_);
    *word_ = 0;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~Window() { MPI_Win_free(&window_); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// @param counts  does this process add? @param sum  of all
  void count(bool counts, long long sum) {
    const long long one = 1;
    for (int i = 0; counts && i < 10; ++i) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window_);
      MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, MPI_SUM, window_);
      MPI_Win_unlock(0, window_);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() != 1) return;
    long long counted = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window_);
    MPI_Get(&counted, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, window_);
    MPI_Win_unlock(0, window_);
    CHECK(counted == sum);
  }

 private:
  long long* word_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace

TEST_CASE("registrations that are kept for the next time make room for others") {
  REQUIRE(size() % 2 == 0);
  const auto buffers = exchange_buffers();
  Window window;
  window.count(true, 10LL * size());
}

TEST_CASE("registrations of memory that has been freed make room for others") {
  REQUIRE(size() % 2 == 0);
  Window window;  // first: what makes it collects them
  exchange_buffers();
  window.count(receiver(), 5LL * size());  // locks of a process's own window collect them, too
}
