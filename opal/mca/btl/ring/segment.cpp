// Segments in /dev/shm: making, locking, and clearing away what crashed jobs have left.
#include "segment.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>

namespace overlap::ring {
namespace {

constexpr const char* folder = "/dev/shm";
constexpr std::size_t page_bytes = 4096;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

std::string prefix() { return "overlap-ring." + std::to_string(getuid()) + "."; }

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::runtime_error(
      what + ": " + std::strerror(error) +
      (error == ENOSPC || error == ENOMEM ? " (is /dev/shm full? df /dev/shm)" : ""));
}

bool remove_if_stale(const std::filesystem::path& path) noexcept {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  const bool nobody = flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  const bool removed = nobody && unlink(path.c_str()) == 0;
  ::close(descriptor);
  return removed;
}

}  // namespace

std::size_t remove_stale_segments() noexcept {
  std::size_t removed = 0;
  try {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.path().filename().string().starts_with(prefix()))
        removed += remove_if_stale(entry.path()) ? 1 : 0;
    }
  } catch (...) {
    // Clearing up is a courtesy; what cannot be looked at stays.
  }
  return removed;
}

Segment::Segment(const SegmentShape& shape)
    : rings_offset_bytes_(round_up(
          sizeof(SegmentHeader) + std::size_t{shape.rings} * sizeof(RingArea), page_bytes)),
      ring_bytes_(
          round_up(std::size_t{shape.ring_slots} * shape.slot_bytes + stagger_lines * line_bytes,
                   page_bytes)) {
  const std::size_t channel_offset = rings_offset_bytes_ + shape.rings * ring_bytes_;
  bytes_ = round_up(channel_offset + std::size_t{shape.buffers} * shape.buffer_bytes, page_bytes);
  create();
  auto* made = new (base_) SegmentHeader;
  made->owner_pid = static_cast<std::uint32_t>(getpid());
  made->segment_bytes = bytes_;
  made->ring_table_offset_bytes = sizeof(SegmentHeader);
  made->channel_offset_bytes = channel_offset;
  made->ring_entries = shape.rings;
  made->channel_buffer_bytes = shape.buffer_bytes;
  made->channel_buffers = shape.buffers;
  for (std::uint32_t i = 0; i < shape.rings; ++i) {
    RingArea& entry = *new (&area(i)) RingArea;
    entry.offset_bytes = static_cast<std::uint64_t>(ring(i) - base_);
    entry.slots = shape.ring_slots;
    entry.slot_bytes = shape.slot_bytes;
  }
  __atomic_store_n(&made->magic, segment_magic,
                   __ATOMIC_RELEASE);  // S1, pairs with H1 of something_arrived()
}

void Segment::create() {
  // The time makes the name of a process with a recycled number differ from what its predecessor may have left.
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  path_ = std::string(folder) + "/" + prefix() + std::to_string(getpid()) + "." +
          std::to_string(now.tv_sec * 1000000000LL + now.tv_nsec);
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor_ < 0) fail("btl/ring cannot create " + path_, errno);
  int error = 0;
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 ||
      ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0) {
    error = errno;
  } else if (void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
             at != MAP_FAILED) {
    base_ = static_cast<std::byte*>(at);
    return;
  } else {
    error = errno;
  }
  unlink(path_.c_str());
  ::close(descriptor_);
  fail("btl/ring cannot map " + std::to_string(bytes_) + " bytes of shared memory", error);
}

Segment::~Segment() {
  unlink(path_.c_str());
  munmap(base_, bytes_);
  ::close(descriptor_);
}

std::uint32_t Segment::free_area() const noexcept {
  for (std::uint32_t i = 0; i < header().ring_entries; ++i) {
    if (area(i).state == area_state::none) return i;
  }
  return UINT32_MAX;
}

void Segment::open(std::uint32_t index, std::uint32_t peer) noexcept {
  area(index).peer = peer;
  __atomic_store_n(&area(index).state, area_state::open,
                   __ATOMIC_RELEASE);  // S2, pairs with H2 of something_arrived()
}

void Segment::close(std::uint32_t index) noexcept {
  __atomic_store_n(&area(index).state, area_state::none, __ATOMIC_RELEASE);
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(rings_offset_bytes_ + index * ring_bytes_),
            static_cast<off_t>(ring_bytes_));
}

}  // namespace overlap::ring
