// What the interrupt thread does and when a call must ring for it, over any host.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "ompi/mca/common/overlap/protocol/interrupt_loop.hpp"
#include "ompi/mca/common/overlap/protocol/stays.hpp"
#include "opal/mca/common/overlap/node/layout.hpp"

namespace overlap {

using node::Doze;

/// The interrupt thread's loop and the other side of it, calls that leave MPI.
///
/// Host supplies the machine, so that the thread and the exhaustive test run the same lines:
///   Host::Atomic<T>
///   Atomic<Doze>& doze()       in the node area, where this process has one
///   bool stopping()            the loop is to end; a ring follows
///   bool sleep(Sleep)          until what it says; returns whether it was rung. A ring before the
///                              sleep is not lost. Edges of sockets are taken out in here
///   bool try_lock(), unlock()  the progress lock
///   uint32_t turns()           progress by MPI threads so far; any thread; wraps
///   bool wanted()              a request waits for this process; under the lock
///   Turn turn()                progress once; under the lock
///   fence()                    what has been stored before is visible to all
///   bool look_again(bool in_thread)  poll what can only be polled; returns whether something has
///                              moved; under the lock
///   uint64_t now_ns()          of a clock that only goes forward; any thread
///   bool is_stale()            since the last turn() of the thread, connections have been made,
///                              data was left for a socket that has room, or a copy for the
///                              thread; under the lock
///
/// Ownership
///   doze         the thread writes every value; calls that ring, and neighbours that do (armed ->
///                claimed); take_over(): armed -> napping
///   rung_turns_, taken_over_  calls that ring, under the progress lock
///   ring_is_put_off_          progress lock
///   ring_due_ns_, nap_due_ns_, put_off_by_ns_  MPI threads, under the progress lock, and the
///                thread: hints, by which a timer goes off too early, or once later, at worst
///   seen_turns_  the thread
/// Orders
///   D1 doze.store(parked | armed) under the progress lock, by which the thread has just seen that
///   nothing is wanted or nothing left -> D2 doze.load under the lock, by a call that has changed
///   that. The lock orders the two: a later change sees that it must ring. Other values may be seen
///   late: a nap ends by itself.
///   D3 doze.store(armed), fence before look_again() here; the message before the load of doze by
///   a neighbour (node/wake.hpp): one of the two sees what the other has written. A call that
///   lists a wait while the thread is armed looks again for the same reason.
template <class Host>
class Interruption {
 public:
  /// What one turn has found.
  struct Turn {
    bool moved = false;     ///< messages or pieces of them
    bool readable = false;  ///< there is something to read that the turn has left
    bool blind = false;     ///< something is outstanding that ends without a word
  };

  explicit Interruption(Host& host) noexcept : host_(host) {}

  /// A call is about to leave MPI with something wanted: must it ring after it has left the lock?
  /// @param fresh  since the last call that asked, a request has come that is wanted
  /// @thread  progress lock held
  [[nodiscard]] bool must_ring(bool fresh) noexcept {
    const Doze doze = host_.doze().load(std::memory_order_relaxed);  // D2
    // A nap ends by itself, and who has claimed mostly rings: small messages beside a large one
    // change nothing (P4.12).
    if ((doze == Doze::napping || doze == Doze::claimed) && !fresh) return false;
    // An armed thread need not know of a new request, but of what no descriptor wakes it for.
    if (doze == Doze::armed) {
      if (fresh) {
        host_.fence();
        static_cast<void>(host_.look_again(false));  // D3
      }
      if (!host_.is_stale()) return false;
    }
    if (doze == Doze::awake && !(fresh && ring_is_put_off_)) return false;
    // Claimed: a neighbour, or the helper, has rung or is about to; or it was stopped just there.
    host_.doze().store(Doze::awake, std::memory_order_relaxed);  // one ring is enough
    taken_over_.store(false, std::memory_order_relaxed);
    ring_is_put_off_ = false;
    rung_turns_.store(host_.turns(), std::memory_order_relaxed);
    return true;
  }
  /// After that time the bell rings. @thread  progress lock held
  void note_ring(std::uint32_t delay_ns) noexcept {
    ring_due_ns_.store(host_.now_ns() + delay_ns, std::memory_order_relaxed);
  }

  /// An MPI thread stays inside MPI for some time: what arrives meanwhile it sees itself, and no
  /// neighbour need ring.
  /// @param by_ns  so late may the thread be if that one leaves now, without a word (Stays)
  /// @returns  whether to ring after that time
  /// @thread  progress lock held
  [[nodiscard]] bool take_over(std::uint64_t now_ns, std::uint32_t by_ns) noexcept {
    Doze expected = Doze::armed;
    if (!host_.doze().compare_exchange_strong(expected, Doze::napping, std::memory_order_relaxed))
      return false;
    taken_over_.store(true, std::memory_order_relaxed);
    ring_due_ns_.store(now_ns + by_ns, std::memory_order_relaxed);
    put_off_by_ns_.store(by_ns, std::memory_order_relaxed);
    return true;
  }

  struct PutOff {
    bool ring = false;
    bool nap = false;
  };
  /// An MPI thread stays inside MPI for some time: a wake would only take its processor from it.
  /// @param by_ns  so late may the thread be if that one leaves now (Stays)
  /// @returns  the timers that are to be set to that anew: they would go off in less than half of
  ///           it
  /// @thread  progress lock held
  [[nodiscard]] PutOff put_off(std::uint64_t now_ns, std::uint32_t by_ns) noexcept {
    publish(crowd_ns_, by_ns > InterruptLoop::nap_max_ns ? by_ns : 0);
    if (by_ns > InterruptLoop::nap_max_ns)
      crowded_until_ns_.store(now_ns + Stays::remembered_ns, std::memory_order_relaxed);
    const PutOff result{.ring = is_put_off(ring_due_ns_, now_ns, by_ns),
                        .nap = is_put_off(nap_due_ns_, now_ns, by_ns)};
    if (result.ring) {
      ring_is_put_off_ = true;
      taken_over_.store(true, std::memory_order_relaxed);
    }
    if (result.ring || result.nap) put_off_by_ns_.store(by_ns, std::memory_order_relaxed);
    return result;
  }

