// What pushes and reads have taken, and what is no time of a read.
// SPDX-License-Identifier: BSD-3-Clause
#include "eager_reads.hpp"

namespace overlap::speculative {
namespace {

/// A push, in times of its sender's copy: what the receiver copies is in the sender's cache, which
/// takes it twice as long.
constexpr std::uint64_t push_copies = 3;
/// DONE comes behind the data.
constexpr std::uint64_t done_ns = 300;

/// Who is in MPI begins soon, and copies 2 GB/s at least.
constexpr bool is_late(std::uint64_t bytes, std::uint64_t took_ns) noexcept {
  constexpr std::uint64_t wait_max_ns = 8000;
  return took_ns > wait_max_ns + bytes / 2;
}

}  // namespace

EagerReads::Choice EagerReads::choose(ReadPace& pace, std::uint64_t bytes, bool streams) noexcept {
  if (streams || !pace.may_read()) return {};
  const CopyWay way = ways_.choose(bytes);
  const bool sample = ways_.ends_group();
  return {.way = way, .timed = sample || way == CopyWay::read, .sample = sample};
}

void EagerReads::pushed(std::uint64_t bytes, std::uint64_t took_ns) noexcept {
  ways_.took(CopyWay::fragments, bytes, push_copies * took_ns + done_ns);
}

void EagerReads::read(ReadPace* pace, std::uint64_t bytes, std::uint64_t took_ns,
                      bool is_sample) noexcept {
  const bool late = is_late(bytes, took_ns);
  if (pace != nullptr) pace->end(late);
  if (is_sample && !late) ways_.took(CopyWay::read, bytes, took_ns);
}

}  // namespace overlap::speculative
