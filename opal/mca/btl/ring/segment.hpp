// The part of this process's memory that others of the node may look at: receive rings and the
// buffers of the send/receive channel.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "opal/fabric/fabric.hpp"

#include "protocol/wire.hpp"

namespace overlap::ring {

/// What a segment has room for.
struct SegmentShape {
  std::uint32_t rings;
  std::uint32_t ring_slots;
  std::uint32_t slot_bytes;
  std::uint32_t buffers;  ///< of the send/receive channel, at first
  std::uint32_t buffer_bytes;
  std::uint32_t buffers_max = 0;  ///< what try_add_buffers() may lead to
};

/// A file in /dev/shm, laid out as protocol/wire.hpp says. Pages are allocated before they are
/// written to, because a write to a page that /dev/shm has no room for is SIGBUS: table and buffers
/// when the segment is made, each ring by try_reserve().
///
/// The file is locked (flock) before it has a name and as long as its owner lives; files of this
/// user that nobody has locked are what crashed jobs have left, and are removed when the next one
/// is made.
class Segment {
 public:
  /// @throws std::runtime_error  in words, for users
  explicit Segment(const SegmentShape& shape);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// Where a ring begins. Not all at the same place of a page: the flags that a pass over the
  /// polling set reads would share few sets of the cache (docs/design/ring.md).
  [[nodiscard]] std::byte* ring(std::uint32_t area) const noexcept {
    return base_ + ring_offset(area) + area % stagger_lines * line_bytes;
  }
  [[nodiscard]] std::byte* buffer(std::uint32_t index) const noexcept {
    return base_ + header().channel_offset_bytes +
           std::size_t{index} * header().channel_buffer_bytes;
  }
  [[nodiscard]] RingArea& area(std::uint32_t index) const noexcept {
    return reinterpret_cast<RingArea*>(base_ + header().ring_table_offset_bytes)[index];
  }
  /// Where `address` lies in the file, for providers that map it themselves.
  [[nodiscard]] fabric::Backing backing(const std::byte* address) const noexcept {
    return {descriptor_, static_cast<std::uint64_t>(address - base_)};
  }
  /// An area without a ring. @returns UINT32_MAX when all have one
  [[nodiscard]] std::uint32_t free_area() const noexcept;
  /// Allocate the pages of a ring. @returns false: /dev/shm has no room, nothing has changed
  [[nodiscard]] bool try_reserve(std::uint32_t area) noexcept;
  /// Allocate more buffers of the channel, behind those that are there. @returns the same
  [[nodiscard]] bool try_add_buffers(std::uint32_t count) noexcept;
  [[nodiscard]] std::uint32_t buffers() const noexcept { return header().channel_buffers; }
  /// Let others see a ring, after its memory has been zeroed.
  void open(std::uint32_t area, std::uint32_t peer) noexcept;
  /// Hide a ring and give its pages back; they read as zero afterwards.
  void close(std::uint32_t area) noexcept;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  static constexpr std::uint32_t stagger_lines = 32;

  [[nodiscard]] SegmentHeader& header() const noexcept {
    return *reinterpret_cast<SegmentHeader*>(base_);
  }
  void create();
  [[nodiscard]] int fill_file() noexcept;
  [[nodiscard]] int name_file() const noexcept;
  /// @returns  0, or errno
  [[nodiscard]] int allocate(std::size_t offset, std::size_t bytes) noexcept;
  void give_back(std::size_t offset, std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t ring_offset(std::uint32_t area) const noexcept {
    return rings_offset_bytes_ + std::size_t{area} * ring_bytes_;
  }

  std::size_t bytes_;
  std::size_t rings_offset_bytes_;
  std::size_t ring_bytes_;
  std::size_t channel_offset_bytes_;
  std::size_t channel_bytes_;  ///< allocated
  std::string path_;
  int descriptor_ = -1;
  std::byte* base_ = nullptr;
};

/// Remove what crashed processes of this user have left in /dev/shm. @returns files removed
std::size_t remove_stale_segments() noexcept;

}  // namespace overlap::ring
