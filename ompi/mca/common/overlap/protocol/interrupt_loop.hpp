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
///   refused, blind napping: twice as long as the last time, from nap_min_ns to nap_max_ns
///
/// A nap ends by itself, so an MPI thread that leaves MPI without a word costs a delay and never
/// a lost wake-up. Naps double: the delay is at most about the time that thread was inside. One
/// that stays inside puts their end off (Interruption::put_off), by about that time. Where others
/// use its processor, each wake takes the processor from it for a time slice: it puts them off by
/// more than nap_max_ns then (Stays), and naps behind a refusal are as long.
///
/// A call rings with a delay, which this learns: a program that waits at once would only be
/// disturbed, one that computes is served from nap_min_ns on. A first look after a ring that comes
/// in vain doubles it, one that finds the application outside MPI makes it short again. A delay
/// longer than the computation would come in vain for ever: about every probe_interval-th is short.
class InterruptLoop {
 public:
  static constexpr std::uint32_t nap_min_ns = 50'000;
  static constexpr std::uint32_t nap_max_ns = 2'000'000;
  static constexpr std::uint32_t put_off_max_ns = 20'000'000;
  /// A descriptor that nobody reads looks like one of which a large message is read piece by piece.
  static constexpr std::uint32_t stalls_max = 4096;
  /// Rings in vain from one short one to the next, on average.
  static constexpr std::uint32_t probe_interval = 15;

  /// @returns  how to sleep after this look
  [[nodiscard]] Sleep next(Look look) noexcept {
    if (std::exchange(first_after_ring_, false)) learn_delay(look);
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
      case Look::blind: next_nap_ns_ = std::min(next_nap_ns_, nap_max_ns); return nap();
      case Look::refused: next_nap_ns_ = std::max(next_nap_ns_, crowd_ns_); return nap();
    }
    return nap();
  }
  /// A call has rung: it had new work and has left MPI ring_delay_ns() ago.
  void rung() noexcept {
    rest();
    next_nap_ns_ = ring_delay_ns();
    first_after_ring_ = true;
  }
  /// An MPI thread inside MPI has put the wake off: it is another nap that follows.
  void was_put_off() noexcept { next_nap_ns_ = nap_min_ns; }
  /// @param put_off_ns  others use the processor of that thread (Stays::crowd_ns); 0: none do
  void set_crowd(std::uint32_t put_off_ns) noexcept { crowd_ns_ = put_off_ns; }
  /// How long after a call the thread is to wake.
  [[nodiscard]] std::uint32_t ring_delay_ns() const noexcept {
    return probes_ ? nap_min_ns : learnt_delay_ns_;
  }

 private:
  [[nodiscard]] static bool in_vain(Look look) noexcept {
    return look == Look::refused || look == Look::unneeded;
  }
  void learn_delay(Look look) noexcept {
    const bool probed = std::exchange(probes_, false);
    if (!in_vain(look)) {
      learnt_delay_ns_ = nap_min_ns;
      until_probe_ = probe_interval;
      return;
    }
    if (!probed) learnt_delay_ns_ = std::min(learnt_delay_ns_ * 2, nap_max_ns);
    if (--until_probe_ != 0) return;
    probes_ = true;
    dice_ = dice_ * 1'664'525U + 1'013'904'223U;
    until_probe_ = probe_interval - 3 + (dice_ >> 29U);
  }
  void rest() noexcept {
    next_nap_ns_ = nap_min_ns;
    stalls_ = 0;
  }
  [[nodiscard]] Sleep nap() noexcept {
    const std::uint32_t nap_ns = next_nap_ns_;
    next_nap_ns_ = std::max(std::min(nap_ns * 2, nap_max_ns), crowd_ns_);
    return {Sleep::Until::time, nap_ns};
  }

  std::uint32_t next_nap_ns_ = nap_min_ns;
  std::uint32_t learnt_delay_ns_ = nap_min_ns;
  std::uint32_t until_probe_ = probe_interval;  ///< rings in vain
  std::uint32_t dice_ = 1;  ///< not a fixed interval: programs repeat themselves
  std::uint32_t crowd_ns_ = 0;
  bool probes_ = false;  ///< the next ring is short
  std::uint32_t stalls_ = 0;
  bool first_after_ring_ = false;
};

}  // namespace overlap
