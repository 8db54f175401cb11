// Parameters and counters of what the components share.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/settings.hpp"

namespace overlap::common {

Tunables tunables;
Counters counters;

namespace {

std::span<const TunableRow> rows() {
  static const auto table = tunable_rows(tunables);
  return table;
}

std::span<const CounterRow> counter_rows() {
  using enum CounterClass;
  static const CounterRow table[] = {
      {"interrupt_turns", "Turns by the interrupt thread.", counter, &counters.interrupt_turns},
      {"interrupt_turns_empty", "Those that ended no message or part of one.", counter,
       &counters.interrupt_turns_empty},
      {"interrupt_rings", "Times that a call woke the interrupt thread for its request.", counter,
       &counters.interrupt_rings},
      {"interrupt_left",
       "Messages that the interrupt thread left to the next MPI call, because this process had no "
       "connection to their sender yet.",
       counter, &counters.interrupt_left},
      {"interrupt_copies",
       "Copies of large messages through shared memory that calls left to the interrupt thread.",
       counter, &counters.interrupt_copies},
      {"early_kept",
       "Messages of peers that came while this process still waited for the launcher in MPI_Init.",
       counter, &counters.early_kept},
      {"wakes_rung", "Times that this process woke another one of its node for a message.", counter,
       &counters.wakes_rung},
      {"wakes_handed_on",
       "Messages to processes of this node that were left to the helper to wake for.", counter,
       &counters.wakes_handed_on},
      {"wakes_futile", "Times that this process was woken by another one and found nothing.",
       counter, &counters.wakes_futile},
  };
  return table;
}

}  // namespace

const mca_base_component_t& name_bearer() {
  static const mca_base_component_t bearer = [] {
    mca_base_component_t made{};
    const auto put = [](auto& to, std::string_view text) {
      std::copy(text.begin(), text.end(), to);
    };
    put(made.mca_project_name, "ompi");
    put(made.mca_type_name, "common");
    put(made.mca_component_name, "overlap");
    return made;
  }();
  return bearer;
}

int register_settings(const mca_base_component_t& user) noexcept {
  const void* const changeable[] = {&tunables.progress};
  if (const int rc = register_tunables(&name_bearer(), rows(), changeable); rc != OPAL_SUCCESS)
    return rc;
  if (const int rc = register_synonyms(name_bearer(), rows(), user); rc != OPAL_SUCCESS) return rc;
  return register_counters(&name_bearer(), counter_rows());
}

int check_settings() noexcept { return check_tunables(&name_bearer(), rows()); }

void request_settings_report() {
  request_report({.title = "common/overlap", .rows = counter_rows()});
}

}  // namespace overlap::common
