// Executes management queues: waits and enables, in order.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "completion_queues.hpp"
#include "directory.hpp"
#include "failures.hpp"
#include "objects.hpp"
#include "requester.hpp"
#include "schedule.hpp"

namespace overlap::fabric::soft {

/// The only writer of Manager::state. Nothing is executed while a completion is being counted: an
/// alarm is set, for the same moment at the earliest, so that no step is taken inside another.
class Management {
 public:
  Management(Host& host, Schedule& schedule, Directory& directory, CompletionQueues& queues,
             Failures& failures, Requester& requester, Steps& steps) noexcept
      : host_(host),
        schedule_(schedule),
        directory_(directory),
        queues_(queues),
        failures_(failures),
        requester_(requester),
        steps_(steps) {}

  /// The client has posted lists.
  void ring(Manager& manager, Time now);
  /// The queue that it waits for has counted or has broken.
  void look(Manager& manager);
  /// The head's time is over.
  void execute(Manager& manager);
  /// It goes. Lists that have not ended are not reported: their completion queue goes, too.
  void stop(Manager& manager) noexcept;

 private:
  void begin_next(Manager& manager);
  void begin(Manager& manager);
  [[nodiscard]] bool enable_sends(const Manager& manager);
  [[nodiscard]] bool enable_receives(const Manager& manager);
  [[nodiscard]] Pair* pair_of(const Manager& manager);
  void fail(Manager& manager, CompletionStatus status);
  void flush(Manager& manager);

  Host& host_;
  Schedule& schedule_;
  Directory& directory_;
  CompletionQueues& queues_;
  Failures& failures_;
  Requester& requester_;
  Steps& steps_;
};

}  // namespace overlap::fabric::soft
