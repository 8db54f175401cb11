// MPI's receives.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

namespace overlap::speculative {
namespace {

/// Poll the network once before a large receive is posted, so that an RTS that has arrived is
/// matched (P1.4).
void look_early(Communicator& comm, ReceiveOp& op) {
  if (!tunables.early_progress || !pml->protocol.wants_early_progress(comm, op)) return;
  pml->driver.poll_thoroughly();
  if (pml->protocol.probe(comm, op.source, op.tag) != nullptr) {
    ++process_counters().early_progress_hits;
    op.found_by_look = true;
  }
}

/// What the request waits for, as neighbours see it.
node::Envelope wait_of(const ReceiveOp& op, const Communicator& comm) noexcept {
  return {
      .kind = node::WaitKind::message, .context = comm.context, .source = op.source, .tag = op.tag};
}

/// The receive may match a message that does not come eagerly.
[[gnu::noinline]] void expect_large(ReceiveRequest& request, Communicator& comm) {
  ReceiveOp& op = request.op;
  request.demand.add(pml->interrupts, wait_of(op, comm));
  if (op.source == any_source) {
    look_early(comm, op);
    return;
  }
  op.speculate = may_speculate(*endpoint_of(comm.peer(op.source)));
  // Without RTRs there is nothing to save: the copy is made here, now or in MPI_Wait.
  if (op.speculate) look_early(comm, op);
}

[[nodiscard]] bool may_be_large(const ReceiveOp& op, Communicator& comm) {
  if (op.source == any_source) return op.capacity_bytes > tunables.shared_memory_eager_limit;
  if (op.capacity_bytes == 0) return false;
  const Endpoint* endpoint = endpoint_of(comm.peer(op.source));
  return endpoint != nullptr && op.capacity_bytes > endpoint->eager_bytes;
}

/// An eager message has come ahead of its receive. Those of matched probes always do.
[[gnu::noinline]] void note_ahead(const Arrived& message) noexcept {
  if (!ExchangePace::concerns(message.payload_bytes)) return;
  // Others need the processor, or the lock.
  if (opal_progress_yield_when_idle || opal_using_threads()) return;
  Endpoint* const sender = known_endpoint(*message.peer);
  // Elsewhere nothing is returned to the sender of a message.
  if (sender != nullptr && is_shared_memory(sender->eager_rails()[0].btl()))
    sender->exchange_pace.note_ahead(steady_now_ns);
}

// These two are in every MPI_Irecv and MPI_Recv: a call each, with all its registers saved, is a
// tenth of what a small message costs here.
[[gnu::always_inline]] inline ReceiveRequest& make(void* buffer, std::size_t count,
                                                   ompi_datatype_t* type, int source, int tag,
                                                   ompi_communicator_t* comm, bool persistent) {
  ReceiveRequest& request = take_receive_request();
  MCA_PML_BASE_RECV_REQUEST_INIT(&request.base, buffer, count, type, source, tag, comm, persistent);
  request.converter_ready = false;
  request.contiguous = is_contiguous(*type, count);
  request.caller_waits = false;
  request.in_call = !persistent;
  request.op.source = source;
  request.op.tag = tag;
  request.op.capacity_bytes = type->super.size * count;
  return request;
}

[[gnu::always_inline]] inline void start(ReceiveRequest& request) {
  activate(request);
  pml->send_runs.note_receive();
  ReceiveOp& op = request.op;
  Communicator& comm = protocol_of(request.base.req_base.req_comm);
  op.speculate = false;
  op.found_by_look = false;
  if (may_be_large(op, comm)) [[unlikely]]
    expect_large(request, comm);
  Arrived* eager = pml->protocol.post_receive(comm, op);
  pml->actions.run();  // an acknowledgement that goes out holds the request
  if (eager == nullptr) return;
  note_ahead(*eager);
  finish_arrived(request, *eager);
}

/// @thread  progress lock held
[[gnu::always_inline]] inline ReceiveRequest& start_new(void* buffer, std::size_t count,
                                                        ompi_datatype_t* type, int source, int tag,
                                                        ompi_communicator_t* comm, bool waits) {
  ReceiveRequest& made = make(buffer, count, type, source, tag, comm, false);
  made.caller_waits = waits;
  start(made);
  made.in_call = false;
  return made;
}

}  // namespace

ReceiveRequest* make_receive(void* buffer, std::size_t count, ompi_datatype_t* type, int source,
                             int tag, ompi_communicator_t* comm, bool persistent) {
  return &make(buffer, count, type, source, tag, comm, persistent);
}

void activate(ReceiveRequest& request) noexcept {
  MCA_PML_BASE_RECV_START(&request.base);
  request.life.start();
}

void start_receive(ReceiveRequest& request) { start(request); }

void finish_arrived(ReceiveRequest& request, Arrived& message) {
  pml->delivery.deliver(request.op, 0, {message.payload(), message.payload_bytes});
  Arrived::destroy(&message);
  end_eager(request);
}

int take_result(ReceiveRequest& request, ompi_status_public_t* status) {
  const ompi_status_public_t& result = request.ompi().req_status;
  if (status != MPI_STATUS_IGNORE) OMPI_COPY_STATUS(status, result, false);
  const int rc = result.MPI_ERROR;
  give_up(request);
  return rc;
}

int irecv_init(void* buffer, std::size_t count, ompi_datatype_t* type, int source, int tag,
               ompi_communicator_t* comm, ompi_request_t** request) noexcept {
  return guarded([&]() -> int {
    const Entry entry;
    ReceiveRequest* made = make_receive(buffer, count, type, source, tag, comm, true);
    made->base.req_base.req_pml_complete = true;
    *request = &made->ompi();
    return OMPI_SUCCESS;
  });
}

int irecv(void* buffer, std::size_t count, ompi_datatype_t* type, int source, int tag,
          ompi_communicator_t* comm, ompi_request_t** request) noexcept {
  return guarded([&]() -> int {
    const LeavingEntry entry(pml->interrupts);
    *request = &start_new(buffer, count, type, source, tag, comm, false).ompi();
    return OMPI_SUCCESS;
  });
}

int recv(void* buffer, std::size_t count, ompi_datatype_t* type, int source, int tag,
         ompi_communicator_t* comm, ompi_status_public_t* status) noexcept {
  return guarded([&]() -> int {
    ReceiveRequest* made = nullptr;
    {
      const Entry entry;
      made = &start_new(buffer, count, type, source, tag, comm, true);
    }
    wait_complete(made->ompi());
    return take_result(*made, status);
  });
}

}  // namespace overlap::speculative
