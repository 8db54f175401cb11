// The poster's side: takes work requests from the send queue and sends them in order.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "access_check.hpp"
#include "failures.hpp"
#include "lanes.hpp"
#include "objects.hpp"
#include "schedule.hpp"

namespace overlap::fabric::soft {

inline constexpr std::uint32_t read_depth = 16;  ///< outstanding reads and atomics per queue pair

class Requester {
 public:
  Requester(Host& host, Schedule& schedule, const AccessCheck& access, Lanes& lanes,
            Failures& failures, Retirement& retirement) noexcept
      : host_(host),
        schedule_(schedule),
        access_(access),
        lanes_(lanes),
        failures_(failures),
        retirement_(retirement) {}

  /// The client has posted, or an enable has come: fetch everything that may be executed.
  void fetch(Pair& pair, Time now);
  /// Send what may be sent now.
  void begin(Pair& pair);

 private:
  [[nodiscard]] bool may_start(Pair& pair, const Task& task);
  [[nodiscard]] bool wait_is_over(Pair& pair, Task& task);

  Host& host_;
  Schedule& schedule_;
  const AccessCheck& access_;
  Lanes& lanes_;
  Failures& failures_;
  Retirement& retirement_;
};

}  // namespace overlap::fabric::soft
