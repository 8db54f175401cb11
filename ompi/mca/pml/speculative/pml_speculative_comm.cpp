// Communicators come and go; messages for one that does not exist here yet are kept.
#include "pml_speculative.hpp"

namespace overlap::speculative {

Pml::Pml(const Tunables& values)
    : tunables(values),
      protocol(
          [&values] {
            Config config;
            config.speculation = values.speculation;
            config.hazard_policy = values.hazard_control == hazard_control_choice::eager_flag
                                       ? HazardPolicy::eager_flag
                                       : HazardPolicy::envelope_sequence;
            config.adaptation = {values.adaptation, values.adaptation_threshold,
                                 values.adaptation_min_sample, values.adaptation_resume_interval};
            config.rtr_min_bytes = values.rtr_min;
            config.mispredictions_max = values.misprediction_limit;
            config.envelopes.envelopes_max = values.envelopes;
            return config;
          }(),
          *this, process_counters()) {}

Pml::~Pml() {
  for (Communicator* comm : communicators_) {
    if (comm != nullptr) drop_links(*comm);
    delete comm;
  }
}

void Pml::add_communicator(ompi_communicator_t& comm) {
  const auto context = static_cast<std::uint16_t>(comm_index(&comm));
  // MPI_COMM_WORLD is the only communicator whose context never had, and never will have, another meaning between two processes
  // that speak before the first message told the incarnation.
  std::uint16_t incarnation = 0;
  if (&comm != &ompi_mpi_comm_world.comm) {
    if (++last_incarnation_ == 0) last_incarnation_ = 1;
    incarnation = last_incarnation_;
  }
  auto own = std::make_unique<Communicator>(
      context, comm.c_my_rank, static_cast<std::size_t>(comm.c_remote_group->grp_proc_count),
      incarnation);
  own->watch_every_eager = tunables.speculation && protocol.watches_every_eager();
  if (communicators_.size() <= context) communicators_.resize(context + 1U, nullptr);
  Communicator* added = own.release();
  communicators_[context] = added;
  comm.c_pml_comm = reinterpret_cast<mca_pml_comm_t*>(added);

  std::vector<std::vector<std::byte>> still_early;
  adding_ = &comm;
  for (std::vector<std::byte>& message : early_) {
    if (load<SequencedHeader>(message).context != context) {
      still_early.push_back(std::move(message));
    } else if (const char* fault = protocol.on_sequenced(*added, message)) {
      refuse(fault, message);
    }
  }
  early_ = std::move(still_early);
  run_actions();
  adding_ = nullptr;
}

void Pml::remove_communicator(ompi_communicator_t& comm) noexcept {
  auto* own = reinterpret_cast<Communicator*>(comm.c_pml_comm);
  if (own == nullptr) return;
  communicators_[own->context] = nullptr;
  comm.c_pml_comm = nullptr;
  constexpr std::size_t freed_max = 1024;
  for (std::size_t rank = 0; rank < own->size(); ++rank) {
    const Peer* peer = own->peer_if_known(static_cast<std::int32_t>(rank));
    // Only to somebody whose RTRs were seen: a REVOKE follows an RTR.
    if (peer == nullptr || peer->host_data == nullptr || peer->expected_reverse == 0) continue;
    if (freed_streams_.size() == freed_max) freed_streams_.pop_front();
    freed_streams_.push_back({own->context, own->incarnation, own->my_rank, peer->rank,
                              peer->next_sequence,
                              static_cast<PeerLink*>(peer->host_data)->endpoint});
  }
  drop_links(*own);
  delete own;
}

void Pml::answer_for_freed(const SequencedHeader& revoke) {
  for (auto stream = freed_streams_.rbegin(); stream != freed_streams_.rend(); ++stream) {
    if (stream->context != revoke.context || stream->incarnation != revoke.incarnation ||
        stream->peer_rank != revoke.source)
      continue;
    const RevokeHeader answer{{kind_version(Kind::revoke_ack), 0, stream->context, stream->my_rank,
                               revoke.tag, static_cast<std::uint16_t>(stream->next_sequence++),
                               stream->incarnation}};
    process_counters().extra_control_bytes += sizeof answer;
    // A link of its own: the communicator's is gone. It stays for as long as the job, with what may wait on it.
    auto* link = new PeerLink;
    link->endpoint = stream->endpoint;
    link->unsent = new Unsent;
    send_bytes(*link, mca_bml_base_btl_array_get_next(&stream->endpoint->btl_eager), tag_control,
               std::as_bytes(std::span(&answer, 1)));
    return;
  }
}

void Pml::keep_early(std::span<const std::byte> message) {
  early_.emplace_back(message.begin(), message.end());
}

int add_comm(ompi_communicator_t* comm) noexcept {
  if (comm_index(comm) > UINT16_MAX) return OMPI_ERR_OUT_OF_RESOURCE;
  return guarded([comm]() -> int {
    const Entry entry;
    pml->add_communicator(*comm);
    return OMPI_SUCCESS;
  });
}

int del_comm(ompi_communicator_t* comm) noexcept {
  if (pml == nullptr) return OMPI_SUCCESS;
  // The last request of a communicator that its user has freed takes it along, from under the lock.
  const CallbackEntry entry;
  pml->remove_communicator(*comm);
  return OMPI_SUCCESS;
}

int dump(ompi_communicator_t* comm, int) noexcept {
  const Entry entry;
  const Communicator& own = protocol_of(comm);
  opal_output(0,
              "pml/speculative: communicator %s context %u rank %d of %zu: %llu receives posted, "
              "%llu messages unexpected",
              comm->c_name, static_cast<unsigned>(own.context), own.my_rank, own.size(),
              static_cast<unsigned long long>(own.posted_count),
              static_cast<unsigned long long>(own.unexpected_count));
  return OMPI_SUCCESS;
}

}  // namespace overlap::speculative
