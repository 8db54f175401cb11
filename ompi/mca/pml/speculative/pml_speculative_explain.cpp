// pml_speculative_explain: the paths of messages when a process is first reached.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative.hpp"

#include "protocol/path_table.hpp"

namespace overlap::speculative {
namespace {

const char* name_of(const Rail& rail) noexcept {
  return rail.btl().btl_component->btl_version.mca_component_name;
}

/// Names of rails, each once.
std::string names_of(std::span<const Rail> rails) {
  std::vector<std::string> names;
  for (const Rail& rail : rails) {
    if (std::ranges::find(names, name_of(rail)) == names.end()) names.emplace_back(name_of(rail));
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "+") + name;
  return text;
}

PathFacts facts_of(Endpoint& endpoint) {
  const std::span<const Rail> eager = endpoint.eager_rails();
  const std::span<const Rail> memory = endpoint.memory_rails();
  PathFacts facts;
  facts.eager_btl = names_of(eager);
  facts.memory_btl = names_of(memory);
  for (const Rail& rail : memory) {
    facts.can_put |= (rail.bml_btl->btl_flags & MCA_BTL_FLAGS_PUT) != 0;
    facts.can_get |= (rail.bml_btl->btl_flags & MCA_BTL_FLAGS_GET) != 0;
  }
  facts.send.eager_bytes = endpoint.eager_bytes;
  facts.send.zero_copy_bytes = zero_copy_bytes(eager.front());
  facts.send.can_inject = eager.front().btl().btl_sendi != nullptr;
  facts.send.refuses_for_room = eager.front().refuses_for_room;
  facts.rtr = rtr_facts(endpoint);
  facts.rtr.speculation = tunables.speculation;
  facts.rtr_names_memory = offers_memory(endpoint);
  facts.rtr_min_bytes = tunables.rtr_min;
  if (endpoint.copies_itself()) facts.blocking_copies = blocking_copies();
  if (may_be_read(endpoint)) facts.eager_reads = eager_reads();
  facts.interrupts = (endpoint.works_by_events() && InterruptThread::is_possible()) ||
                     (endpoint.copies_itself() && pml->interrupts.serves_node()) ||
                     pml->interrupts.serves_network(eager.front().capability);
  return facts;
}

}  // namespace

void explain_paths(Endpoint& endpoint) {
  const opal_proc_t& peer = endpoint.proc().super;
  const std::string who = rank_text(OPAL_PROC_MY_NAME, peer.proc_name) + " to " +
                          rank_text(peer.proc_name, OPAL_PROC_MY_NAME) + " on " +
                          hostname(&endpoint.proc());
  const std::string text = render_path_table(who, path_table(facts_of(endpoint)));
  std::fputs(text.c_str(), stderr);  // not into the program's output; unbuffered: one write
}

}  // namespace overlap::speculative
