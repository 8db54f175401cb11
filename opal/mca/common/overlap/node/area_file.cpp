// Node areas as sealed memory files, opened by others through /proc.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/area_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <new>

namespace overlap::node {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

void* map_area(const Descriptor& file) noexcept {
  void* at = mmap(nullptr, sizeof(Area), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

std::optional<DescriptorAddress> DescriptorAddress::of(const Descriptor& own) noexcept {
  struct stat status {};
  if (!own || fstat(own.get(), &status) != 0) return std::nullopt;
  return DescriptorAddress{
      .pid = getpid(), .descriptor = own.get(), .device = status.st_dev, .inode = status.st_ino};
}

Descriptor DescriptorAddress::open(int flags) const noexcept {
  if (pid <= 0 || descriptor < 0) return {};
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, descriptor);
  // Looked at before it is opened: what the number stands for by now may be anything, and opening
  // some files does something.
  struct stat status {};
  const auto is_meant = [&] { return status.st_dev == device && status.st_ino == inode; };
  if (stat(path, &status) != 0 || !is_meant()) return {};
  Descriptor opened(::open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!opened || fstat(opened.get(), &status) != 0 || !is_meant()) return {};
  return opened;
}

MappedArea MappedArea::make() noexcept {
  Descriptor file(memfd_create("overlap-node-area", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || fchmod(file.get(), S_IRUSR | S_IWUSR) != 0) return {};
  if (ftruncate(file.get(), sizeof(Area)) != 0) return {};
  if (fcntl(file.get(), F_ADD_SEALS, seals) != 0) return {};
  void* at = map_area(file);
  if (at == nullptr) return {};
  Area* area = new (at) Area;
  area->magic = area_magic;
  area->version = area_version;
  area->area_bytes = sizeof(Area);
  area->pid = getpid();
  return {std::move(file), area};
}

MappedArea MappedArea::map(Descriptor file) noexcept {
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || status.st_size != sizeof(Area)) return {};
  if ((fcntl(file.get(), F_GET_SEALS) & seals) != seals) return {};
  auto* area = static_cast<Area*>(map_area(file));
  if (area == nullptr) return {};
  MappedArea mapped(std::move(file), area);
  const bool is_known = area->magic == area_magic && area->version == area_version &&
                        area->area_bytes == sizeof(Area);
  return is_known ? std::move(mapped) : MappedArea();
}

MappedArea::~MappedArea() {
  if (area_ != nullptr) munmap(area_, sizeof(Area));
}

}  // namespace overlap::node
