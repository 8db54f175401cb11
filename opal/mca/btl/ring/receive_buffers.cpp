// The receive buffers of the send/receive channel, which all peers share.
// SPDX-License-Identifier: BSD-3-Clause
#include "receive_buffers.hpp"

#include <algorithm>
#include <cstring>

#include "work_id.hpp"

namespace overlap::ring {

ReceiveBuffers::~ReceiveBuffers() {
  for (Chunk& chunk : chunks_) memory_.remove(chunk.region);
}

void ReceiveBuffers::repost(std::uint32_t index) {
  std::byte* const memory = at(index);
  std::memset(memory, 0, sizeof(MessageHeader));  // empty, for those who look at the segment
  const auto chunk = std::find_if(chunks_.begin(), chunks_.end(),
                                  [index](const Chunk& each) { return index < each.end; });
  const fabric::Status status = queue_->post(make_id(IdKind::receive, index), memory,
                                             shape_.buffer_bytes, chunk->region.local_key);
  // A broken device has reported that; its buffers are of no more use.
  if (status != fabric::Status::done && status != fabric::Status::broken)
    memory_.refuse("a receive buffer", shape_.buffer_bytes);
}

void ReceiveBuffers::add(std::uint32_t count) {
  if (try_add(count)) {
    pool_.grown(count);
  } else if (pool_.size() > 0) {
    pool_.stop();
  } else {
    memory_.refuse("the receive buffers of the send/receive channel",
                   std::size_t{count} * shape_.buffer_bytes);
  }
}

bool ReceiveBuffers::try_add(std::uint32_t count) {
  const std::uint32_t first = pool_.size();
  const std::uint32_t end = first + count;
  if (end > segment_.buffers() && !segment_.try_add_buffers(end - segment_.buffers())) return false;
  std::byte* const memory = at(first);
  chunks_.push_back({end, {}});
  const auto region = memory_.try_add(memory, std::size_t{count} * shape_.buffer_bytes,
                                      fabric::access::local_write, segment_.backing(memory));
  if (!region) {
    chunks_.pop_back();
    return false;
  }
  chunks_.back().region = *region;
  for (std::uint32_t i = first; i < end; ++i) repost(i);
  return true;
}

}  // namespace overlap::ring
