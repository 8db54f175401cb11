// Making the memory of a ring, on the client's side.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "layout.hpp"
#include "shared_memory.hpp"

namespace overlap::fabric::soft {

/// Make a ring's memory with its header. @returns  its file  @throws Error(system) naming `what`
template <class Ring>
[[nodiscard]] Descriptor make_ring(std::uint32_t entries, Mapping& mapping, const char* what) {
  Descriptor file = make_memory_file(what, ring_bytes<Ring>(entries));
  if (file) mapping = Mapping::map(file.get(), 0, ring_bytes<Ring>(entries));
  if (!mapping)
    throw Error(Error::Kind::system, std::string("no memory for a ") + what +
                                         " of the software device: " + std::strerror(errno));
  mapping.as<Ring>()->header = AreaHeader{.entries = entries};
  return file;
}

}  // namespace overlap::fabric::soft
