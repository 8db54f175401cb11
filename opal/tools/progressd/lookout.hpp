// How a helper looks after its clients: what it watches, whom it wakes, when it sleeps; over any
// host (P4.1, P4.5, P4.12).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace overlap::progressd {

/// How long a helper looks while nothing comes.
struct Patience {
  std::uint64_t spin_ns = 20'000'000;  ///< while a client is armed
  std::uint64_t linger_ns = 200'000;   ///< after the last one was
  std::uint64_t nap_min_ns = 100'000;  ///< naps double
  std::uint64_t nap_max_ns = 1'000'000;
  std::uint64_t naps_ns = 100'000'000;   ///< all naps together; then it sleeps
  std::uint64_t second_look_ns = 2'000;  ///< from an arrival to the second look at turns
};

/// What came out of taking the arrivals of a client.
enum class Taken : std::uint8_t { nothing, unwanted, wanted };

/// What a helper remembers of a client between two looks.
struct Sight {
  bool armed = false;
  bool pending = false;     ///< something it waits for has arrived; it is looked at a second time
  std::uint32_t turns = 0;  ///< when that was taken
  std::uint64_t since_ns = 0;  ///< the same
  std::uint64_t wakes = 0;     ///< as last seen
};

/// One thread counts, any reads.
class Count {
 public:
  void operator++() noexcept { count_.store(*this + 1, std::memory_order_relaxed); }
  operator std::uint64_t() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_{0};
};

/// What a helper has done. Statistics.
struct Tally {
  Count wakes;     ///< made
  Count polled;    ///< left out: an MPI thread of the process polls and sees it itself
  Count obsolete;  ///< left out: at the second look nobody waited any more
  Count unwanted;  ///< arrivals that nobody waited for
  Count sleeps;
};

/// What the caller of round() does next.
struct Pause {
  enum class Kind : std::uint8_t {
    none,  ///< another round
    nap,   ///< of nap_ns
    sleep  ///< until host's rouse
  };
  Kind kind = Kind::none;
  std::uint64_t nap_ns = 0;
};

/// The loop of a helper. Host supplies the machine, so that a helper and the exhaustive test run
/// the same lines. i in [0, clients()), the same client until the next round:
///   size_t clients()
///   Sight& sight(i)
///   uint64_t now_ns()
///   bool is_armed(i)              its interrupt thread sleeps until something arrives
///   uint64_t wakes(i)             by anybody
///   uint32_t turns(i)             of its MPI threads
///   void watch(i), unwatch(i)     arrivals are left for the helper, and no more; unwatch() is
///                                 ordered before a take() that follows
///   Taken take(i)                 empty its arrivals; the host keeps those that are waited for
///   bool is_still_waited_for(i)   what the host keeps
///   bool wake(i)                  claim it and ring; whether it was there to claim
///   void show_awake(), show_napping(), show_sleeping()   the last is ordered before what follows
///   bool is_called()              there is something else to do than to look
///
///   spinning --nothing for spin_ns, or nobody armed for linger_ns--> napping --naps_ns--> sleeping
///      ^--------------- somebody armed, woken, or something arrived ----'   <---- nudged ----'
///
/// While a helper spins its clients are watched; it says that they are not before it naps.
template <class Host>
class Lookout {
 public:
  Lookout(Host& host, const Patience& patience) : host_(host), patience_(patience) {}

  /// Look at every client once. @returns  what to do until the next round
  [[nodiscard]] Pause round() {
    const std::uint64_t now_ns = host_.now_ns();
    Seen seen;
    for (std::size_t i = 0; i < host_.clients(); ++i) look(i, now_ns, seen);
    if (seen.event) note_event(now_ns);
    if (seen.pending || seen.event) return {};
    if (spinning_ && now_ns - event_ns_ < (seen.armed ? patience_.spin_ns : patience_.linger_ns))
      return {};
    return rest(seen.armed);
  }

  /// After a sleep: somebody has nudged.
  void roused() { note_event(host_.now_ns()); }

