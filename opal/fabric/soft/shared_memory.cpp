// Memory files: no name in any file system, gone with their last user.
// SPDX-License-Identifier: BSD-3-Clause
#include "shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace overlap::fabric::soft {

void Descriptor::reset() noexcept {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

Mapping::~Mapping() {
  if (start_ != nullptr) ::munmap(start_, mapped_bytes_);
}

Mapping Mapping::map(int descriptor, std::size_t offset, std::size_t bytes) noexcept {
  Mapping mapping;
  struct stat file {};
  if (::fstat(descriptor, &file) != 0) return mapping;
  const auto size = static_cast<std::size_t>(file.st_size);
  if (bytes == 0 || offset > size || bytes > size - offset) {
    errno = EINVAL;
    return mapping;
  }
  const std::size_t skip = offset % static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* start = ::mmap(nullptr, bytes + skip, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                       static_cast<off_t>(offset - skip));
  if (start == MAP_FAILED) return mapping;
  mapping.start_ = start;
  mapping.mapped_bytes_ = bytes + skip;
  mapping.skip_ = skip;
  return mapping;
}

namespace {
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
}

Descriptor make_memory_file(const char* name, std::size_t bytes) noexcept {
  Descriptor file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return file;
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, seals) != 0)
    file.reset();
  return file;
}

bool is_sealed(int descriptor) noexcept {
  return (::fcntl(descriptor, F_GET_SEALS) & seals) == seals;
}

}  // namespace overlap::fabric::soft
