// Segments in /dev/shm: making, locking, and clearing away what crashed jobs have left.
// SPDX-License-Identifier: BSD-3-Clause
#include "segment.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
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
      (error == ENOSPC || error == ENOMEM
           ? "; make room in /dev/shm (df /dev/shm; in a container give it a larger one, for "
             "instance docker run --shm-size), or use fewer or smaller buffers "
             "(btl_ring_receive_buffers, btl_ring_channel_bytes)"
           : ""));
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
  channel_offset_bytes_ = ring_offset(shape.rings);
  const std::size_t most = std::max(shape.buffers, shape.buffers_max);
  bytes_ = round_up(channel_offset_bytes_ + most * shape.buffer_bytes, page_bytes);
  channel_bytes_ = round_up(std::size_t{shape.buffers} * shape.buffer_bytes, page_bytes);
  create();
  auto* made = new (base_) SegmentHeader;
  made->owner_pid = static_cast<std::uint32_t>(getpid());
  made->segment_bytes = bytes_;
  made->ring_table_offset_bytes = sizeof(SegmentHeader);
  made->channel_offset_bytes = channel_offset_bytes_;
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
  // The time makes the name of a process with a recycled number differ from what its predecessor
  // may have left.
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  path_ = std::string(folder) + "/" + prefix() + std::to_string(getpid()) + "." +
          std::to_string(now.tv_sec * 1000000000LL + now.tv_nsec);
  // A file gets its name when it is locked: without a lock it would look like one that was left.
  descriptor_ = ::open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  if (descriptor_ < 0) fail("btl/ring cannot create a file in " + std::string(folder), errno);
  int error = fill_file();
  if (error == 0) error = name_file();
  if (error == 0) return;
  if (base_ != nullptr) munmap(base_, bytes_);
  ::close(descriptor_);
  const std::size_t needed = rings_offset_bytes_ + channel_bytes_;
  fail("btl/ring cannot have " + std::to_string(needed) + " bytes of shared memory", error);
}

/// @returns  0, or errno
int Segment::name_file() const noexcept {
  std::array<char, 32> own;
  std::snprintf(own.data(), own.size(), "/proc/self/fd/%d", descriptor_);
  return linkat(AT_FDCWD, own.data(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

/// Lock, size, allocate and map the file. @returns  0, or errno
int Segment::fill_file() noexcept {
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 ||
      ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0)
    return errno;
  if (const int error = allocate(0, rings_offset_bytes_); error != 0) return error;
  if (const int error = allocate(channel_offset_bytes_, channel_bytes_); error != 0) return error;
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (at == MAP_FAILED) return errno;
  base_ = static_cast<std::byte*>(at);
  return 0;
}

int Segment::allocate(std::size_t offset, std::size_t bytes) noexcept {
  while (fallocate(descriptor_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

void Segment::give_back(std::size_t offset, std::size_t bytes) noexcept {
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
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

bool Segment::try_reserve(std::uint32_t index) noexcept {
  if (allocate(ring_offset(index), ring_bytes_) == 0) return true;
  give_back(ring_offset(index), ring_bytes_);  // some file systems keep what they had found
  return false;
}

bool Segment::try_add_buffers(std::uint32_t count) noexcept {
  const std::uint32_t buffers = header().channel_buffers + count;
  const std::size_t bytes =
      round_up(std::size_t{buffers} * header().channel_buffer_bytes, page_bytes);
  if (channel_offset_bytes_ + bytes > bytes_) return false;
  const std::size_t at = channel_offset_bytes_ + channel_bytes_;
  const std::size_t more = bytes - channel_bytes_;
  if (more > 0 && allocate(at, more) != 0) {
    give_back(at, more);
    return false;
  }
  channel_bytes_ = bytes;
  __atomic_store_n(&header().channel_buffers, buffers,
                   __ATOMIC_RELAXED);  // the pages read as empty
  return true;
}

void Segment::open(std::uint32_t index, std::uint32_t peer) noexcept {
  area(index).peer = peer;
  __atomic_store_n(&area(index).state, area_state::open,
                   __ATOMIC_RELEASE);  // S2, pairs with H2 of something_arrived()
}

void Segment::close(std::uint32_t index) noexcept {
  __atomic_store_n(&area(index).state, area_state::none, __ATOMIC_RELEASE);
  give_back(ring_offset(index), ring_bytes_);
}

}  // namespace overlap::ring
