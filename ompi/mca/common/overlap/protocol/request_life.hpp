// The life of a request: who still needs it when the protocol has ended, MPI has completed it, or
// its user has freed it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cassert>
#include <cstdint>

namespace overlap {

/// Counts who needs a request: the protocol, BTLs and FIFOs that hold a message or the buffer of
/// it, the completion queue, threads that are completing it, and its user.
///
///   idle --start--> active --end--> (held --let_go-->) queued --take--> completing --finish-->
///   idle
///
///   event \ phase   idle     active         held           queued      completing
///   start           active   -              -              -           active (a)
///   hold            -        active         held           -           -
///   let_go          -        active         held | queued  -           -
///   end             -        held | queued  -              -           -
///   end_at_once     -        held | idle    -              -           -
///   take            -        -              -              completing  -
///   finish          idle (b) active (b)     held (b)       queued (b)  idle
///   free            release  (c)            (c)            (c)         (c)
///   (a) a persistent request, started by its completion callback or by a thread that saw it
///   complete (b) such a restart came before the thread that completed the last turn was done with
///   it (c) remembered: finish answers release when nobody needs it any more
///
/// @thread  progress lock held for every call
class RequestLife {
 public:
  enum class Phase : std::uint8_t { idle, active, held, queued, completing };

  /// false: it is under way, and a program that starts it has made a mistake
  [[nodiscard]] bool can_start() const noexcept {
    return phase_ == Phase::idle || phase_ == Phase::completing;
  }
  void start() noexcept {
    assert(can_start());
    phase_ = Phase::active;
    freed_ = false;
  }
  /// A BTL or FIFO keeps a message or the buffer of this request.
  void hold() noexcept {
    assert(phase_ == Phase::active || phase_ == Phase::held);
    ++holds_;
  }
  /// @returns  true: the protocol had ended and this was the last hold; put it into the queue
  [[nodiscard]] bool let_go() noexcept {
    assert(holds_ > 0);
    if (--holds_ > 0 || phase_ != Phase::held) return false;
    phase_ = Phase::queued;
    return true;
  }
  /// The protocol has ended. @returns  true: put it into the completion queue; false: it is held
  [[nodiscard]] bool end() noexcept {
    assert(phase_ == Phase::active);
    phase_ = holds_ > 0 ? Phase::held : Phase::queued;
    return holds_ == 0;
  }
  /// The same where completing needs no queue: no other thread knows it, no callback, not freed.
  /// @returns  true: complete it now; false: it is held
  [[nodiscard]] bool end_at_once() noexcept {
    assert(phase_ == Phase::active);
    phase_ = holds_ > 0 ? Phase::held : Phase::idle;
    return holds_ == 0;
  }
  /// A thread takes it out of the completion queue.
  void take() noexcept {
    assert(phase_ == Phase::queued);
    phase_ = Phase::completing;
    ++completing_threads_;
  }
  /// That thread has completed it. @returns  true: nobody needs it any more, release it
  [[nodiscard]] bool finish() noexcept {
    assert(completing_threads_ > 0);
    if (--completing_threads_ == 0 && phase_ == Phase::completing) phase_ = Phase::idle;
    return releasable();
  }
  /// Its user gives it up. @returns  true: nobody needs it any more, release it
  [[nodiscard]] bool free() noexcept {
    freed_ = true;
    return releasable();
  }

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] bool active() const noexcept { return phase_ == Phase::active; }
  [[nodiscard]] bool freed() const noexcept { return freed_; }
  [[nodiscard]] std::uint32_t holds() const noexcept { return holds_; }

 private:
  [[nodiscard]] bool releasable() const noexcept {
    return freed_ && completing_threads_ == 0 && phase_ == Phase::idle;
  }

  Phase phase_ = Phase::idle;
  bool freed_ = false;
  std::uint16_t completing_threads_ = 0;
  std::uint32_t holds_ = 0;
};

}  // namespace overlap