  /// Watch nobody any more, and wake those for whom something has been left: the helper is switched
  /// off, or ends, or this client leaves.
  void retire(std::size_t i) {
    Sight& sight = host_.sight(i);
    host_.unwatch(i);
    const bool pending = std::exchange(sight.pending, false);
    if (host_.take(i) == Taken::wanted || pending) wake(i);
    sight = Sight();
  }
  void retire_all() {
    for (std::size_t i = 0; i < host_.clients(); ++i) retire(i);
    spinning_ = false;
  }

  [[nodiscard]] const Tally& tally() const { return tally_; }

 private:
  struct Seen {
    bool event = false;
    bool armed = false;
    bool pending = false;
  };

  void look(std::size_t i, std::uint64_t now_ns, Seen& seen) {
    Sight& sight = host_.sight(i);
    const bool armed = host_.is_armed(i);
    const std::uint64_t wakes = host_.wakes(i);
    seen.event |= (armed && !sight.armed) || wakes != sight.wakes;
    seen.armed |= armed;
    sight.armed = armed;
    sight.wakes = wakes;
    if (spinning_) host_.watch(i);
    if (sight.pending)
      look_again(i, now_ns);
    else
      take(i, now_ns, seen);
    seen.pending |= sight.pending;
  }

  void take(std::size_t i, std::uint64_t now_ns, Seen& seen) {
    const Taken taken = host_.take(i);
    if (taken == Taken::nothing) return;
    seen.event = true;
    if (taken == Taken::unwanted) {
      ++tally_.unwanted;
      return;
    }
    Sight& sight = host_.sight(i);
    sight.pending = true;
    sight.turns = host_.turns(i);
    sight.since_ns = now_ns;
  }

  /// Two turns since the arrival: the later one has begun after it and has seen the message. One
  /// turn may have polled before.
  void look_again(std::size_t i, std::uint64_t now_ns) {
    Sight& sight = host_.sight(i);
    if (host_.turns(i) - sight.turns >= 2) {
      sight.pending = false;
      ++tally_.polled;
      return;
    }
    if (now_ns - sight.since_ns < patience_.second_look_ns) return;
    sight.pending = false;
    if (host_.is_still_waited_for(i))
      wake(i);
    else
      ++tally_.obsolete;
  }

  void wake(std::size_t i) {
    if (host_.wake(i)) ++tally_.wakes;
  }

  void note_event(std::uint64_t now_ns) {
    if (!spinning_) host_.show_awake();
    spinning_ = true;
    event_ns_ = now_ns;
    nap_ns_ = 0;
    napped_ns_ = 0;
  }

  [[nodiscard]] Pause rest(bool armed) {
    if (spinning_ && !stop_spinning()) return {};
    if (armed && napped_ns_ < patience_.naps_ns) {
      nap_ns_ = std::clamp(nap_ns_ * 2, patience_.nap_min_ns, patience_.nap_max_ns);
      napped_ns_ += nap_ns_;
      return {.kind = Pause::Kind::nap, .nap_ns = nap_ns_};
    }
    host_.show_sleeping();  // N3, pairs with N2 of a client that arms itself
    bool called = host_.is_called();
    for (std::size_t i = 0; i < host_.clients(); ++i) {
      called |= host_.is_armed(i) && !host_.sight(i).armed;  // N4, pairs with N1
    }
    if (called) {
      roused();
      return {};
    }
    ++tally_.sleeps;
    return {.kind = Pause::Kind::sleep};
  }

  /// @returns  false: something has been left meanwhile
  [[nodiscard]] bool stop_spinning() {
    Seen seen;
    const std::uint64_t now_ns = host_.now_ns();
    for (std::size_t i = 0; i < host_.clients(); ++i) {
      host_.unwatch(i);
      take(i, now_ns, seen);
    }
    if (seen.event) {
      note_event(now_ns);
      return false;
    }
    spinning_ = false;
    host_.show_napping();
    return true;
  }

  Host& host_;
  Patience patience_;
  bool spinning_ = false;
  std::uint64_t event_ns_ = 0;
  std::uint64_t nap_ns_ = 0;
  std::uint64_t napped_ns_ = 0;
  Tally tally_;
};

}  // namespace overlap::progressd
