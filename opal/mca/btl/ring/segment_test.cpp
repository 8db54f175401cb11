// Segments as other processes see them, and what a crashed process leaves.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/support/catch.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>
#include <stdexcept>

#include "segment.hpp"

using namespace overlap::ring;

namespace {

constexpr SegmentShape small{
    .rings = 3, .ring_slots = 5, .slot_bytes = 256, .buffers = 8, .buffer_bytes = 512};

/// The segment as another process maps it.
class View {
 public:
  explicit View(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status {};
    REQUIRE(fstat(descriptor_, &status) == 0);
    bytes_ = static_cast<std::size_t>(status.st_size);
    base_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor_, 0);
    REQUIRE(base_ != MAP_FAILED);
  }
  ~View() {
    munmap(base_, bytes_);
    close(descriptor_);
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(base_), bytes_};
  }

 private:
  int descriptor_;
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A process that makes a segment and dies without clearing up. @returns path of what it left
std::string leave_one_behind() {
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const Segment segment(small);
    const bool told = write(pipe_ends[1], segment.path().c_str(), segment.path().size() + 1) > 0;
    _exit(told ? 0 : 1);
  }
  char path[256] = {};
  REQUIRE(read(pipe_ends[0], path, sizeof path - 1) > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  return path;
}

constexpr int no_mounts = 77;

/// Run `body` in a process that has a /dev/shm of its own with so much room.
/// @returns  its wait status; exit status no_mounts where mounting is not allowed
template <class Body>
int run_with_room(const char* size, Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, size) != 0) {
      _exit(no_mounts);
    }
    _exit(body());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

/// @returns  true: this process may not mount, said aloud
bool is_skipped(int status) {
  if (!WIFEXITED(status) || WEXITSTATUS(status) != no_mounts) return false;
  WARN("SKIP: mounting a small /dev/shm needs root");
  return true;
}

}  // namespace

TEST_CASE("another process sees what has arrived in a segment") {
  Segment segment(small);
  const View view(segment.path());
  CHECK_FALSE(something_arrived(view.bytes()));

  const std::uint32_t area = segment.free_area();
  REQUIRE(area == 0);
  const auto set_flag = [](std::byte* at, std::uint8_t flag) { std::memcpy(at, &flag, 1); };
  set_flag(segment.ring(area), flag_value::primary);
  CHECK_FALSE(something_arrived(view.bytes()));  // nobody has opened the ring
  segment.open(area, 7);
  CHECK(something_arrived(view.bytes()));
  CHECK(segment.free_area() == 1);

  segment.area(area).head = 1;
  CHECK_FALSE(something_arrived(view.bytes()));  // the next message will be in another slot

  segment.close(area);
  CHECK(segment.free_area() == 0);
  CHECK(segment.ring(area)[0] == std::byte{0});  // given back, and zero

  set_flag(segment.buffer(7), flag_value::primary);
  CHECK(something_arrived(view.bytes()));
}

TEST_CASE("buffers that are added are seen by others, up to what was planned") {
  SegmentShape shape = small;
  shape.buffers_max = 40;
  Segment segment(shape);
  const View view(segment.path());
  REQUIRE(segment.buffers() == 8);
  const std::uint8_t flag = flag_value::primary;
  REQUIRE(segment.try_add_buffers(30));
  CHECK(segment.buffers() == 38);
  CHECK_FALSE(something_arrived(view.bytes()));
  std::memcpy(segment.buffer(37), &flag, 1);
  CHECK(something_arrived(view.bytes()));
  CHECK_FALSE(segment.try_add_buffers(30));
  CHECK(segment.buffers() == 38);
  CHECK(segment.try_add_buffers(2));
}

TEST_CASE("a segment goes with its owner") {
  std::string path;
  {
    const Segment segment(small);
    path = segment.path();
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("what a crashed process has left is removed, and nothing else") {
  const Segment mine(small);
  const std::string left = leave_one_behind();
  REQUIRE(std::filesystem::exists(left));
  CHECK(remove_stale_segments() >= 1);
  CHECK_FALSE(std::filesystem::exists(left));
  CHECK(std::filesystem::exists(mine.path()));
}

TEST_CASE("a segment that finds no room is refused in words") {
  constexpr SegmentShape large{
      .rings = 3, .ring_slots = 5, .slot_bytes = 256, .buffers = 64, .buffer_bytes = 8192};
  const int status = run_with_room("size=256k", [&]() -> int {
    try {
      Segment segment(large);
      for (std::uint32_t i = 0; i < large.buffers; ++i)
        std::memset(segment.buffer(i), 1, large.buffer_bytes);
      return 1;
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      const bool has_all = text.find("No space left") != std::string::npos &&
                           text.find("/dev/shm") != std::string::npos &&
                           text.find("btl_ring_receive_buffers") != std::string::npos;
      return has_all && std::filesystem::is_empty("/dev/shm") ? 0 : 2;
    }
  });
  if (is_skipped(status)) return;
  REQUIRE(WIFEXITED(status));  // SIGBUS where pages were promised and not there
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a ring that finds no room is not made, the others stay") {
  constexpr SegmentShape three_rings{
      .rings = 3, .ring_slots = 32, .slot_bytes = 2048, .buffers = 4, .buffer_bytes = 1024};
  const int status = run_with_room("size=128k", [&]() -> int {
    Segment segment(three_rings);
    constexpr std::size_t bytes = std::size_t{32} * 2048;
    if (!segment.try_reserve(0)) return 1;
    std::memset(segment.ring(0), 1, bytes);
    if (segment.try_reserve(1)) return 2;
    for (std::uint32_t i = 0; i < three_rings.buffers; ++i) std::memset(segment.buffer(i), 1, 1024);
    segment.close(0);
    if (!segment.try_reserve(1)) return 3;  // what the first one had
    std::memset(segment.ring(1), 1, bytes);
    return 0;
  });
  if (is_skipped(status)) return;
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

// Jobs start while others clear up: a file that is not locked yet looks like one that was left.
TEST_CASE("no segment is removed while it is being made") {
  std::atomic<bool> over{false};
  std::thread scanner([&over] {
    while (!over) remove_stale_segments();
  });
  int removed = 0;
  for (int i = 0; i < 3000; ++i) {
    const Segment segment(small);
    removed += std::filesystem::exists(segment.path()) ? 0 : 1;
  }
  over = true;
  scanner.join();
  CHECK(removed == 0);
}
