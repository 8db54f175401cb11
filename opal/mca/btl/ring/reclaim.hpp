// Room under a limit on registered memory, for what there has to be.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace overlap::ring {

/// Whoever keeps memory registered only for the next time. Where registered memory is limited
/// (`ulimit -l`), it is given up before anything is refused.
class Reclaim {
 public:
  /// Give one registration up that nobody uses. @returns  false: there is none; errno stays
  [[nodiscard]] virtual bool try_reclaim() noexcept = 0;

 protected:
  Reclaim() = default;
  Reclaim(const Reclaim&) = default;
  Reclaim& operator=(const Reclaim&) = default;
  ~Reclaim() = default;
};

}  // namespace overlap::ring
