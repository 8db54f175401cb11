// schedstat.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/run_delay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>

namespace overlap::node {

std::optional<std::uint64_t> run_delay_in(std::string_view schedstat) noexcept {
  const std::size_t blank = schedstat.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const char* const begin = schedstat.data() + blank + 1;
  const char* const end = schedstat.data() + schedstat.size();
  std::uint64_t ns = 0;
  const auto [behind, error] = std::from_chars(begin, end, ns);
  if (error != std::errc{} || behind == end || *behind != ' ') return std::nullopt;
  return ns;
}

bool RunDelay::open(int thread) noexcept {
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/schedstat", thread);
  file_ = Descriptor(::open(path.data(), O_RDONLY | O_CLOEXEC));
  return ns().has_value();
}

std::optional<std::uint64_t> RunDelay::ns() const noexcept {
  if (!file_) return std::nullopt;
  std::array<char, 128> line;
  const ssize_t bytes = pread(file_.get(), line.data(), line.size(), 0);
  if (bytes <= 0) return std::nullopt;
  return run_delay_in({line.data(), static_cast<std::size_t>(bytes)});
}

}  // namespace overlap::node
