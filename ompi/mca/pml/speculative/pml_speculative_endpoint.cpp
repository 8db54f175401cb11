// Endpoints of this PML: the first message to a process, and what its messages may be like.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative.hpp"

#include <unordered_set>

#include "ompi/mca/common/overlap/receivers.hpp"

namespace overlap::speculative {
namespace {

/// Largest eager payload: what the tunables say, what every eager BTL of the endpoint sends at
/// once.
std::uint64_t eager_bytes(const Endpoint& endpoint, const Tunables& values) noexcept {
  const std::uint64_t header_bytes = sizeof(EraPrefix) + sizeof(EagerSyncHeader);
  const std::uint64_t most = endpoint.eager_most_bytes() - header_bytes;
  if (values.eager_limit != 0) return std::min<std::uint64_t>(values.eager_limit, most);
  if (endpoint.copies_itself())
    return std::min<std::uint64_t>(values.shared_memory_eager_limit, most);
  const std::uint64_t preferred = endpoint.eager_preferred_bytes();
  return std::min(preferred > header_bytes ? preferred - header_bytes : 0, most);
}

/// Names of the BTLs of this process, for messages.
std::string btl_names() {
  std::string names;
  for_each_btl([&names](mca_btl_base_module_t& btl) {
    const std::string name = btl.btl_component->btl_version.mca_component_name;
    if (("," + names + ",").find("," + name + ",") == std::string::npos)
      names += (names.empty() ? "" : ",") + name;
  });
  return names.empty() ? "none" : names;
}

/// Of the processes of a host the first names one peer; others meet others for the same reason.
void show_unreachable(const ompi_proc_t& peer) {
  const ompi_proc_t* self = ompi_proc_local();
  const opal_process_name_t& mine = self->super.proc_name;
  const opal_process_name_t& its = peer.super.proc_name;
  show_message(
      topic_text("unreachable", rank_text(mine, its).c_str(), hostname(self).c_str(),
                 rank_text(its, mine).c_str(), hostname(&peer).c_str(), btl_names().c_str()),
      "pml/speculative: unreachable");
}

/// The PML of a job, as its first process has published it; empty when it is not known.
std::string pml_of_job(opal_process_name_t first) {
  // Open MPI's own name for what mca_pml_base_pml_selected publishes.
  mca_base_component_t base{};
  std::strcpy(base.mca_type_name, "pml");
  std::strcpy(base.mca_component_name, "base");
  base.mca_component_major_version = 2;
  const std::vector<std::byte> bytes = lookup_published(&base, first);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

/// Do the processes of other jobs among these (spawned, connected) run this PML? Open MPI's check
/// compares with the first process of one's own job only; messages of two PMLs end in a crash.
bool jobs_run_speculative(ompi_proc_t** procs, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const opal_process_name_t& name = procs[i]->super.proc_name;
    if (is_of_my_job(*procs[i]) || name.vpid != 0) continue;
    const std::string theirs = pml_of_job(name);
    if (theirs.empty() || theirs == "speculative") continue;
    const opal_process_name_t& mine = ompi_proc_local()->super.proc_name;
    show_message(topic_text("another PML", rank_text(name, mine).c_str(),
                            hostname(procs[i]).c_str(), theirs.c_str()));
    return false;
  }
  return true;
}

/// A second thread may poll Open MPI's own BTL for shared memory, under our lock; of others that is
/// not known.
void serve_node(Endpoint& endpoint) noexcept {
  for (const Rail& rail : endpoint.eager_rails()) {
    if (is_shared_memory(rail.btl())) pml->interrupts.serve_node(rail.btl());
  }
  if (pml->interrupts.serves_node()) endpoint.look_for_neighbour();
}

/// The same for a BTL that says so, and wakes who sleeps: this process, and the peer, which may
/// have other parameters.
void serve_network(const Endpoint& endpoint) noexcept {
  for (const Rail& rail : endpoint.eager_rails()) {
    if (rail.capability == nullptr || rail.capability->expect == nullptr) continue;
    const bool serves = pml->interrupts.serve_network(*rail.capability);
    const bool wakes = sleeps_on_adapter(endpoint.proc());
    if (wakes) pml->interrupts.wake_others(*rail.capability);
    // Where it cannot be expected now, an MPI thread takes its first message.
    if (serves || wakes)
      static_cast<void>(rail.capability->expect(&rail.btl(), rail.bml_btl->btl_endpoint,
                                                wakes ? size_of_job() : 0));
  }
}

Endpoint* connect(ompi_proc_t& proc) {
  // A peer that is met for the first time here has not passed add_procs.
  ompi_proc_t* procs = &proc;
  if (mca_pml_base_pml_check_selected("speculative", &procs, 1) != OMPI_SUCCESS) return nullptr;
  if (proc.super.proc_arch != ompi_proc_local()->super.proc_arch) {
    show_topic("other architecture", hostname(&proc).c_str());
    return nullptr;
  }
  Endpoint* made = pml->endpoints.make(proc);
  if (made == nullptr) {
    show_unreachable(proc);
    return nullptr;
  }
  pml->driver.adopt_btls();
  // Only a BTL that messages of ours go through is worth a system call now and then; the others'
  // connections (tcp is initialised on every host) are accepted by opal_progress.
  if (made->works_by_events()) pml->driver.need_events();
  if (made->copies_itself()) serve_node(*made);
  serve_network(*made);
  made->eager_bytes = eager_bytes(*made, tunables);
  if (tunables.explain) explain_paths(*made);
  return made;
}

}  // namespace

std::string rank_text(const opal_process_name_t& name, const opal_process_name_t& other) {
  // The upper half of a job id is mpirun's, the same for all.
  constexpr opal_jobid_t local = 0xffff;
  const std::string text = "rank " + std::to_string(name.vpid);
  return name.jobid == other.jobid ? text : text + " of job " + std::to_string(name.jobid & local);
}

RtrFacts rtr_facts(const Endpoint& endpoint) noexcept {
  return {.speculation = true,
          .self = endpoint.is_self(),
          .other_job = !is_of_my_job(endpoint.proc()) && offers_memory(endpoint),
          .copies_itself = endpoint.copies_itself(),
          .shared_memory_always = tunables.shared_memory == shared_memory_choice::always,
          .only_fragments = endpoint.works_by_events() && !offers_memory(endpoint) &&
                            InterruptThread::is_possible()};
}

bool may_speculate(const Endpoint& endpoint) noexcept {
  return choose_rtr(rtr_facts(endpoint)) == RtrUse::sent;
}

Endpoint* endpoint_of_process(ompi_proc_t& proc) {
  Endpoint* known = Endpoints::find(proc);
  return known != nullptr ? known : connect(proc);
}

namespace {

/// @returns  `endpoint`
Endpoint* use(Peer& peer, Endpoint* endpoint) noexcept {
  if (endpoint == nullptr) return nullptr;
  endpoint->add_user();
  peer.host_data = endpoint;
  return endpoint;
}

}  // namespace

Endpoint* make_endpoint(Peer& peer) {
  ompi_proc_t* proc = ompi_comm_peer_lookup(communicator_of(*peer.comm), peer.rank);
  return proc != nullptr ? use(peer, endpoint_of_process(*proc)) : nullptr;
}

Endpoint* made_endpoint_of(Peer& peer) noexcept {
  if (known_endpoint(peer) != nullptr) return known_endpoint(peer);
  // Open MPI's own lookups may make the process, or search a table that others change.
  const ompi_group_t& group = *communicator_of(*peer.comm)->c_remote_group;
  if (!OMPI_GROUP_IS_DENSE(&group)) return nullptr;
  const std::atomic_ref<ompi_proc_t*> entry(group.grp_proc_pointers[peer.rank]);
  // Acquire: pairs with the exchange by which Open MPI's lookup, in any thread, puts the process
  // that it has made in the place of its name.
  ompi_proc_t* const proc = entry.load(std::memory_order_acquire);
  const opal_process_name_t name =
      ompi_proc_is_sentinel(proc)
          ? ompi_proc_sentinel_to_name(reinterpret_cast<std::uintptr_t>(proc))
          : proc->super.proc_name;
  return use(peer, pml->endpoints.find(name));
}

int add_procs(ompi_proc_t** procs, std::size_t count) noexcept {
  if (count == 0) return OMPI_SUCCESS;
  return guarded([&]() -> int {
    if (const int rc = mca_pml_base_pml_check_selected("speculative", procs, count);
        rc != OMPI_SUCCESS) {
      return rc;
    }
    if (!jobs_run_speculative(procs, count)) return OMPI_ERR_UNREACH;
    opal_bitmap_t reachable;
    OBJ_CONSTRUCT(&reachable, opal_bitmap_t);
    int rc = opal_bitmap_init(&reachable, static_cast<int>(count));
    if (rc == OMPI_SUCCESS) {
      const Entry entry;  // the interrupt thread may be in one of these BTLs
      rc = mca_bml.bml_add_procs(count, procs, &reachable);
    }
    for (std::size_t i = 0; rc == OMPI_ERR_UNREACH && i < count; ++i) {
      if (opal_bitmap_is_set_bit(&reachable, static_cast<int>(i))) continue;
      show_unreachable(*procs[i]);
      break;
    }
    OBJ_DESTRUCT(&reachable);
    if (rc != OMPI_SUCCESS) return rc;
    for_each_btl([&rc](mca_btl_base_module_t& btl) {
      if ((btl.btl_flags & MCA_BTL_FLAGS_SEND) == 0 || btl.btl_eager_limit >= control_max_bytes) {
        return;
      }
      const char* name = btl.btl_component->btl_version.mca_component_name;
      show_topic("eager limit too small", name, btl.btl_eager_limit, name, control_max_bytes);
      rc = OMPI_ERR_BAD_PARAM;
    });
    if (rc != OMPI_SUCCESS) return rc;
    const Entry entry;
    pml->driver.adopt_btls();
    rc = register_error_callback();
    // Before the first communicator, messages are still kept.
    return rc != OMPI_SUCCESS || keeps_early_messages() ? rc : register_callbacks();
  });
}

namespace {

/// Open MPI knows a process twice whose connection btl/tcp accepted before MPI_Init listed those of
/// the job, and both share that BTL's endpoint: it must end once.
std::vector<ompi_proc_t*> distinct(std::span<ompi_proc_t* const> procs) {
  std::unordered_set<std::uint64_t> known;
  std::vector<ompi_proc_t*> kept;
  for (ompi_proc_t* proc : procs) {
    if (proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] == nullptr) continue;
    if (known.insert(process_number(proc->super.proc_name)).second) kept.push_back(proc);
  }
  return kept;
}

}  // namespace

int del_procs(ompi_proc_t** procs, std::size_t count) noexcept {
  if (pml != nullptr) {
    pml->interrupts.stop();
    const CallbackEntry entry;
    processes_gone = true;
    for (std::size_t i = 0; i < count; ++i) pml->endpoints.retire(*procs[i]);
  }
  return guarded([&] {
    std::vector<ompi_proc_t*> all = distinct({procs, count});
    return mca_bml.bml_del_procs(all.size(), all.data());
  });
}

}  // namespace overlap::speculative
