// What each side remembers of an envelope: a bounded table per peer (P1.8, P1.11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "adaptation.hpp"
#include "intrusive.hpp"
#include "operations.hpp"

namespace overlap::speculative {

/// An RTR that waits at the sender for its send.
struct KeptRtr {
  Handle receive = 0;
  std::uint64_t capacity_bytes = 0;
  std::uint32_t position = 0;  ///< number of the message it is for, see SendEnvelope::sent
  RemoteMemory memory;
};

/// The sender's side of one envelope.
struct SendEnvelope {
  Link link;
  Link age;
  std::int32_t tag = 0;
  std::deque<KeptRtr> kept;
  Adaptation adaptation;
  std::uint32_t sent =
      0;  ///< envelope_sequence: messages sent while RTRs are kept; the next one has this number

  /// eager_flag: how far a stop-RTR has come (P1.8).
  enum class Phase : std::uint8_t {
    open,      ///< RTRs may be used
    draining,  ///< stop-RTR is out; RTRs that arrive may be for an eager message and are dropped
    drained,   ///< every RTR sent before the stop has arrived and is dropped; the next RTS resumes
  };
  Phase phase = Phase::open;
  bool eager_flag = false;  ///< an eager message went out since the last resume
  std::uint32_t awaiting_rtrs =
      0;  ///< RTSs whose receive has answered with neither RTR nor RTS-ACK
  std::uint16_t hazard_epoch =
      0;  ///< counts drains, so that a late RTS-ACK is not taken for a new one

  /// Nothing would go wrong if this were forgotten.
  [[nodiscard]] bool forgettable() const noexcept {
    return kept.empty() && !eager_flag && phase == Phase::open && awaiting_rtrs == 0 &&
           hazard_epoch == 0;
  }
};

/// The receiver's side of one envelope.
struct ReceiveEnvelope {
  Link link;
  Link age;
  std::int32_t tag = 0;
  bool hazard_stopped = false;       ///< by stop-RTR
  bool adaptation_stopped = false;   ///< by the sender's adaptation
  bool muted = false;                ///< by itself: the RTRs go to eager messages (P1.9)
  std::uint32_t mispredictions = 0;  ///< in a row
  std::uint32_t revokes_out = 0;     ///< not yet confirmed

  [[nodiscard]] bool may_offer() const noexcept {
    return !hazard_stopped && !adaptation_stopped && !muted && revokes_out == 0;
  }
  [[nodiscard]] bool forgettable() const noexcept { return !hazard_stopped && revokes_out == 0; }
};

/// @param may_forget  false: a tag that found no room once never finds room, so that nothing about it can be half known
struct EnvelopeBound {
  std::size_t envelopes_max = 1024;
  bool may_forget = true;
};

/// Envelopes of one peer by tag; at most as many as bounded, the oldest one that may be forgotten makes room.
template <class E>
class EnvelopeTable {
 public:
  ~EnvelopeTable() {
    while (E* item = by_age_.front()) drop(*item);
  }
  EnvelopeTable() = default;
  EnvelopeTable(const EnvelopeTable&) = delete;
  EnvelopeTable& operator=(const EnvelopeTable&) = delete;

  [[nodiscard]] E* find(std::int32_t tag) noexcept { return by_tag_.find(tag); }

  /// @returns  the envelope, made when new; nullptr when the table is full of envelopes that must not be forgotten:
  ///           such a tag must not speculate
  [[nodiscard]] E* get(std::int32_t tag, EnvelopeBound bound) {
    if (E* known = by_tag_.find(tag)) return known;
    if (by_tag_.size() >= bound.envelopes_max && !(bound.may_forget && make_room())) return nullptr;
    E* fresh = new E;
    fresh->tag = tag;
    by_tag_.insert(*fresh);
    by_age_.push_back(*fresh);
    return fresh;
  }

  [[nodiscard]] std::size_t size() const noexcept { return by_tag_.size(); }

 private:
  [[nodiscard]] bool make_room() noexcept {
    for (int tries = 0; tries < 8; ++tries) {
      E* oldest = by_age_.front();
      if (oldest == nullptr) return false;
      if (oldest->forgettable()) {
        drop(*oldest);
        return true;
      }
      by_age_.remove(*oldest);
      by_age_.push_back(*oldest);
    }
    return false;
  }
  void drop(E& item) noexcept {
    by_tag_.remove(item);
    by_age_.remove(item);
    delete &item;
  }

  TagTable<E, &E::link, &E::tag> by_tag_;
  List<E, &E::age> by_age_;
};

}  // namespace overlap::speculative
