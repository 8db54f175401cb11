// The responder's checks: rights, receive entries, atomics.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "access_check.hpp"
#include "data_mover.hpp"
#include "failures.hpp"
#include "objects.hpp"
#include "schedule.hpp"

namespace overlap::fabric::soft {

enum class Admitted : std::uint8_t {
  granted,
  waits,   ///< for a receive entry, or for the end of a process
  failed,  ///< the task has failed
};

/// Decides whether a request that has arrived may be executed.
class Admission {
 public:
  Admission(Host& host, Schedule& schedule, const AccessCheck& access, const DataMover& mover,
            Failures& failures) noexcept
      : host_(host), schedule_(schedule), access_(access), mover_(mover), failures_(failures) {}

  [[nodiscard]] Admitted admit(Pair& pair, Task& task);
  /// Receive entries were posted: a message that waits for one is sent again when its time has
  /// come.
  void try_again_later(Pair& pair);

 private:
  [[nodiscard]] Admitted admit_receive(Pair& pair, Task& task);
  [[nodiscard]] Admitted receive_not_ready(Pair& pair, Task& task);

  Host& host_;
  Schedule& schedule_;
  const AccessCheck& access_;
  const DataMover& mover_;
  Failures& failures_;
};

}  // namespace overlap::fabric::soft
