// The component: parameters, choice of the fabric, the one module.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring.hpp"
#include "btl_ring_module.hpp"
#include "btl_ring_tunables.hpp"

#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/names.hpp"
#include "opal/mca/common/overlap/version_check.hpp"

extern "C" OVERLAP_EXPORT mca_btl_base_component_t mca_btl_ring_component;

namespace overlap::ring {

Tunables tunables;

namespace {

// The counters outlive the transport: MPI_T reads them by address until the component is closed.
Counters all_counters;

std::span<const TunableRow> rows() {
  static const auto table = tunable_rows(tunables);
  return table;
}

const mca_base_component_t* self() { return &mca_btl_ring_component.btl_version; }

int component_register() noexcept {
  return guarded([]() -> int {
    if (const int rc = register_tunables(self(), rows()); rc != OPAL_SUCCESS) return rc;
    return register_counters(self(), counter_rows());
  });
}

bool are_costs_readable() {
  const char* const text = tunables.costs;
  if (text == nullptr || *text == 0 || parse_costs(text)) return true;
  show_message("btl_ring_costs is \"" + std::string(text) +
               "\"; write the five numbers that ring-calibrate prints, each at most " +
               std::to_string(cost_max_ns) + ", with commas between them");
  return false;
}

int component_open() noexcept {
  return guarded([]() -> int {
    const SizeRow sizes[] = {OVERLAP_SIZE_ROW(mca_btl_base_descriptor_t),
                             OVERLAP_SIZE_ROW(mca_rcache_base_registration_t)};
    if (!check_running_openmpi("btl/ring", sizes)) return OPAL_ERR_NOT_AVAILABLE;
    int rc = check_tunables(self(), rows());
    if (rc == OPAL_SUCCESS && !are_costs_readable()) rc = OPAL_ERR_BAD_PARAM;
    // Here and not where a device was found: all ranks report, or none.
    if (rc == OPAL_SUCCESS && tunables.stats) request_report({"btl/ring", counter_rows()});
    return rc;
  });
}

std::string text_of(const char* text) { return text != nullptr ? text : ""; }

fabric::VerbsOptions verbs_options() {
  return {.device = text_of(tunables.device),
          .gid_index = tunables.verbs_gid_index,
          .service_level = tunables.verbs_service_level,
          .traffic_class = tunables.verbs_traffic_class,
          .mtu_bytes = tunables.verbs_mtu,
          .timeout_exponent = tunables.verbs_timeout,
          .retry_count = tunables.verbs_retry_count,
          .rnr_retry_count = tunables.verbs_rnr_retry_count,
          .rnr_timer = tunables.verbs_rnr_timer,
          .connect_timeout_ms = tunables.connect_timeout,
          .inline_bytes = tunables.verbs_inline,
          .read_depth = tunables.verbs_read_depth};
}

/// Simulated node of this process: ranks in order, some to each.
std::uint32_t soft_node() noexcept { return OPAL_PROC_MY_NAME.vpid / tunables.soft_node_processes; }

fabric::SoftOptions soft_options() {
  fabric::SoftOptions options;
  options.bandwidth_mbytes_s = tunables.soft_bandwidth;
  options.latency_ns = tunables.soft_latency;
  options.message_ns = tunables.soft_message;
  options.inline_bytes = tunables.soft_inline;
  options.node = soft_node();
  // What one mpirun has started, spawned processes too, shares a device; other jobs do not, unless
  // they are told to.
  options.domain = tunables.soft_domain != nullptr && *tunables.soft_domain != 0
                       ? tunables.soft_domain
                       : "job" + std::to_string(OPAL_PROC_MY_NAME.jobid >> 16U);
  return options;
}

/// Has the user named this BTL, so that its absence has to be explained?
bool asked_for() noexcept {
  return tunables.fabric != fabric_choice::auto_ ||
         is_named(opal_btl_base_framework.framework_selection, "ring");
}

/// Will pml/speculative be selected? It takes this BTL unasked. Others do not: an installation
/// changes nothing for who does not use it. Open MPI selects a PML that is not on its own list only
/// when the parameter pml names it, whatever its priority. Open MPI registers that parameter only
/// when the BTLs have been initialised; before, what mpirun has put into the environment is read,
/// and a parameter file is not.
bool speculative_in_use() noexcept {
  const int index = mca_base_var_find("ompi", "pml", nullptr, nullptr);
  const char* const* names = nullptr;
  const bool known = index >= 0 &&
                     mca_base_var_get_value(index, &names, nullptr, nullptr) == OPAL_SUCCESS &&
                     names != nullptr;
  return is_named(known ? *names : std::getenv("OMPI_MCA_pml"), "speculative");
}

int component_close() noexcept {
  // Under pml/speculative all ranks report together, whether they had a device or not.
  if (speculative_in_use()) return OPAL_SUCCESS;
  return guarded([]() -> int {
    std::fputs(report_alone("btl/ring").c_str(), stderr);
    return OPAL_SUCCESS;
  });
}

/// Open what the tunables ask for. @returns nullptr: there is none, and nobody has asked for it
std::unique_ptr<fabric::Device> open_fabric(Network& network) {
  network.fabric = tunables.fabric;
  if (network.fabric == fabric_choice::soft) {
    const fabric::SoftOptions options = soft_options();
    network.domain = std::hash<std::string>()(options.domain);
    return fabric::open_soft(options);
  }
  const fabric::VerbsOptions options = verbs_options();
  if (network.fabric == fabric_choice::verbs) return fabric::open_verbs(options);
  network.fabric = fabric_choice::verbs;
  std::string why;
  if (auto device = fabric::try_open_verbs(options, why)) return device;
  if (asked_for()) {
    throw fabric::Error(fabric::Error::Kind::no_device,
                        why +
                            " (btl_ring_fabric is auto; soft, a software device for experiments on "
                            "one host, is only used when it is asked for)");
  }
  return nullptr;
}

mca_btl_base_module_t** component_init(int* count, bool, bool) noexcept {
  *count = 0;
  if (!asked_for() && !speculative_in_use()) return nullptr;
  try {
    Network network;
    std::unique_ptr<fabric::Device> device = open_fabric(network);
    if (device == nullptr) return nullptr;
    transport = new Transport(std::move(device), network);
    ring_module.base.btl_component = &mca_btl_ring_component;
    fill_module(ring_module.base, *transport);
    if (publish(self(), transport->peers().address_bytes()) != OPAL_SUCCESS)
      throw std::runtime_error("btl/ring cannot publish its address");
    // Open MPI frees the list.
    auto** modules =
        static_cast<mca_btl_base_module_t**>(std::malloc(sizeof(mca_btl_base_module_t*)));
    if (modules == nullptr) throw std::bad_alloc();
    modules[0] = &ring_module.base;
    *count = 1;
    return modules;
  } catch (const std::exception& error) {
    if (asked_for() || tunables.verbose >= 1)
      show_message(std::string("btl/ring is not used: ") + error.what() + ".");
  }
  withdraw_capability(&ring_module.base);
  delete transport;
  transport = nullptr;
  return nullptr;
}

}  // namespace

Counters& counters() noexcept { return all_counters; }

std::span<const CounterRow> counter_rows() {
  using enum CounterClass;
  static const CounterRow table[] = {
      {"ring_sent", "Messages sent through rings.", counter, &all_counters.ring_sent},
      {"ring_received", "Messages received through rings.", counter, &all_counters.ring_received},
      {"channel_sent", "Messages sent through the send/receive channel.", counter,
       &all_counters.channel_sent},
      {"waking_sent",
       "Of these, messages that wake a thread of the other process if it sleeps, empty ones among "
       "them.",
       counter, &all_counters.waking_sent},
      {"channel_received", "Messages received through the send/receive channel.", counter,
       &all_counters.channel_received},
      {"ring_full",
       "Messages sent through the channel because the peer's ring was full or they were too long.",
       counter, &all_counters.ring_full},
      {"explicit_messages", "Messages that carried nothing but credits or the state of a ring.",
       counter, &all_counters.explicit_messages},
      {"held_messages", "Messages of the channel that came before their turn.", counter,
       &all_counters.held_messages},
      {"rings_opened", "Peers taken into the polling set.", counter, &all_counters.rings_opened},
      {"rings_closed", "Peers that have left the polling set.", counter,
       &all_counters.rings_closed},
      {"rings_declined", "Rings offered by peers and not taken.", counter,
       &all_counters.rings_declined},
      {"frequent_buffers", "Send buffers that are used often.", level,
       &all_counters.frequent_buffers},
      {"in_place_sent", "Messages sent without copying.", counter, &all_counters.in_place_sent},
      {"registrations", "Registrations of user memory that the cache did not have.", counter,
       &all_counters.registrations},
      {"table_stops", "Times that the table of buffers has stopped growing.", counter,
       &all_counters.table_stops},
      {"chained_sent", "Messages posted behind a put or get.", counter, &all_counters.chained_sent},
      {"put_bytes", "Bytes written to peers.", counter, &all_counters.put_bytes},
      {"get_bytes", "Bytes read from peers.", counter, &all_counters.get_bytes},
      {"atomics", "Atomic operations.", counter, &all_counters.atomics},
      {"connections", "Connections made.", counter, &all_counters.connections},
      {"memory_max_bytes", "Most memory registered at a time for rings and buffers.",
       high_watermark, &all_counters.memory_max_bytes},
  };
  return table;
}

}  // namespace overlap::ring

mca_btl_base_component_t mca_btl_ring_component =
    overlap::make_btl_component("ring", {.open = overlap::ring::component_open,
                                         .close = overlap::ring::component_close,
                                         .register_variables = overlap::ring::component_register,
                                         .init = overlap::ring::component_init,
                                         .progress = overlap::ring::progress});
