// What each side remembers of an envelope: a bounded table per peer (P1.8, P1.11).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "adaptation.hpp"
#include "intrusive.hpp"
#include "memory_free.hpp"
#include "operations.hpp"
#include "patience.hpp"

namespace overlap::speculative {

/// An RTR that waits at the sender for its send.
struct KeptRtr {
  Handle receive = 0;
  std::uint64_t capacity_bytes = 0;
  std::uint32_t position = 0;  ///< number of the message it is for, see SendEnvelope::sent
  RemoteMemory memory;
};

/// RTRs in order of arrival; nothing but two pointers while there are none.
class KeptRtrs {
 public:
  KeptRtrs() = default;
  KeptRtrs(KeptRtrs&&) noexcept = default;
  KeptRtrs& operator=(KeptRtrs&&) noexcept = default;
  ~KeptRtrs() {
    while (!empty()) pop_front();
  }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] const KeptRtr& front() const noexcept { return first_->rtr; }
  void push_back(const KeptRtr& rtr) {
    auto fresh = std::make_unique<Node>(Node{rtr, nullptr});
    Node* last = fresh.get();
    (first_ == nullptr ? first_ : last_->next) = std::move(fresh);
    last_ = last;
  }
  void pop_front() noexcept { first_ = std::move(first_->next); }

 private:
  struct Node {
    KeptRtr rtr;
    std::unique_ptr<Node> next;
  };
  std::unique_ptr<Node> first_;
  Node* last_ = nullptr;
};

/// The sender's side of one envelope.
struct SendEnvelope {
  Link link;
  Link age;
  std::int32_t tag = 0;
  KeptRtrs kept;
  Adaptation adaptation;
  Patience patience;
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
  Probing adaptation;                ///< stopped by the sender's adaptation, or trying again
  bool muted = false;                ///< by itself: the RTRs go to eager messages (P1.9)
  std::uint32_t mispredictions = 0;  ///< in a row
  std::uint32_t revokes_out = 0;     ///< not yet confirmed
  std::uint32_t orphaned_rtrs = 0;   ///< of cancelled receives, each for one message still to come
  MemoryFreeRange memory_free;       ///< of its receives; every RTR goes through the envelope

  [[nodiscard]] bool may_offer() const noexcept {
    return !hazard_stopped && adaptation.may_offer() && !muted && revokes_out == 0;
  }
  [[nodiscard]] bool forgettable() const noexcept { return !hazard_stopped && revokes_out == 0; }
};

/// @param may_forget  false: a tag that found no room once never finds room, so that nothing about
/// it can be half known
struct EnvelopeBound {
  std::size_t envelopes_max = 1024;
  bool may_forget = true;
  std::size_t kept_rtrs_max = 65536;  ///< of all peers of a process
};

/// For what must be remembered.
inline constexpr EnvelopeBound unbounded_envelopes{.envelopes_max = SIZE_MAX};

/// Envelopes of one peer by tag; at most as many as bounded, the oldest one that may be forgotten
/// makes room. One pointer until the first is made.
template <class E>
class EnvelopeTable {
 public:
  [[nodiscard]] E* find(std::int32_t tag) noexcept {
    return table_ == nullptr ? nullptr : table_->by_tag.find(tag);
  }

  /// @returns  the envelope, made when new; nullptr when the table is full of envelopes that must
  /// not be forgotten:
  ///           such a tag must not speculate
  [[nodiscard]] E* get(std::int32_t tag, EnvelopeBound bound) {
    if (table_ == nullptr) table_ = std::make_unique<Table>();
    if (E* known = table_->by_tag.find(tag)) return known;
    if (table_->by_tag.size() >= bound.envelopes_max && !(bound.may_forget && table_->make_room()))
      return nullptr;
    E* fresh = new E;
    fresh->tag = tag;
    if constexpr (requires { fresh->adaptation.must_resume; })
      fresh->adaptation.must_resume = table_->has_forgotten;
    table_->by_tag.insert(*fresh);
    table_->by_age.push_back(*fresh);
    return fresh;
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return table_ == nullptr ? 0 : table_->by_tag.size();
  }

 private:
  struct Table {
    Table() = default;
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    ~Table() {
      while (E* item = by_age.front()) drop(*item);
    }
    [[nodiscard]] bool make_room() noexcept {
      for (int tries = 0; tries < 8; ++tries) {
        E* oldest = by_age.front();
        if (oldest == nullptr) return false;
        if (oldest->forgettable()) {
          drop(*oldest);
          has_forgotten = true;
          return true;
        }
        by_age.remove(*oldest);
        by_age.push_back(*oldest);
      }
      return false;
    }
    void drop(E& item) noexcept {
      by_tag.remove(item);
      by_age.remove(item);
      delete &item;
    }

    TagTable<E, &E::link, &E::tag> by_tag;
    List<E, &E::age> by_age;
    bool has_forgotten = false;
  };
  std::unique_ptr<Table> table_;
};

}  // namespace overlap::speculative
