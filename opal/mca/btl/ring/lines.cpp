// Memory in whole cache lines that a device writes or reads.
// SPDX-License-Identifier: BSD-3-Clause
#include "lines.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace overlap::ring {

Lines allocate_lines(std::size_t bytes) {
  constexpr std::size_t page_bytes = 4096;
  auto* memory = static_cast<std::byte*>(
      std::aligned_alloc(page_bytes, (bytes + page_bytes - 1) / page_bytes * page_bytes));
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte* p) { std::free(p); }};
}

}  // namespace overlap::ring
