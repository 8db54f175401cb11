// Communicators come and go.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative.hpp"

#include "ompi/mca/common/overlap/receivers.hpp"

namespace overlap::speculative {
namespace {

/// MPI_COMM_WORLD's is 0; of those from groups it tells apart which have the same context.
std::optional<std::uint16_t> agreed_incarnation(const ompi_communicator_t& comm) noexcept {
  if (&comm == &ompi_mpi_comm_world.comm) return 0;
  const auto number = group_number(&comm);
  if (!number) return std::nullopt;
  return static_cast<std::uint16_t>(1 + *number / group_contexts % UINT16_MAX);
}

void add_communicator(ompi_communicator_t& comm) {
  NewCommunicator fresh;
  fresh.context = static_cast<std::uint16_t>(context_of(&comm));
  fresh.my_rank = comm.c_my_rank;
  fresh.size = static_cast<std::size_t>(comm.c_remote_group->grp_proc_count);
  fresh.agreed_incarnation = agreed_incarnation(comm);
  fresh.speculates = !is_of_session(&comm);
  fresh.host_data = &comm;
  // MPI_Comm_spawn, MPI_Comm_connect and MPI_Comm_accept agree by the run-time system and make
  // intercommunicators.
  fresh.agreed_by_messages = !OMPI_COMM_IS_INTER(&comm);
  Communicator& added = pml->protocol.add_communicator(fresh);
  comm.c_pml_comm = reinterpret_cast<mca_pml_comm_t*>(&added);
  if (const char* fault = pml->protocol.take_early(added)) abort_bad_message(fault, {});
  pml->actions.run();
}

/// A process of another job may end at any moment after MPI_Comm_disconnect, which the program
/// perhaps is in: a message that nobody takes ends this process by SIGPIPE over TCP.
bool stays(const Peer& peer) noexcept { return is_of_my_job(known_endpoint(peer)->proc()); }

/// Does MPI_Finalize free what the program has left? That is behind the last meeting of all
/// processes: none waits for anything, and some are gone. What a request was the last to hold, or
/// an attribute of MPI_COMM_SELF, goes before, and peers may still use its like.
bool is_freed_by_finalize() noexcept {
  return is_past_self_destruct() && !CompletionQueue::draining();
}

/// The last messages of its streams go out, its endpoints lose a user, it is gone.
void remove_communicator(ompi_communicator_t& comm) {
  auto* own = reinterpret_cast<Communicator*>(comm.c_pml_comm);
  if (own == nullptr) return;
  comm.c_pml_comm = nullptr;
  if (!pml->last_meeting_over && !is_freed_by_finalize()) {
    for (const Action& end : pml->protocol.end_streams(*own)) {
      if (end.peer->host_data != nullptr && stays(*end.peer)) pml->actions.send_control(end);
    }
  }
  for (std::size_t rank = 0; rank < own->size(); ++rank) {
    const Peer* peer = own->peer_if_known(static_cast<std::int32_t>(rank));
    if (peer != nullptr && peer->host_data != nullptr) known_endpoint(*peer)->drop_user();
  }
  pml->protocol.remove_communicator(*own);
}

/// With the first communicator, which most early messages are for: what the protocol holds for
/// communicators to come is bounded.
int start_to_receive() {
  const int rc = register_callbacks();
  if (rc == OMPI_SUCCESS) hand_over_early_messages();
  return rc;
}

}  // namespace

int add_comm(ompi_communicator_t* comm) noexcept {
  return guarded([comm]() -> int {
    const Entry entry;
    const std::uint32_t context = context_of(comm);
    if (context > UINT16_MAX) return OMPI_ERR_OUT_OF_RESOURCE;
    const auto agreed = agreed_incarnation(*comm);
    if (agreed && pml->protocol.has_agreed(static_cast<std::uint16_t>(context), *agreed))
      return OMPI_ERR_OUT_OF_RESOURCE;  // 2^31 have been made since
    add_communicator(*comm);
    return keeps_early_messages() ? start_to_receive() : OMPI_SUCCESS;
  });
}

int del_comm(ompi_communicator_t* comm) noexcept {
  if (pml == nullptr) return OMPI_SUCCESS;
  // Next Open MPI lets go of all communicators, whoever holds them, and there need not have been
  // any progress since a request that does has ended.
  if (comm == &ompi_mpi_comm_self.comm && is_freed_by_finalize()) end_last_meeting();
  return guarded([comm]() -> int {
    const Entry entry;
    remove_communicator(*comm);
    return OMPI_SUCCESS;
  });
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
