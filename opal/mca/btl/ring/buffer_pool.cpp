// Registered buffers of one size that requests take and give back.
// SPDX-License-Identifier: BSD-3-Clause
#include "buffer_pool.hpp"

namespace overlap::ring {

BufferPool::~BufferPool() {
  if (buffers_ != nullptr) memory_.remove(region_);
}

bool BufferPool::try_make() {
  if (buffers_ != nullptr) return false;
  const std::size_t bytes = std::size_t{shape_.buffers} * shape_.buffer_bytes;
  free_.reserve(shape_.buffers);
  Lines made = allocate_lines(bytes);
  region_ = memory_.add(made.get(), bytes, shape_.rights, shape_.what);
  buffers_ = std::move(made);
  for (std::uint32_t i = shape_.buffers; i > 0; --i) free_.push_back(i - 1);
  return true;
}

}  // namespace overlap::ring
