// Segments as other processes see them, and what a crashed process leaves.
#include "test/support/catch.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

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
