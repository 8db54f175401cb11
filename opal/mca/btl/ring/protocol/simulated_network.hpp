// A modelled RDMA network for tests: writes that land piece by piece, and messages that do not wait
// for them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "wire.hpp"

namespace overlap::ring::sim {

/// An invariant that does not hold.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void require(bool holds, const char* invariant) {
  if (!holds) throw Violation(invariant);
}

/// splitmix64: the same numbers everywhere from one seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30U) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27U) * 0x94d049bb133111eb;
    return z ^ z >> 31U;
  }
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(next() % bound); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

/// Registered memory. It remembers that it was given back: the device must not touch it then.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : lines_(bytes / line_bytes) {}
  [[nodiscard]] std::byte* data() { return lines_.front().bytes.data(); }
  void give_back() {
    registered_ = false;
    std::fill_n(data(), lines_.size() * line_bytes, std::byte{0xdd});
  }
  [[nodiscard]] bool registered() const { return registered_; }

 private:
  struct alignas(line_bytes) Line {
    std::array<std::byte, line_bytes> bytes{};
  };
  std::vector<Line> lines_;
  bool registered_ = true;
};
using MemoryHandle = std::shared_ptr<Memory>;

/// One entry of a gather list; the device reads the bytes when they go, not before.
struct Piece {
  MemoryHandle memory;
  std::size_t offset;
  std::size_t bytes;
};

/// One RDMA write under way. Its bytes land in the order of their addresses, the last one last.
class Write {
 public:
  Write(std::vector<Piece> from, MemoryHandle to, std::size_t offset)
      : from_(std::move(from)), to_(std::move(to)), offset_(offset) {}

  /// Land up to `count` more bytes. @returns  true at the end
  bool land(std::size_t count) {
    while (piece_ < from_.size()) {
      const Piece& piece = from_[piece_];
      if (at_ == piece.bytes) {
        ++piece_;
        at_ = 0;
        continue;
      }
      if (count-- == 0) return false;
      require(piece.memory->registered(), "the sender's memory stays until the device has read it");
      require(to_->registered(), "the receiver's memory stays while the device may write there");
      to_->data()[offset_++] = piece.memory->data()[piece.offset + at_++];
    }
    return true;
  }
  [[nodiscard]] bool reads(const Memory* memory) const {
    return std::any_of(from_.begin(), from_.end(),
                       [memory](const Piece& piece) { return piece.memory.get() == memory; });
  }

 private:
  std::vector<Piece> from_;
  MemoryHandle to_;
  std::size_t offset_;
  std::size_t piece_ = 0;
  std::size_t at_ = 0;
};

/// A message of the send/receive channel.
struct ChannelMessage {
  MessageHeader header;
  std::vector<std::byte> payload;
  MemoryHandle ring;  ///< what ring_open's address and key stand for
};

/// One direction between two processes. Writes keep their order, messages keep theirs, neither
/// waits for the other: less than a queue pair promises, so what holds here holds there.
struct Link {
  std::deque<Write> writes;
  std::deque<ChannelMessage> messages;

  [[nodiscard]] bool empty() const { return writes.empty() && messages.empty(); }
  [[nodiscard]] bool reads(const Memory* memory) const {
    return std::any_of(writes.begin(), writes.end(),
                       [memory](const Write& write) { return write.reads(memory); });
  }
  void land(std::size_t count) {
    if (!writes.empty() && writes.front().land(count)) writes.pop_front();
  }
};

}  // namespace overlap::ring::sim
