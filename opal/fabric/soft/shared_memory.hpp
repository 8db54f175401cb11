// Descriptors and mappings that close themselves.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

namespace overlap::fabric::soft {

/// An open file descriptor.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { reset(); }

  void reset() noexcept;
  [[nodiscard]] int get() const noexcept { return number_; }
  [[nodiscard]] explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// A shared mapping of a file in memory.
class Mapping {
 public:
  Mapping() noexcept = default;
  Mapping(Mapping&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)),
        mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
        skip_(other.skip_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(skip_, other.skip_);
    return *this;
  }
  ~Mapping();

  /// Map bytes of a descriptor for reading and writing. @returns  empty with errno set when the
  /// file is too short or the system refuses
  [[nodiscard]] static Mapping map(int descriptor, std::size_t offset, std::size_t bytes) noexcept;

  [[nodiscard]] explicit operator bool() const noexcept { return start_ != nullptr; }
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(start_) + skip_; }
  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return reinterpret_cast<T*>(data());
  }

 private:
  void* start_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::size_t skip_ = 0;  ///< from the page's begin
};

/// Make a zeroed memory file that nobody can shrink any more: a peer that maps it cannot be hurt by
/// its other owner.
/// @returns  empty with errno set on failure
[[nodiscard]] Descriptor make_memory_file(const char* name, std::size_t bytes) noexcept;

/// Was it made like that?
[[nodiscard]] bool is_sealed(int descriptor) noexcept;

}  // namespace overlap::fabric::soft
