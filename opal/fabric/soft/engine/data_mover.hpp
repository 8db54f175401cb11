// Copies the bytes of messages that have arrived, a piece at a time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "access_check.hpp"
#include "objects.hpp"

namespace overlap::fabric::soft {

/// What became of a piece.
struct Moved {
  enum class Kind : std::uint8_t {
    done,
    failed,  ///< `fault` is the task's status
    held,    ///< a process has ended: Engine::remove_client() ends it with the right words
  };
  Kind kind = Kind::done;
  CompletionStatus fault = CompletionStatus::success;
};

class DataMover {
 public:
  DataMover(Host& host, const AccessCheck& access) noexcept : host_(host), access_(access) {}

  /// Copy the next piece of what is available. Keys are looked up for each piece: memory may have
  /// been deregistered meanwhile.
  [[nodiscard]] Moved move_piece(const Pair& pair, Task& task) const;
  /// Execute an atomic at the peer; the old value goes to the task.
  [[nodiscard]] Moved move_atomic(const Pair& pair, Task& task) const;

 private:
  Host& host_;
  const AccessCheck& access_;
};

}  // namespace overlap::fabric::soft
