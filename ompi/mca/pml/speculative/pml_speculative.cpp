// The module's life cycle.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

#include "ompi/mca/common/overlap/foreign_windows.hpp"
#include "ompi/mca/common/overlap/report.hpp"
#include "ompi/mca/common/overlap/settings.hpp"

#include "protocol/gain.hpp"

namespace overlap::speculative {
namespace {

Config config_of(const Tunables& values) {
  Config config;
  config.speculation = values.speculation;
  config.hazard_policy = values.hazard_control == hazard_control_choice::eager_flag
                             ? HazardPolicy::eager_flag
                             : HazardPolicy::envelope_sequence;
  config.adaptation = {values.adaptation, values.adaptation_threshold, values.adaptation_min_sample,
                       values.adaptation_resume_interval};
  config.rtr_min_bytes = values.rtr_min;
  config.mispredictions_max = values.misprediction_limit;
  config.envelopes.envelopes_max = values.envelopes;
  config.first_agreed = max_context + 1U;
  config.process = process_number(OPAL_PROC_MY_NAME);
  return config;
}

/// Retry what waits for room or for an MPI thread; a pollable of the driver while anything does.
int retry_waiting() noexcept {
  int taken = 0;
  must_run([&taken] {
    taken = static_cast<int>(pml->endpoints.retry());
    if (!pml->left.empty()) taken += static_cast<int>(pml->left.handle_all());
    pml->protocol.take_left();
    set_retries();
    pml->actions.run();
  });
  return taken;
}

/// The part of it that the interrupt thread does: copies, puts whose last pieces have been sent,
/// and what a probe has left.
int retry_in_thread() noexcept {
  int taken = 0;
  must_run([&taken] {
    taken = static_cast<int>(pml->endpoints.retry_in_thread());
    pml->protocol.take_left();
    if (pml->protocol.has_left()) ++taken;  // for the next turn, before the thread sleeps
    set_retries();
    pml->actions.run();
  });
  return taken;
}

std::string explain_job(std::span<const CounterRow> rows, const CounterSummary& summary) {
  const auto sum = [&](const char* name) { return sum_of(rows, summary, name); };
  return explain_gain({.rts_eager_sized = sum("rts_eager_sized"),
                       .rts_sent = sum("rts_sent") - sum("rts_eager_sized"),
                       .rts_only = sum("rts_only"),
                       .late_receives = sum("late_receives"),
                       .wildcard_receives = sum("wildcard_receives"),
                       .rtr_sent = sum("rtr_sent"),
                       .rtr_used = sum("rtr_used"),
                       .rtr_late = sum("rtr_stale") + sum("rtr_crossed"),
                       .rtr_dropped = sum("rtr_dropped"),
                       .stops = sum("adaptation_stops") + sum("mutes"),
                       .speculation = tunables.speculation});
}

}  // namespace

Pml::Pml(const Tunables& values)
    : tunables(values),
      interrupts(driver, endpoints, node_area),
      completions(complete),
      protocol(config_of(values), delivery, process_counters()),
      actions(protocol),
      shared{endpoints,
             driver,
             interrupts,
             completions,
             endpoint_of_process,
             [] { return pml->protocol.era(); },
             [](std::uint32_t era) { pml->protocol.note_era(era); }} {
  endpoints.on_work = [](bool) { set_retries(); };
  overlap::process = &shared;
  listen_for_windows();
}

Pml::~Pml() {
  interrupts.stop();  // before what it works on goes
  stop_listening_for_windows();
  overlap::process = nullptr;
}

void set_retries() noexcept {
  pml->left_by_probes.set(pml->interrupts,
                          pml->protocol.has_left() && pml->interrupts.serves_node());
  pml->driver.set_pollable({retry_waiting, retry_in_thread}, pml->endpoints.has_work() ||
                                                                 !pml->left.empty() ||
                                                                 pml->protocol.has_left());
}

int enable(bool on) noexcept {
  if (!on) return OMPI_SUCCESS;
  return guarded([]() -> int {
    processes_gone = false;  // MPI sessions start again in one process (5.0)
    pml = new Pml(tunables);
    progress_lock.start(is_thread_multiple() ? ProgressLock::Mode::shared
                                             : ProgressLock::Mode::biased);
    const auto init_list = [](opal_free_list_t* list, std::size_t bytes, opal_class_t* item_class) {
      return opal_free_list_init(list, bytes, opal_cache_line_size, item_class, 0,
                                 opal_cache_line_size, 4, -1, 64, nullptr, 0, nullptr, nullptr,
                                 nullptr);
    };
    // The PML that is chosen owns these two lists, with its own request classes (MPI_Bsend and
    // debuggers read them).
    int rc = init_list(&mca_pml_base_send_requests, sizeof(SendRequest),
                       &overlap_speculative_send_request_class);
    if (rc == OPAL_SUCCESS) {
      rc = init_list(&mca_pml_base_recv_requests, sizeof(ReceiveRequest),
                     &overlap_speculative_receive_request_class);
    }
    if (rc != OPAL_SUCCESS) return rc;
    if (is_thread_multiple()) pml->driver.own_events();
    opal_progress_register(progress);
    before_communicators_go([] {
      if (pml != nullptr) end_last_meeting();
    });
    if (tunables.stats || tunables.explain) {
      request_report({.title = "pml/speculative",
                      .rows = counter_rows(),
                      .table = tunables.stats,
                      .explain = tunables.explain ? explain_job : nullptr});
    }
    if (tunables.stats) common::request_settings_report();
    report_at_finalize();
    return OMPI_SUCCESS;
  });
}

}  // namespace overlap::speculative
