// The receive buffers of the send/receive channel, which all peers share.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "opal/fabric/fabric.hpp"

#include "protocol/receive_pool.hpp"

#include "registered_memory.hpp"
#include "segment.hpp"

namespace overlap::ring {

struct ReceiveBuffersShape {
  std::uint32_t first;  ///< buffers to begin with
  std::uint32_t max;
  std::uint32_t buffer_bytes;
};

/// The buffers lie in the segment, each is posted or holds a message. There are more when senders
/// have nearly used them up, and a few for each connection.
///
/// @thread  Guard held
class ReceiveBuffers {
 public:
  /// All three outlive it. @throws fabric::Error
  ReceiveBuffers(fabric::Device& device, RegisteredMemory& memory, Segment& segment,
                 const ReceiveBuffersShape& shape)
      : memory_(memory),
        segment_(segment),
        shape_(shape),
        queue_(device.make_receive_queue(shape.max)),
        pool_(shape.first, shape.max) {}
  ~ReceiveBuffers();
  ReceiveBuffers(const ReceiveBuffers&) = delete;
  ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;

  [[nodiscard]] std::byte* at(std::uint32_t index) const noexcept { return segment_.buffer(index); }
  [[nodiscard]] fabric::ReceiveQueue& queue() noexcept { return *queue_; }
  [[nodiscard]] std::uint32_t max() const noexcept { return shape_.max; }

  void connected() noexcept { pool_.connected(); }
  void disconnected() noexcept { pool_.disconnected(); }
  /// A message has come.
  void taken() noexcept { pool_.taken(); }
  /// No further message was waiting.
  void drained() noexcept { pool_.drained(); }

  /// Add as many as it takes now, often none; the first ones have to be.
  void grow() {
    if (const std::uint32_t wanted = pool_.wanted(); wanted > 0) [[unlikely]]
      add(wanted);
  }
  /// The message in this buffer is done with.
  void repost(std::uint32_t index);

 private:
  /// Buffers that were added together, and so registered.
  struct Chunk {
    std::uint32_t end;  ///< index behind the last one
    fabric::MemoryRegion region;
  };

  void add(std::uint32_t count);
  [[nodiscard]] bool try_add(std::uint32_t count);

  RegisteredMemory& memory_;
  Segment& segment_;
  ReceiveBuffersShape shape_;
  std::unique_ptr<fabric::ReceiveQueue> queue_;
  ReceivePool pool_;
  std::vector<Chunk> chunks_;  // in the order of their buffers
};

}  // namespace overlap::ring
