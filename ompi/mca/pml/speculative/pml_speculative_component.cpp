// The component: parameters, checks, selection.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative.hpp"

#include "ompi/mca/common/overlap/node_cores.hpp"
#include "ompi/mca/common/overlap/receivers.hpp"
#include "ompi/mca/common/overlap/settings.hpp"
#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/tunables.hpp"
#include "opal/mca/common/overlap/version_check.hpp"

extern "C" OVERLAP_EXPORT mca_pml_base_component_t mca_pml_speculative_component;

namespace overlap::speculative {

Tunables tunables;
Pml* pml = nullptr;

namespace {

// The counters outlive the Pml: MPI_T reads them by address until the component is closed.
Counters counters;

bool considered = false;  // has Open MPI asked this component for a module?

std::span<const TunableRow> rows() {
  static const auto table = tunable_rows(tunables);
  return table;
}

const mca_base_component_t* self() { return &mca_pml_speculative_component.pmlm_version; }

int component_register() noexcept {
  return guarded([]() -> int {
    add_help_folder();
    if (const int rc = register_tunables(self(), rows()); rc != OPAL_SUCCESS) return rc;
    if (const int rc = register_counters(self(), counter_rows()); rc != OPAL_SUCCESS) return rc;
    return common::register_settings(*self());
  });
}

int component_open() noexcept {
  return guarded([]() -> int {
    const SizeRow sizes[] = {OVERLAP_SIZE_ROW(ompi_request_t), OVERLAP_SIZE_ROW(opal_mutex_t),
                             OVERLAP_SIZE_ROW(opal_convertor_t),
                             OVERLAP_SIZE_ROW(mca_pml_base_send_request_t),
                             OVERLAP_SIZE_ROW(mca_pml_base_recv_request_t)};
    if (!check_running_openmpi("pml/speculative", sizes)) return OPAL_ERR_NOT_AVAILABLE;
    if (const int rc = common::check_settings(); rc != OPAL_SUCCESS) return rc;
    return check_tunables(self(), rows());
  });
}

int component_close() noexcept {
  // Closed without having been asked: Open MPI considers only its own list of PMLs by default.
  if (!considered && (tunables.stats || tunables.explain))
    show_message(
        std::string(tunables.stats ? "pml_speculative_stats" : "pml_speculative_explain") +
        " is set, but this job runs on another PML, so there is nothing to report. Add --mca pml "
        "speculative, or set pml = speculative in the parameter file.");
  delete pml;
  pml = nullptr;
  node_area = {};
  forget_cores();
  return OMPI_SUCCESS;
}

mca_pml_base_module_t module_table = make_pml_module([](mca_pml_base_module_t& table) {
  table.pml_add_procs = add_procs;
  table.pml_del_procs = del_procs;
  table.pml_enable = enable;
  table.pml_add_comm = add_comm;
  table.pml_del_comm = del_comm;
  table.pml_irecv_init = irecv_init;
  table.pml_irecv = irecv;
  table.pml_recv = recv;
  table.pml_isend_init = isend_init;
  table.pml_isend = isend;
  table.pml_send = send;
  table.pml_iprobe = iprobe;
  table.pml_probe = probe;
  table.pml_start = start;
  table.pml_improbe = improbe;
  table.pml_mprobe = mprobe;
  table.pml_imrecv = imrecv;
  table.pml_mrecv = mrecv;
  table.pml_dump = dump;
  table.pml_max_contextid = max_context;
  table.pml_max_tag = INT_MAX;
});

mca_pml_base_module_t* component_init(int* priority, bool, bool mpi_threads) noexcept {
  considered = true;
  *priority = static_cast<int>(tunables.priority);
  if (handles_device_memory()) {
    show_topic("device memory");
    return nullptr;
  }
  // Nothing ends the requests of a communicator that is revoked, or of a peer that has gone.
  if (survives_failures()) {
    show_topic("fault tolerance");
    return nullptr;
  }
  // The BML is shared by all PMLs that stand on BTLs; it initialises the BTLs once.
  if (mca_bml_base_init(false, mpi_threads) != OMPI_SUCCESS) return nullptr;
  if (keep_early() != OMPI_SUCCESS) return nullptr;
  node_area.publish(InterruptThread::is_possible(),
                    common::tunables.progress == common::progress_choice::on);
  return &module_table;
}

int component_finalize() noexcept {
  must_run([] { hand_over_early_messages(); });  // where nobody has made a communicator
  if (pml == nullptr) return OMPI_SUCCESS;       // another one was chosen
  pml->interrupts.stop();
  opal_progress_unregister(progress);
  end_last_meeting();
  {
    const Entry entry;
    pml->driver.give_back();
  }
  return mca_bml.bml_finalize();
}

}  // namespace

Counters& process_counters() noexcept { return counters; }

std::span<const CounterRow> counter_rows() {
  using enum CounterClass;
  static const CounterRow table[] = {
      {"rtr_sent", "RTRs sent.", counter, &counters.rtr_sent},
      {"rtr_received", "RTRs received.", counter, &counters.rtr_received},
      {"rtr_used", "RTRs whose buffer was written to.", counter, &counters.rtr_used},
      {"rtr_stale", "RTRs that came after their message, or its RTS, had been sent.", counter,
       &counters.rtr_stale},
      {"stale_dropped",
       "Messages of communicators that had been freed, or for requests that had ended.", counter,
       &counters.stale_dropped},
      {"rtr_dropped",
       "RTRs thrown away at the sender: eager message, buffer too small, stopped or revoked.",
       counter, &counters.rtr_dropped},
      {"rtr_crossed",
       "RTRs that met the RTS of their message on the way; eager_flag only, envelope_sequence "
       "counts them as stale.",
       counter, &counters.rtr_crossed},
      {"rtr_awaited", "Sends that waited a little for an RTR that usually crosses them.", counter,
       &counters.rtr_awaited},
      {"rtr_awaited_in_time", "Sends that got an RTR by waiting.", counter,
       &counters.rtr_awaited_in_time},
      {"rts_sent", "RTSs sent.", counter, &counters.rts_sent},
      {"rts_only",
       "RTSs where no RTR can come: over shared memory (pml_speculative_shared_memory is auto), "
       "over "
       "TCP with interrupt threads (common_overlap_progress), to the process itself, over RDMA to "
       "another job.",
       counter, &counters.rts_only},
      {"rts_eager_sized",
       "RTSs for messages that could have gone eagerly, to be read over shared memory "
       "(pml_speculative_blocking_copy).",
       counter, &counters.rts_eager_sized},
      {"unexpected_copied", "Such messages that no receive waited for: copied at once.", counter,
       &counters.unexpected_copied},
      {"unexpected_pushed", "The same, where the kernel would not copy: asked for at once.",
       counter, &counters.unexpected_pushed},
      {"late_receives",
       "Receives that found the RTS of their large message: they were posted late.", counter,
       &counters.late_receives},
      {"wildcard_receives",
       "Receives with MPI_ANY_SOURCE or MPI_ANY_TAG that the RTS of a large message found posted: "
       "they send no RTR.",
       counter, &counters.wildcard_receives},
      {"rtr_ack_sent", "RTR-ACKs sent.", counter, &counters.rtr_ack_sent},
      {"rts_ack_sent", "RTS-ACKs sent.", counter, &counters.rts_ack_sent},
      {"done_chained", "DONEs posted right behind their data.", counter, &counters.done_chained},
      {"revoke_sent", "REVOKEs sent for cancelled receives.", counter, &counters.revoke_sent},
      {"eager_flag_stops", "Stop-RTRs sent because of the Eager-flag.", counter,
       &counters.eager_flag_stops},
      {"eager_flag_resumes", "Resume-RTRs sent.", counter, &counters.eager_flag_resumes},
      {"adaptation_stops", "Envelopes whose speculation the adaptation stopped.", counter,
       &counters.adaptation_stops},
      {"adaptation_resumes", "Envelopes whose speculation the adaptation resumed.", counter,
       &counters.adaptation_resumes},
      {"mutes", "Envelopes for which a receiver stopped sending RTRs by itself.", counter,
       &counters.mutes},
      {"early_progress_hits", "Early looks at the network that found an RTS or RTR.", counter,
       &counters.early_progress_hits},
      {"eager_lent",
       "Eager messages for which a BTL went on using the user's buffer after the call.", counter,
       &counters.eager_lent},
      {"exchange_pauses",
       "Sends behind which the process paused for about a microsecond, so that two "
       "processes that exchange messages through shared memory work side by side.",
       counter, &counters.exchange_pauses},
      {"put_bytes", "Bytes written into receivers' buffers.", counter, &counters.put_bytes},
      {"get_bytes", "Bytes read from senders' buffers.", counter, &counters.get_bytes},
      {"pipelined_bytes", "Bytes sent as fragments.", counter, &counters.pipelined_bytes},
      {"extra_control_bytes", "Bytes of unused RTRs and of acknowledgements.", counter,
       &counters.extra_control_bytes},
      {"posted_queue_max", "Most receives posted at a time in one communicator.", high_watermark,
       &counters.posted_queue_max},
      {"unexpected_queue_max", "Most unexpected messages at a time in one communicator.",
       high_watermark, &counters.unexpected_queue_max},
  };
  return table;
}

}  // namespace overlap::speculative

mca_pml_base_component_t mca_pml_speculative_component = {
    .pmlm_version = {OVERLAP_PML_VERSION, .mca_component_name = "speculative",
                     .mca_component_major_version = OMPI_MAJOR_VERSION,
                     .mca_component_minor_version = OMPI_MINOR_VERSION,
                     .mca_component_release_version = OMPI_RELEASE_VERSION,
                     .mca_open_component = overlap::speculative::component_open,
                     .mca_close_component = overlap::speculative::component_close,
                     .mca_query_component = nullptr,
                     .mca_register_component_params = overlap::speculative::component_register,
                     .mca_component_flags = 0, .reserved = {}},
    .pmlm_data = {},
    .pmlm_init = overlap::speculative::component_init,
    .pmlm_finalize = overlap::speculative::component_finalize};
