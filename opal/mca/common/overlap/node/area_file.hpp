// The file that holds a node area, and how other processes find it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "opal/mca/common/overlap/descriptor.hpp"
#include "opal/mca/common/overlap/node/layout.hpp"

namespace overlap::node {

/// Where a descriptor of a process is, for other processes of its node. A number of a process or of
/// a descriptor may stand for another one by the time it is used, or on another node or in another
/// container: device and inode tell.
struct DescriptorAddress {
  std::int32_t pid = 0;
  std::int32_t descriptor = -1;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  /// Of a descriptor of this process. @returns  nullopt: the kernel refuses
  [[nodiscard]] static std::optional<DescriptorAddress> of(const Descriptor& own) noexcept;
  /// Open the same file. @param flags  as of open(2)
  /// @returns  none: gone, another file by now, or not permitted (another user, /proc hidden)
  [[nodiscard]] Descriptor open(int flags) const noexcept;
};
static_assert(sizeof(DescriptorAddress) == 24);

/// A mapped area.
class MappedArea {
 public:
  MappedArea() noexcept = default;
  /// Make one for this process: a memory file without a name, of fixed size.
  /// @returns  empty: the kernel refuses
  [[nodiscard]] static MappedArea make() noexcept;
  /// Map another process's. Its size is sealed, so that reading it never fails later.
  /// @returns  empty: not an area, or one of another version
  [[nodiscard]] static MappedArea map(Descriptor file) noexcept;
  MappedArea(MappedArea&& other) noexcept
      : file_(std::move(other.file_)), area_(std::exchange(other.area_, nullptr)) {}
  MappedArea& operator=(MappedArea&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(area_, other.area_);
    return *this;
  }
  MappedArea(const MappedArea&) = delete;
  MappedArea& operator=(const MappedArea&) = delete;
  ~MappedArea();

  [[nodiscard]] Area* get() const noexcept { return area_; }
  [[nodiscard]] Area* operator->() const noexcept { return area_; }
  [[nodiscard]] explicit operator bool() const noexcept { return area_ != nullptr; }
  [[nodiscard]] const Descriptor& file() const noexcept { return file_; }
  /// Of an area of another process nothing but the memory is needed.
  void close_file() noexcept { file_ = Descriptor(); }

 private:
  MappedArea(Descriptor file, Area* area) noexcept : file_(std::move(file)), area_(area) {}

  Descriptor file_;
  Area* area_ = nullptr;
};

}  // namespace overlap::node
