// When the interrupt thread sleeps, how long, and what wakes it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace overlap {

/// What the interrupt thread has found when it tried to progress once.
enum class Look : std::uint8_t {
  refused,   ///< an MPI thread is progressing: the work is in good hands
  unneeded,  ///< no request waits for this process
  moved,     ///< the turn has moved something, and there may be more
  stalled,   ///< there is something to read, and no message or piece of one has ended
  blind,     ///< what it waits for ends without a word: fragments that are taken out
  quiet      ///< nothing more to do
};

/// How it sleeps until it tries again.
struct Sleep {
  enum class Until : std::uint8_t {
    again,    ///< not at all: only the lock is given back in between
    rung,     ///< an MPI thread rings
    arrival,  ///< a descriptor has something to read, or room again; or an MPI thread rings
    time      ///< nap_ns have passed; or an MPI thread rings
  };
  Until until = Until::rung;
  std::uint32_t nap_ns = 0;  ///< Until::time only

  bool operator==(const Sleep&) const = default;
};

/// The interrupt thread's decisions (P4.3, P4.5, P4.12): it uses no processor time while nobody
/// waits, and leaves the work to an MPI thread that progresses.
///
///   parked --ring--> looking --quiet--> armed --arrival, ring--> looking
///      ^                |  ^
///      +---unneeded-----+  +--time, ring-- napping <--refused, stalled too often-- looking
///
///   look \ sleep   what follows
///   unneeded       parked: until rung
///   quiet          armed: until an arrival
///   moved          again at once, the lock given back in between
///   stalled        the same, so often; then as refused
///   refused, blind napping: twice as long as the last time, from nap_min_ns to longest_ns()
///
/// A nap ends by itself, so an MPI thread that leaves MPI without a word costs a delay and never
/// a lost wake-up. Naps double: the delay is at most about the time that thread was inside.
///
/// A call rings with a delay, which this learns: a program that waits at once would only be
/// disturbed, one that computes is served from nap_min_ns on. A first look after a ring that comes
/// in vain doubles it, one that finds the application outside MPI makes it short again. A delay
/// longer than the computation would come in vain for ever: every probe_interval-th is short.
///
/// On a crowded processor (crowd.hpp) a wake costs the MPI thread a time slice: what comes in vain
/// becomes rare there twice as fast, and up to ten times as rare.
class InterruptLoop {
 public:
  static constexpr std::uint32_t nap_min_ns = 50'000;
  static constexpr std::uint32_t nap_max_ns = 2'000'000;
  static constexpr std::uint32_t crowded_nap_max_ns = 20'000'000;
  /// A descriptor that nobody reads looks like one of which a large message is read piece by piece.
  static constexpr std::uint32_t stalls_max = 4096;
  /// Odd: programs alternate.
  static constexpr std::uint32_t probe_interval = 15;

  void note_crowd(bool crowded) noexcept { crowded_ = crowded; }
  /// @returns  how to sleep after this look
  [[nodiscard]] Sleep next(Look look) noexcept {
    if (std::exchange(first_after_ring_, false)) learn(look);
    switch (look) {
      case Look::unneeded: rest(); return {Sleep::Until::rung, 0};
      case Look::quiet: rest(); return {Sleep::Until::arrival, 0};
      case Look::moved: rest(); return {Sleep::Until::again, 0};
      case Look::stalled:
        if (stalls_ < stalls_max) {
          ++stalls_;
          return {Sleep::Until::again, 0};
        }
        return nap();
      case Look::blind:
      case Look::refused: return nap();
    }
    return nap();
  }
  /// A call has rung: it had new work and has left MPI ring_delay_ns() ago.
  void rung() noexcept {
    rest();
    next_nap_ns_ = ring_delay_ns();
    first_after_ring_ = true;
  }
  /// How long after a call the thread is to wake.
  [[nodiscard]] std::uint32_t ring_delay_ns() const noexcept {
    return probes_ ? nap_min_ns : std::min(learnt_delay_ns_, longest_ns());
  }

 private:
  void learn(Look look) noexcept {
    const bool in_vain = look == Look::refused || look == Look::unneeded;
    const bool probed = std::exchange(probes_, false);
    if (!in_vain) {
      learnt_delay_ns_ = nap_min_ns;
      in_vain_ = 0;
      return;
    }
    if (!probed) learnt_delay_ns_ = std::min(learnt_delay_ns_ * growth(), longest_ns());
    probes_ = ++in_vain_ % probe_interval == 0;
  }
  void rest() noexcept {
    next_nap_ns_ = nap_min_ns;
    stalls_ = 0;
  }
  [[nodiscard]] Sleep nap() noexcept {
    const std::uint32_t nap_ns = std::min(next_nap_ns_, longest_ns());
    next_nap_ns_ = nap_ns * growth();
    return {Sleep::Until::time, nap_ns};
  }

  [[nodiscard]] std::uint32_t longest_ns() const noexcept {
    return crowded_ ? crowded_nap_max_ns : nap_max_ns;
  }
  [[nodiscard]] std::uint32_t growth() const noexcept { return crowded_ ? 4 : 2; }

  bool crowded_ = false;
  std::uint32_t next_nap_ns_ = nap_min_ns;
  std::uint32_t learnt_delay_ns_ = nap_min_ns;
  std::uint32_t in_vain_ = 0;  ///< rings in a row
  bool probes_ = false;        ///< the next ring is short
  std::uint32_t stalls_ = 0;
  bool first_after_ring_ = false;
};

}  // namespace overlap
