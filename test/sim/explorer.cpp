// Depth-first search over the interleavings of two modelled processes.
// SPDX-License-Identifier: BSD-3-Clause
#include "explorer.hpp"

#include <unordered_set>

#include "world.hpp"

namespace overlap::speculative::sim {
namespace {

void add(Counters& sum, const Counters& one) {
  sum.rtr_sent += one.rtr_sent;
  sum.rtr_received += one.rtr_received;
  sum.rtr_used += one.rtr_used;
  sum.rtr_stale += one.rtr_stale;
  sum.stale_dropped += one.stale_dropped;
  sum.rtr_dropped += one.rtr_dropped;
  sum.rtr_crossed += one.rtr_crossed;
  sum.rts_sent += one.rts_sent;
  sum.rtr_ack_sent += one.rtr_ack_sent;
  sum.unexpected_copied += one.unexpected_copied;
  sum.unexpected_pushed += one.unexpected_pushed;
  sum.rts_ack_sent += one.rts_ack_sent;
  sum.done_chained += one.done_chained;
  sum.revoke_sent += one.revoke_sent;
  sum.eager_flag_stops += one.eager_flag_stops;
  sum.eager_flag_resumes += one.eager_flag_resumes;
  sum.mutes += one.mutes;
  sum.adaptation_stops += one.adaptation_stops;
  sum.adaptation_resumes += one.adaptation_resumes;
}

Call receive_call(int tag, std::size_t bytes, int from, bool speculate) {
  Call call;
  call.what = Call::What::receive;
  call.tag = tag;
  call.bytes = bytes;
  call.from = from;
  call.speculate = speculate;
  return call;
}

}  // namespace

Call eager(int tag) { return {Call::What::send, tag, 2, SendMode::eager}; }
Call synchronous(int tag) { return {Call::What::send, tag, 2, SendMode::eager_sync}; }
Call rendezvous(int tag, std::size_t bytes) {
  return {Call::What::send, tag, bytes, SendMode::rendezvous};
}
Call eager_sized(int tag) { return {Call::What::send, tag, 2, SendMode::eager_sized}; }
Call rendezvous_sync(int tag) { return {Call::What::send, tag, 4, SendMode::rendezvous_sync}; }
Call receive_large(int tag, std::size_t bytes) { return receive_call(tag, bytes, 0, true); }
Call receive_small(int tag, std::size_t bytes) { return receive_call(tag, bytes, 0, false); }
Call receive_any_source(int tag) { return receive_call(tag, 4, any_source, true); }
Call receive_any_tag() { return receive_call(any_tag, 4, 0, true); }
Call cancel(int which) {
  Call call;
  call.what = Call::What::cancel;
  call.which = which;
  return call;
}
Call wait(int which) {
  Call call;
  call.what = Call::What::wait;
  call.which = which;
  return call;
}
Call improbe(int tag) {
  Call call;
  call.what = Call::What::improbe;
  call.tag = tag;
  call.bytes = 4;
  return call;
}

Call free_communicator() { return {.what = Call::What::free}; }
Call agree() { return {.what = Call::What::agree}; }
Call activate() { return {.what = Call::What::activate}; }
Call stop() { return {.what = Call::What::stop}; }

Verdict explore(const Case& test, std::uint64_t states_max) {
  Verdict verdict;
  struct Branch {
    std::uint32_t choice;
    std::uint32_t count;
  };
  std::vector<Branch> path;
  std::vector<Option> options;
  std::unordered_set<Hash128, HashOf> seen;
  bool more = true;
  while (more) {
    World world(test);
    std::string story;
    std::size_t depth = 0;
    try {
      while (true) {
        if (depth >= path.size()) {
          if (!seen.insert(world.state()).second) break;
          if (states_max != 0 && seen.size() >= states_max) {
            verdict.violation = "more states than expected";
            break;
          }
        }
        world.options(options);
        if (options.empty()) {
          world.check_end();
          ++verdict.ends;
          for (int rank = 0; rank < 2; ++rank)
            add(verdict.counters[rank], world.process(rank).counters());
          break;
        }
        if (depth == path.size()) path.push_back({0, static_cast<std::uint32_t>(options.size())});
        ++verdict.steps;
        try {
          world.take(options[path[depth++].choice]);
        } catch (const Broken&) {
          world.check_broken();
          ++verdict.breaks;
          break;
        }
      }
    } catch (const Violation& violation) {
      verdict.violation = violation.what();
    }
    if (!verdict.holds()) {
      World again(test);
      for (const Branch& branch : path) {
        again.options(options);
        if (branch.choice >= options.size()) break;
        verdict.story += again.tell(options[branch.choice]);
        try {
          again.take(options[branch.choice]);
        } catch (const std::runtime_error&) {
          break;
        }
      }
      break;
    }
    while (!path.empty() && path.back().choice + 1 == path.back().count) path.pop_back();
    more = !path.empty();
    if (more) ++path.back().choice;
  }
  verdict.states = seen.size();
  return verdict;
}

std::string describe(const Case& test) {
  static const char* const modes[] = {"eager", "sync", "rendezvous", "sync rendezvous",
                                      "eager-sized"};
  static const char* const writes[] = {"at once",     "later",        "refused",
                                       "fails later", "fails midway", "none"};
  static const char* const chains[] = {"not chained", "chained", "chained after a stall"};
  static const char* const orders[] = {"kept", "per stream", "none"};
  std::string text = test.policy == HazardPolicy::eager_flag ? "eager_flag" : "envelope_sequence";
  text += std::string(test.transport.reads ? ", reads" : ", no reads") +
          (test.transport.copies_every != 0 ? ", copies" : "") + ", writes " +
          writes[static_cast<std::size_t>(test.transport.write)] + ", DONE " +
          chains[static_cast<std::size_t>(test.transport.chain)] + ", order " +
          orders[static_cast<std::size_t>(test.order)];
  for (int rank = 0; rank < 2; ++rank) {
    text += rank == 0 ? "; P0:" : "; P1:";
    for (const Call& call : test.programs[rank]) {
      switch (call.what) {
        case Call::What::send:
          text += std::string(" ") + modes[static_cast<std::size_t>(call.mode)];
          break;
        case Call::What::receive: text += call.speculate ? " receive(rtr)" : " receive"; break;
        case Call::What::cancel: text += " cancel#" + std::to_string(call.which); break;
        case Call::What::wait: text += " wait#" + std::to_string(call.which); break;
        case Call::What::improbe: text += " improbe"; break;
        case Call::What::free: text += " free"; break;
        case Call::What::agree: text += " agree"; break;
        case Call::What::activate: text += " activate"; break;
        case Call::What::stop: text += " stop"; break;
      }
      if (call.what == Call::What::receive && call.from == any_source) text += " from any";
      if (call.what == Call::What::send || call.what == Call::What::receive)
        text += " tag " + std::to_string(call.tag) + " x" + std::to_string(call.bytes);
    }
  }
  return text;
}

}  // namespace overlap::speculative::sim
