// The component: parameters, checks, and a module for each communicator.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/process.hpp"
#include "ompi/mca/common/overlap/receivers.hpp"
#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/version_check.hpp"

#include "coll_mq_communicator.hpp"
#include "coll_mq_device.hpp"
#include "coll_mq_module.hpp"

extern "C" {
extern OVERLAP_EXPORT mca_coll_base_component_t mca_coll_mq_component;
}

namespace overlap::coll_mq {

Tunables tunables;

const mca_base_component_t* component() noexcept { return &mca_coll_mq_component.collm_version; }

namespace {

std::span<const TunableRow> rows() {
  static const auto table = tunable_rows(tunables);
  return table;
}

std::span<const CounterRow> counter_rows() {
  using enum CounterClass;
  static const CounterRow table[] = {
      {"communicators", "Communicators that the component took part in.", counter,
       &counters.communicators},
      {"barriers", "Barriers that blocked.", counter, &counters.barriers},
      {"nonblocking", "Collectives that did not block, starts of persistent ones included.",
       counter, &counters.nonblocking},
      {"messages_sent", "Messages sent.", counter, &counters.messages_sent},
      {"messages_early",
       "Messages that came before their collective had begun here, or before their communicator.",
       counter, &counters.messages_early},
      {"messages_stale", "Messages of communicators and requests that had been freed.", counter,
       &counters.messages_stale},
      {"thread_messages", "Messages that the interrupt thread took in.", counter,
       &counters.thread_messages},
      {"thread_ended", "Collectives whose last step the interrupt thread made.", counter,
       &counters.thread_ended},
      {"left", "Times that the interrupt thread left a step to an MPI call.", counter,
       &counters.left},
      {"fallbacks",
       "Collectives with data that went to Open MPI's component: too large, another operation.",
       counter, &counters.fallbacks},
      {"device_barriers", "Barriers that a management queue of the device carried out.", counter,
       &counters.device_barriers},
  };
  return table;
}

int component_register() noexcept {
  return guarded([]() -> int {
    if (const int rc = register_tunables(component(), rows()); rc != OPAL_SUCCESS) return rc;
    return register_counters(component(), counter_rows());
  });
}

int component_open() noexcept {
  return guarded([]() -> int {
    const SizeRow sizes[] = {OVERLAP_SIZE_ROW(ompi_request_t),
                             OVERLAP_SIZE_ROW(ompi_coll_base_nbc_request_t),
                             OVERLAP_SIZE_ROW(mca_coll_base_module_t)};
    if (!check_running_openmpi("coll/mq", sizes)) return OPAL_ERR_NOT_AVAILABLE;
    if (const int rc = check_tunables(component(), rows()); rc != OPAL_SUCCESS) return rc;
    if (tunables.priority > 0) add_receiver({message_tag, register_receiver});
    if (tunables.priority > 0) open_device();
    publish_settings();
    return OPAL_SUCCESS;
  });
}

int component_close() noexcept {
  remove_receiver(message_tag);
  drop_kept_requests();
  device.reset();
  return OMPI_SUCCESS;
}

int component_init(bool, bool) noexcept {
  return guarded([]() -> int {
    if (tunables.stats) {
      request_report(
          {.title = "coll/mq", .rows = counter_rows(), .table = true, .explain = nullptr});
    }
    return OMPI_SUCCESS;
  });
}

mca_coll_base_module_t* component_query(ompi_communicator_t* comm, int* priority) noexcept {
  // Answers of flow control may still be on their way when a process has freed its communicator.
  if (tunables.priority == 0 || is_of_session(comm)) return nullptr;
  if (process == nullptr) {
    if (tunables.verbose > 0) {
      show_message(
          "coll/mq takes part in no communicator: it works beside pml/speculative only. Add --mca "
          "pml speculative.");
    }
    return nullptr;
  }
  *priority = static_cast<int>(tunables.priority);
  mca_coll_base_module_t* module = nullptr;
  static_cast<void>(guarded([&]() -> int {
    module = make_module(*comm);
    return OMPI_SUCCESS;
  }));
  return module;
}

}  // namespace

}  // namespace overlap::coll_mq

mca_coll_base_component_t mca_coll_mq_component = {
    .collm_version = {OVERLAP_COLL_VERSION, .mca_component_name = "mq",
                      .mca_component_major_version = OMPI_MAJOR_VERSION,
                      .mca_component_minor_version = OMPI_MINOR_VERSION,
                      .mca_component_release_version = OMPI_RELEASE_VERSION,
                      .mca_open_component = overlap::coll_mq::component_open,
                      .mca_close_component = overlap::coll_mq::component_close,
                      .mca_query_component = nullptr,
                      .mca_register_component_params = overlap::coll_mq::component_register,
                      .mca_component_flags = 0, .reserved = {}},
    .collm_data = {},
    .collm_init_query = overlap::coll_mq::component_init,
    .collm_comm_query = overlap::coll_mq::component_query};
