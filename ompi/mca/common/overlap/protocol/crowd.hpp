// Do other processes use the processor of the MPI thread, too?
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

namespace overlap {

/// The kernel's accounts at one time, in ns.
struct ProcessorAccount {
  std::uint64_t now_ns = 0;
  std::uint64_t mpi_waited_ns = 0;  ///< the MPI thread was ready to run, and others ran
  std::uint64_t own_ns = 0;         ///< the interrupt thread has run
};

/// On a crowded processor each wake of the interrupt thread takes it from the MPI thread for a time
/// slice: whoever has waited longest for it comes next.
class Crowd {
 public:
  /// From one look to the next.
  static constexpr std::uint64_t interval_ns = 20'000'000;
  /// The MPI thread of a crowded processor waits for more than one part in so many, turns of the
  /// interrupt thread not counted.
  static constexpr std::uint64_t share = 4;

  /// Is it time for the next look?
  [[nodiscard]] bool is_due(std::uint64_t now_ns) const noexcept {
    return !last_ || now_ns - last_->now_ns >= interval_ns;
  }
  /// @param account  nullopt: the kernel has none, or the MPI thread has ended
  void look(const std::optional<ProcessorAccount>& account) noexcept {
    crowded_ = account && last_ &&
               account->mpi_waited_ns - last_->mpi_waited_ns >
                   account->own_ns - last_->own_ns + (account->now_ns - last_->now_ns) / share;
    last_ = account;
  }
  /// What the last look has found.
  [[nodiscard]] bool is_crowded() const noexcept { return crowded_; }

 private:
  std::optional<ProcessorAccount> last_;
  bool crowded_ = false;
};

}  // namespace overlap
