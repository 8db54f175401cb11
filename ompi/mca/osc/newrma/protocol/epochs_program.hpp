// For tests: programs of several ranks with one-sided epochs.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "epochs.hpp"

namespace overlap::newrma::model {

struct ModelOp;

/// An epoch of a program: an access epoch's `nth` is its number for each pair.
struct Plan {
  EpochKind kind{};
  Rank rank = 0;
  std::vector<Rank> group;
  std::map<Rank, std::size_t> nth;
  std::size_t fence = 0;  ///< number of the call that opens it
  LockType type{};
  bool no_check = false;
  std::size_t opened_at = 0, closed_at = 0;  ///< steps; 0: not yet
  bool ended = false;
  std::vector<ModelOp*> ops;
};

enum class Mode : std::uint8_t { message, transfer, fetch };

struct ModelOp : Operation {
  Plan* plan = nullptr;
  Rank target = 0;
  Mode mode{};
  bool started = false, sent = false, applied = false, done = false;
};

enum class Do : std::uint8_t {
  fence,
  start,
  complete,
  post,
  wait,
  test,
  lock,
  unlock,
  lock_all,
  unlock_all,
  flush,
  flush_all,
  op,
  await  ///< all that has been asked for
};

struct Step {
  Do what{};
  Plan* plan = nullptr;  ///< opened, closed or used
  Plan* next = nullptr;  ///< of a fence
  bool no_precede = false;
  Rank target = 0;
  bool blocks = false;
  bool local = false;
  ModelOp* op = nullptr;
};

struct Program {
  Rank count = 2;
  Reorder reorder{};
  std::set<std::pair<Rank, Rank>> maps;  ///< who maps whose lock
  std::deque<Plan> plans;
  std::deque<ModelOp> ops;
  std::vector<std::vector<Step>> steps;  ///< [rank]
};

}  // namespace overlap::newrma::model
