// Send buffers that no peer can keep from the others.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "protocol/buffer_shortage.hpp"

#include "buffer_pool.hpp"

namespace overlap::ring {

/// The buffers that messages of the send/receive channel lie in until they have arrived.
///
/// A peer that is outside MPI takes no more messages once its own buffers are full: those that are
/// on their way to it wait with their send buffers for as long as it computes. So what peers hold
/// beyond their shares is never more than one block of the pool, and a peer that holds less than
/// its share gets another block where there is none left and hardly any come back: what is for it,
/// and what it waits for, goes on. The pool has a block and a share for each peer at most.
///
/// @thread  Guard held
class PeerBuffers {
 public:
  using Clock = std::uint64_t (*)() noexcept;
  /// @param memory  outlives it
  /// @param now_ns  of a clock that only goes forward; asked where a buffer is lacking
  PeerBuffers(RegisteredMemory& memory, const BufferPoolShape& shape, Clock now_ns) noexcept
      : now_ns_(now_ns),
        pool_(memory, shape),
        block_(shape.buffers),
        share_(std::max(shape.buffers / 8, 1U)),
        beyond_left_(shape.buffers - share_),
        shortage_(shape.buffers) {}

  /// @param peer  its number
  /// @returns  nullopt: it holds as many as it may have for now
  [[nodiscard]] std::optional<std::uint32_t> try_take(std::uint32_t peer) {
    // Nothing throws when a buffer is taken.
    if (peer >= held_.size()) held_.resize(std::size_t{peer} + 1);
    if (owners_.size() <= pool_.size()) owners_.resize(std::size_t{pool_.size()} + block_);
    const bool beyond = held_[peer] >= share_;
    if (beyond && beyond_left_ == 0) return std::nullopt;
    auto index = pool_.try_take();
    if (!index && !beyond && shortage_.note_wait(now_ns_())) {
      const bool grown = pool_.try_grow();
      shortage_.note_attempt(grown);
      if (grown) index = pool_.try_take();
    }
    if (!index) return std::nullopt;
    owners_[*index] = peer;
    ++held_[peer];
    if (beyond) --beyond_left_;
    return index;
  }
  void give_back(std::uint32_t index) noexcept {
    shortage_.note_returned();
    if (held_[owners_[index]]-- > share_) ++beyond_left_;
    pool_.give_back(index);
  }
  /// A pass of progress: what has come back is seen in it.
  void note_pass() noexcept { shortage_.note_pass(); }
  [[nodiscard]] std::byte* at(std::uint32_t index) noexcept { return pool_.at(index); }
  [[nodiscard]] std::uint32_t local_key(std::uint32_t index) const noexcept {
    return pool_.local_key(index);
  }

 private:
  Clock now_ns_;
  BufferPool pool_;
  std::uint32_t block_;  ///< buffers that the pool makes at a time
  std::uint32_t share_;
  std::uint32_t beyond_left_;          ///< that may still be taken by peers with their share
  std::vector<std::uint32_t> held_;    ///< by number of the peer
  std::vector<std::uint32_t> owners_;  ///< by index, with room for one block more
  BufferShortage shortage_;
};

}  // namespace overlap::ring
