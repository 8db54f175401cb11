// What carries one collective: in a call that blocks, or with a request of MPI's.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll_mq.hpp"

#include <atomic>

#include "ompi/mca/common/overlap/protocol/request_life.hpp"

#include "coll_mq_buffers.hpp"
#include "protocol/interpreter.hpp"

namespace overlap::coll_mq {

class Communicator;
class Stream;
struct Request;

/// One collective under way: until its plan has ended and its messages have left the process.
///
/// @thread  progress lock held, but where said otherwise
class Execution {
 public:
  explicit Execution(Request* request = nullptr) noexcept : request_(request) {}
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  void start() noexcept {
    over_.store(false, std::memory_order_relaxed);
    error_ = MPI_SUCCESS;
    life.start();
  }
  /// Its plan has ended.
  void end(Outcome outcome);
  /// One of its messages has left the process.
  void let_go();
  /// @thread  any
  [[nodiscard]] bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }

  /// Of one that is over. @thread  any
  [[nodiscard]] int error() const noexcept { return error_; }

  [[nodiscard]] Cookie cookie() noexcept { return reinterpret_cast<Cookie>(this); }
  [[nodiscard]] static Execution& of(Cookie cookie) noexcept {
    return *reinterpret_cast<Execution*>(cookie);
  }

  /// A message did not fit: the program's counts differ between ranks.
  void note_truncated() noexcept { error_ = MPI_ERR_TRUNCATE; }

  RequestLife life;
  Buffers buffers;

 private:
  void finish();

  Request* request_;
  int error_ = MPI_SUCCESS;
  /// O1 set under the lock (release) -> O2 read by the call that blocks (acquire).
  std::atomic<bool> over_{false};
};

/// The first member is what MPI knows: its bindings keep references to operations and types there.
///
/// @thread  progress lock held, but where said otherwise
struct Request {
  ompi_coll_base_nbc_request_t base;
  Execution execution;
  Communicator* communicator;
  Stream* stream;  ///< of its own, if persistent
  PlanId plan;

  [[nodiscard]] ompi_request_t& ompi() noexcept { return base.super; }

  /// One that holds the communicator. Throws std::bad_alloc.
  [[nodiscard]] static Request& make(Communicator& communicator, bool persistent);
  /// Make it active; the caller starts its collective.
  void activate() noexcept;
  /// It ends: an MPI thread completes it.
  void end();
};

/// Give up the requests that are kept for use. @thread  MPI_Finalize
void drop_kept_requests() noexcept;

}  // namespace overlap::coll_mq
