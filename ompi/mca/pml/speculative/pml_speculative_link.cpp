// How peers are reached: endpoints of the BML, limits of their BTLs, registered memory.
#include "pml_speculative.hpp"

namespace overlap::speculative {
namespace {

bool over_shared_memory(const mca_btl_base_module_t& btl) noexcept {
  const std::string_view name = btl.btl_component->btl_version.mca_component_name;
  return name == "vader" || name == "sm";
}

/// Largest eager payload: what the tunables say, what every eager BTL of this endpoint can send at once.
std::uint64_t eager_limit(mca_bml_base_endpoint_t& endpoint, const Tunables& values) noexcept {
  std::uint64_t limit_bytes = UINT64_MAX;
  const std::size_t count = mca_bml_base_btl_array_get_size(&endpoint.btl_eager);
  for (std::size_t i = 0; i < count; ++i) {
    const mca_btl_base_module_t& btl =
        *mca_bml_base_btl_array_get_index(&endpoint.btl_eager, i)->btl;
    const std::uint64_t header_bytes = sizeof(EagerSyncHeader);
    const std::uint64_t most = std::max(btl.btl_eager_limit, btl.btl_max_send_size) - header_bytes;
    std::uint64_t wanted =
        btl.btl_eager_limit > header_bytes ? btl.btl_eager_limit - header_bytes : 0;
    if (values.eager_limit != 0) {
      wanted = values.eager_limit;
    } else if (over_shared_memory(btl)) {
      wanted = values.shared_memory_eager_limit;
    }
    limit_bytes = std::min({limit_bytes, wanted, most});
  }
  return limit_bytes;
}

/// The BTLs that data goes through: of those that can access memory the ones that messages go through as well. The BML lists others
/// too, for one-sided calls: a network that also reaches the processes of this node, beside shared memory.
std::vector<mca_bml_base_btl_t*> find_rails(mca_bml_base_endpoint_t& endpoint) {
  std::vector<mca_bml_base_btl_t*> rails;
  for (std::size_t i = 0; i < mca_bml_base_btl_array_get_size(&endpoint.btl_rdma); ++i) {
    mca_bml_base_btl_t* rail = mca_bml_base_btl_array_get_index(&endpoint.btl_rdma, i);
    if (mca_bml_base_btl_array_find(&endpoint.btl_send, rail->btl) != nullptr)
      rails.push_back(rail);
  }
  return rails;
}

/// Look up what the link's BTLs can do, once: messages only look at the result.
void learn_capabilities(PeerLink& link) {
  const auto visit = [](mca_bml_base_btl_array_t& rails, auto&& look) {
    for (std::size_t i = 0; i < mca_bml_base_btl_array_get_size(&rails); ++i)
      look(*mca_bml_base_btl_array_get_index(&rails, i)->btl);
  };
  const auto note = [&link](const mca_btl_base_module_t& btl) {
    const BtlCapability* capability = find_capability(&btl);
    if (capability != nullptr && link.capability_of(btl) == nullptr)
      link.capable.push_back({&btl, capability});
  };
  visit(link.endpoint->btl_eager, note);
  for (const mca_bml_base_btl_t* rail : link.rails) note(*rail->btl);
  visit(link.endpoint->btl_eager, [&link](const mca_btl_base_module_t& btl) {
    link.may_keep = link.may_keep || link.keeps_messages(btl);
    const BtlCapability* capability = link.capability_of(btl);
    if (capability == nullptr || capability->in_place_min_bytes == 0) return;
    link.in_place_bytes =
        std::min<std::uint64_t>(link.in_place_bytes, capability->in_place_min_bytes);
  });
}

}  // namespace

PeerLink* Pml::make_link(Peer& peer) {
  ompi_communicator_t* comm = ompi_comm_lookup(peer.comm->context);
  if (comm == nullptr) comm = adding_;
  ompi_proc_t* proc = ompi_comm_peer_lookup(comm, peer.rank);
  if (proc == nullptr) return nullptr;
  // A peer that is met for the first time here has not passed add_procs.
  if (mca_pml_base_pml_check_selected("speculative", &proc, 1) != OMPI_SUCCESS) return nullptr;
  mca_bml_base_endpoint_t* endpoint = mca_bml_base_get_endpoint(proc);
  if (endpoint == nullptr || mca_bml_base_btl_array_get_size(&endpoint->btl_eager) == 0) {
    show_topic("unreachable",
               ("rank " + std::to_string(peer.rank) + " on " + hostname(proc)).c_str());
    return nullptr;
  }
  own_btl_progress();
  auto* link = new PeerLink;
  link->proc = proc;
  link->endpoint = endpoint;
  link->eager_bytes = eager_limit(*endpoint, tunables);
  link->plain_bytes = proc->super.proc_arch == ompi_proc_local()->super.proc_arch;
  link->is_self = proc == ompi_proc_local();
  link->rails = find_rails(*endpoint);
  learn_capabilities(*link);
  link->unsent = new Unsent;
  peer.host_data = link;
  return link;
}

void Pml::drop_links(Communicator& comm) noexcept {
  for (std::size_t rank = 0; rank < comm.size(); ++rank) {
    Peer* peer = comm.peer_if_known(static_cast<std::int32_t>(rank));
    if (peer == nullptr || peer->host_data == nullptr) continue;
    auto* dropped = static_cast<PeerLink*>(peer->host_data);
    std::erase(waiting_links_,
               dropped);  // what still waits there concerns a communicator that nobody has any more
    if (dropped->unsent->messages == 0) {
      delete dropped->unsent;
    } else {
      dropped->unsent->orphaned = true;
    }
    delete dropped;
  }
}

/// Choose a rail for a request's data and make its memory known there, for access by the other side.
///
/// @returns  false: no rail, or no registered memory left; the data must be pushed
bool Pml::register_memory(Registration& registration, PeerLink& link, void* base,
                          std::uint64_t bytes, std::uint32_t flags) {
  if (registration.bml_btl != nullptr)
    return registration.handle != nullptr || registration.bml_btl->btl->btl_register_mem == nullptr;
  if (!link.memory_access) return false;
  const std::uint32_t needed =
      (flags & MCA_BTL_REG_FLAG_REMOTE_READ) != 0 ? MCA_BTL_FLAGS_GET : MCA_BTL_FLAGS_PUT;
  for (std::size_t i = 0; i < link.rails.size(); ++i) {
    mca_bml_base_btl_t* rail = link.rails[link.next_rail];
    link.next_rail = link.next_rail + 1 == link.rails.size() ? 0 : link.next_rail + 1;
    const mca_btl_base_module_t& btl = *rail->btl;
    if ((rail->btl_flags & needed) == 0 || btl.btl_registration_handle_size > key_max_bytes)
      continue;
    if (btl.btl_register_mem == nullptr) {
      registration = {rail, nullptr};
      return true;
    }
    mca_btl_base_registration_handle_t* handle = nullptr;
    mca_bml_base_register_mem(rail, base, bytes, flags, &handle);
    if (handle == nullptr) continue;
    registration = {rail, handle};
    return true;
  }
  return false;
}

void Pml::deregister(Registration& registration) noexcept {
  if (registration.handle != nullptr) [[unlikely]]
    mca_bml_base_deregister_mem(registration.bml_btl, registration.handle);
  registration = {};
}

void Pml::own_btl_progress() noexcept {
  event_driven_ = false;
  for_each_btl([this](mca_btl_base_module_t& btl) {
    const mca_btl_base_component_progress_fn_t function = btl.btl_component->btl_progress;
    const std::string_view name = btl.btl_component->btl_version.mca_component_name;
    if (function == nullptr) {
      if (name != "self") event_driven_ = true;
      return;
    }
    // Only functions that the BML has registered: a BTL that nobody uses may not be ready to be called.
    if (btl_progress_count_ == btl_progress_max ||
        opal_progress_unregister(function) != OPAL_SUCCESS)
      return;
    const auto end = btl_progress_.begin() + btl_progress_count_;
    if (std::find(btl_progress_.begin(), end, function) == end)
      btl_progress_[btl_progress_count_++] = function;
  });
  more_to_poll_ = event_driven_ || has_pending();
}

void Pml::tell_fallback(const PeerLink& link, const char* what) noexcept {
  if (tunables.verbose < 1 || fallback_told_) return;
  fallback_told_ = true;
  opal_output(0,
              "pml/speculative: %s of memory of a process on %s was refused; its messages are sent "
              "in fragments instead. On "
              "shared memory this usually means that the kernel forbids cross-memory attach "
              "(kernel.yama.ptrace_scope, a container's "
              "seccomp profile or user namespace).",
              what, hostname(link.proc).c_str());
}

}  // namespace overlap::speculative
