// What the caller chooses about the protocol of one process.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "adaptation.hpp"
#include "envelope_table.hpp"
#include "hazard_control.hpp"
#include "headers.hpp"
#include "held_messages.hpp"
#include "patience.hpp"

namespace overlap::speculative {

struct Config {
  bool speculation = true;  ///< P1.12
  HazardPolicy hazard_policy = HazardPolicy::envelope_sequence;
  AdaptationRules adaptation;
  PatienceRules patience;
  std::uint64_t rtr_min_bytes = 0;       ///< smaller receives send no RTR
  std::uint32_t mispredictions_max = 4;  ///< in a row, before a receiver mutes itself (P1.9)
  EnvelopeBound envelopes;
  HeldBound held;
  std::uint32_t first_agreed = first_agreed_context;  ///< above all contexts: there are none
  std::uint64_t process = 0;  ///< this process's number, unique among all that can be talked to
};

}  // namespace overlap::speculative