  /// The delay of a call's ring. @thread  any
  [[nodiscard]] std::uint32_t ring_delay_ns() const noexcept {
    return ring_delay_ns_.load(std::memory_order_relaxed);
  }

  /// The thread.
  void run() noexcept {
    while (!host_.stopping()) {
      const Look found = look();
      loop_.set_crowd(crowd_ns());
      const Sleep sleep = loop_.next(found);
      publish(ring_delay_ns_, loop_.ring_delay_ns());
      if (sleep.until == Sleep::Until::again) continue;
      if (sleep.until == Sleep::Until::time) {
        nap_due_ns_.store(host_.now_ns() + sleep.nap_ns, std::memory_order_relaxed);
        host_.doze().store(Doze::napping, std::memory_order_relaxed);
      }
      const bool is_rung = host_.sleep(sleep);
      nap_due_ns_.store(0, std::memory_order_relaxed);
      if (is_rung) take_ring();
      // What has arrived comes whether or not somebody stays: who does, reads it.
      if (is_rung || sleep.until == Sleep::Until::time)
        note_put_off(put_off_by_ns_.exchange(0, std::memory_order_relaxed));
      host_.doze().store(Doze::awake, std::memory_order_relaxed);
    }
  }

 private:
  /// What mostly is there already: MPI threads read it.
  static void publish(std::atomic<std::uint32_t>& hint, std::uint32_t value) noexcept {
    if (hint.load(std::memory_order_relaxed) != value) hint.store(value, std::memory_order_relaxed);
  }
  void take_ring() noexcept {
    ring_due_ns_.store(0, std::memory_order_relaxed);
    if (taken_over_.exchange(false, std::memory_order_relaxed)) return;
    loop_.rung();
    // Turns before that call left MPI say nothing of where its thread is now.
    seen_turns_ = rung_turns_.load(std::memory_order_relaxed);
  }

  /// As an MPI thread has said that has stayed inside MPI not long ago.
  [[nodiscard]] std::uint32_t crowd_ns() noexcept {
    const std::uint32_t crowd_ns = crowd_ns_.load(std::memory_order_relaxed);
    if (crowd_ns == 0) return 0;
    return host_.now_ns() > crowded_until_ns_.load(std::memory_order_relaxed) ? 0 : crowd_ns;
  }
  /// Who has put a wake off puts it off again while it stays: now it is outside, or has lost its
  /// processor. Its turns until then say nothing of where it is.
  /// @param by_ns  0: nobody has
  void note_put_off(std::uint32_t by_ns) noexcept {
    if (by_ns == 0) return;
    loop_.was_put_off();
    seen_turns_ = host_.turns();
  }

  /// @param due_ns  0: never
  [[nodiscard]] static bool is_put_off(std::atomic<std::uint64_t>& due_ns, std::uint64_t now_ns,
                                       std::uint32_t by_ns) noexcept {
    const std::uint64_t due = due_ns.load(std::memory_order_relaxed);
    if (due == 0 || due >= now_ns + by_ns / 2) return false;
    due_ns.store(now_ns + by_ns, std::memory_order_relaxed);
    return true;
  }

  /// Try to progress once. An MPI thread that has taken turns since the last look is inside MPI, or
  /// soon will be again: it does the work itself, and a rival would only cost it time (P4.5).
  [[nodiscard]] Look look() noexcept {
    const std::uint32_t turns = host_.turns();
    if (std::exchange(seen_turns_, turns) != turns) return Look::refused;
    if (!host_.try_lock()) return Look::refused;
    const Look found = look_inside();
    host_.unlock();
    return found;
  }

  [[nodiscard]] Look look_inside() noexcept {
    if (!host_.wanted()) {
      host_.doze().store(Doze::parked, std::memory_order_relaxed);  // D1
      return Look::unneeded;
    }
    const Turn turn = host_.turn();
    // What has moved may have left data for a socket that has room.
    if (turn.moved) return Look::moved;
    if (turn.readable) return Look::stalled;
    if (turn.blind) return Look::blind;
    host_.doze().store(Doze::armed, std::memory_order_relaxed);  // D1, D3
    host_.fence();
    if (!host_.look_again(true)) return Look::quiet;
    host_.doze().store(Doze::awake, std::memory_order_relaxed);
    return Look::moved;
  }

  Host& host_;
  InterruptLoop loop_;
  std::uint32_t seen_turns_ = 0;
  bool ring_is_put_off_ = false;
  std::atomic<std::uint64_t> ring_due_ns_{0};               ///< 0: not set; a hint, orders nothing
  std::atomic<std::uint64_t> nap_due_ns_{0};                ///< the same
  std::atomic<std::uint32_t> put_off_by_ns_{0};             ///< since the last wake; the same
  std::atomic<std::uint32_t> crowd_ns_{0};                  ///< the same
  std::atomic<std::uint64_t> crowded_until_ns_{0};          ///< the same
  typename Host::template Atomic<bool> taken_over_{false};  ///< a hint; orders nothing
  typename Host::template Atomic<std::uint32_t> rung_turns_{0};          ///< a hint; orders nothing
  std::atomic<std::uint32_t> ring_delay_ns_{InterruptLoop::nap_min_ns};  ///< a hint; orders nothing
};

}  // namespace overlap
