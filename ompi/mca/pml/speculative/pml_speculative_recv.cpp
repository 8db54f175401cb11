// MPI's receives.
#include "pml_speculative.hpp"

namespace overlap::speculative {
namespace {

/// Prepare the convertor of a receive whose data is not plain bytes. The sender must be known.
void prepare_convertor(ReceiveRequest& request) {
  mca_pml_base_request_t& base = request.base.req_base;
  const PeerLink* link = pml->link(*request.op.peer);
  const ompi_proc_t* proc = link != nullptr ? link->proc : ompi_proc_local();
  base.req_proc = const_cast<ompi_proc_t*>(proc);
  opal_convertor_copy_and_prepare_for_recv(proc->super.proc_convertor, &base.req_datatype->super,
                                           base.req_count, base.req_addr, 0, &base.req_convertor);
  request.converter_ready = true;
}

/// Can bytes from this peer simply be copied into the buffer?
bool is_plain(const ReceiveRequest& request) noexcept {
  if (!request.contiguous) return false;
  const auto* link = static_cast<const PeerLink*>(request.op.peer->host_data);
  return link == nullptr || link->plain_bytes;
}

/// The rest of a blocking receive: wait, report, give the request back. @thread  lock NOT held
int finish_blocking(ReceiveRequest& request, ompi_status_public_t* status) {
  wait_complete(request.ompi());
  const ompi_status_public_t& result = request.ompi().req_status;
  if (status != MPI_STATUS_IGNORE) OMPI_COPY_STATUS(status, result, false);
  const int rc = result.MPI_ERROR;
  const Entry entry;
  release(request);
  return rc;
}

/// Look at the network once before a large receive is posted, so that an RTS that has arrived is matched (P1.4).
void look_early(Communicator& comm, const ReceiveOp& op) {
  if (!tunables.early_progress || pml->protocol.probe(comm, op.source, op.tag) != nullptr) return;
  pml->poll();
  if (pml->protocol.probe(comm, op.source, op.tag) != nullptr)
    ++process_counters().early_progress_hits;
}

/// Hand an eager message that had arrived before to the receive that matches it.
void finish_arrived(ReceiveRequest& request, Arrived& message) {
  pml->deliver(request.op, 0, {message.payload(), message.payload_bytes});
  Arrived::destroy(&message);
  pml->complete(request, false);
}

/// Make a request active, with nothing left of its last message.
void activate(ReceiveRequest& request) noexcept {
  MCA_PML_BASE_RECV_START(&request.base);
  request.protocol_done = false;
  request.transfer = {};
}

/// The request that a matched probe's message becomes.
ReceiveRequest* receive_message(void* buffer, std::size_t count, ompi_datatype_t* type,
                                ompi_message_t** message) {
  auto* taken = static_cast<Arrived*>((*message)->req_ptr);
  ReceiveRequest* request =
      make_receive(buffer, count, type, taken->peer->rank, taken->tag, (*message)->comm, false);
  activate(*request);
  request->op.peer = taken->peer;
  if (Arrived* eager = pml->protocol.receive_taken(*taken, request->op))
    finish_arrived(*request, *eager);
  pml->run_actions();
  ompi_message_return(*message);
  *message = MPI_MESSAGE_NULL;
  return request;
}

}  // namespace

ReceiveRequest* make_receive(void* buffer, std::size_t count, ompi_datatype_t* type, int source,
                             int tag, ompi_communicator_t* comm, bool persistent) {
  ReceiveRequest* request = pml->spare_receive;
  if (request != nullptr) [[likely]] {
    pml->spare_receive = nullptr;
  } else {
    request = reinterpret_cast<ReceiveRequest*>(opal_free_list_get(&mca_pml_base_recv_requests));
    if (request == nullptr) throw std::bad_alloc();
  }
  MCA_PML_BASE_RECV_REQUEST_INIT(&request->base, buffer, count, type, source, tag, comm,
                                 persistent);
  request->protocol_done = true;
  request->freed = false;
  request->converter_ready = false;
  request->contiguous =
      opal_datatype_is_contiguous_memory_layout(
          &type->super, static_cast<std::int32_t>(count > INT32_MAX ? INT32_MAX : count)) != 0;
  request->op.source = source;
  request->op.tag = tag;
  request->op.capacity_bytes = type->super.size * count;
  return request;
}

void start_receive(ReceiveRequest& request) {
  activate(request);
  ReceiveOp& op = request.op;
  Communicator& comm = protocol_of(request.base.req_base.req_comm);
  op.speculate = false;
  if (op.source != any_source && op.capacity_bytes > 0) {
    Peer& peer = comm.peer(op.source);
    const PeerLink* link = pml->link(peer);
    if (link != nullptr && op.capacity_bytes > link->eager_bytes) [[unlikely]] {
      op.speculate = !link->is_self;
      look_early(comm, op);
    }
  } else if (op.source == any_source && op.capacity_bytes > tunables.shared_memory_eager_limit) {
    look_early(comm, op);
  }
  if (Arrived* eager = pml->protocol.post_receive(comm, op)) finish_arrived(request, *eager);
  pml->run_actions();
}

void Pml::deliver(ReceiveOp& op, std::uint64_t offset_bytes, std::span<const std::byte> payload) {
  ReceiveRequest& request = request_of(op);
  const std::uint64_t room_bytes =
      op.capacity_bytes > offset_bytes ? op.capacity_bytes - offset_bytes : 0;
  const std::size_t bytes = std::min<std::uint64_t>(payload.size(), room_bytes);
  if (bytes == 0) return;
  mca_pml_base_request_t& base = request.base.req_base;
  if (is_plain(request)) [[likely]] {
    std::memcpy(static_cast<char*>(base.req_addr) + base.req_datatype->super.true_lb + offset_bytes,
                payload.data(), bytes);
    return;
  }
  if (!request.converter_ready) prepare_convertor(request);
  std::size_t position = offset_bytes;
  opal_convertor_set_position(&base.req_convertor, &position);
  iovec piece{const_cast<std::byte*>(payload.data()), bytes};
  std::uint32_t pieces = 1;
  std::size_t unpacked = bytes;
  opal_convertor_unpack(&base.req_convertor, &piece, &pieces, &unpacked);
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
    const Entry entry;
    ReceiveRequest* made = make_receive(buffer, count, type, source, tag, comm, false);
    start_receive(*made);
    *request = &made->ompi();
    return OMPI_SUCCESS;
  });
}

int recv(void* buffer, std::size_t count, ompi_datatype_t* type, int source, int tag,
         ompi_communicator_t* comm, ompi_status_public_t* status) noexcept {
  return guarded([&]() -> int {
    ReceiveRequest* made = nullptr;
    {
      const Entry entry;
      made = make_receive(buffer, count, type, source, tag, comm, false);
      start_receive(*made);
    }
    return finish_blocking(*made, status);
  });
}

namespace {

/// @returns  the oldest message that matches, after a look at the network if there was none
Arrived* look_for(int source, int tag, ompi_communicator_t* comm) {
  Communicator& own = protocol_of(comm);
  Arrived* found = pml->protocol.probe(own, source, tag);
  if (found != nullptr) return found;
  pml->poll();
  return pml->protocol.probe(own, source, tag);
}

void fill_status(ompi_status_public_t* status, const Arrived& message) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = message.peer->rank;
  status->MPI_TAG = message.tag;
  status->_ucount = message.length_bytes;
  status->_cancelled = 0;
}

int improbe_once(int source, int tag, ompi_communicator_t* comm, int* matched,
                 ompi_message_t** message, ompi_status_public_t* status) {
  const Entry entry;
  Arrived* found = look_for(source, tag, comm);
  *matched = found != nullptr ? 1 : 0;
  *message = MPI_MESSAGE_NULL;
  if (found == nullptr) return OMPI_SUCCESS;
  ompi_message_t* made = ompi_message_alloc();
  if (made == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  pml->protocol.take(*found);
  pml->run_actions();
  made->comm = comm;
  made->req_ptr = found;
  made->peer = found->peer->rank;
  made->count = found->length_bytes;
  *message = made;
  fill_status(status, *found);
  return OMPI_SUCCESS;
}

}  // namespace

int iprobe(int source, int tag, ompi_communicator_t* comm, int* matched,
           ompi_status_public_t* status) noexcept {
  const int rc = guarded([&]() -> int {
    const Entry entry;
    const Arrived* found = look_for(source, tag, comm);
    *matched = found != nullptr ? 1 : 0;
    if (found != nullptr) fill_status(status, *found);
    return OMPI_SUCCESS;
  });
  // What is not a BTL (a non-blocking collective, an oversubscribed core's yield) lives from this.
  if (rc == OMPI_SUCCESS && *matched == 0) opal_progress();
  return rc;
}

int probe(int source, int tag, ompi_communicator_t* comm, ompi_status_public_t* status) noexcept {
  int matched = 0;
  int rc = OMPI_SUCCESS;
  while (rc == OMPI_SUCCESS && matched == 0) rc = iprobe(source, tag, comm, &matched, status);
  return rc;
}

int improbe(int source, int tag, ompi_communicator_t* comm, int* matched, ompi_message_t** message,
            ompi_status_public_t* status) noexcept {
  const int rc =
      guarded([&]() -> int { return improbe_once(source, tag, comm, matched, message, status); });
  if (rc == OMPI_SUCCESS && *matched == 0) opal_progress();
  return rc;
}

int mprobe(int source, int tag, ompi_communicator_t* comm, ompi_message_t** message,
           ompi_status_public_t* status) noexcept {
  int matched = 0;
  int rc = OMPI_SUCCESS;
  while (rc == OMPI_SUCCESS && matched == 0)
    rc = improbe(source, tag, comm, &matched, message, status);
  return rc;
}

int imrecv(void* buffer, std::size_t count, ompi_datatype_t* type, ompi_message_t** message,
           ompi_request_t** request) noexcept {
  return guarded([&]() -> int {
    const Entry entry;
    *request = &receive_message(buffer, count, type, message)->ompi();
    return OMPI_SUCCESS;
  });
}

int mrecv(void* buffer, std::size_t count, ompi_datatype_t* type, ompi_message_t** message,
          ompi_status_public_t* status) noexcept {
  return guarded([&]() -> int {
    ReceiveRequest* made = nullptr;
    {
      const Entry entry;
      made = receive_message(buffer, count, type, message);
    }
    return finish_blocking(*made, status);
  });
}

int start(std::size_t count, ompi_request_t** requests) noexcept {
  return guarded([&]() -> int {
    const Entry entry;
    for (std::size_t i = 0; i < count; ++i) {
      auto* base = reinterpret_cast<mca_pml_base_request_t*>(requests[i]);
      if (requests[i] == nullptr || requests[i]->req_type != OMPI_REQUEST_PML) continue;
      if (base->req_type == MCA_PML_REQUEST_RECV) {
        start_receive(*reinterpret_cast<ReceiveRequest*>(base));
        continue;
      }
      if (const int rc = start_send(*reinterpret_cast<SendRequest*>(base)); rc != OMPI_SUCCESS)
        return rc;
      pml->run_actions();
    }
    return OMPI_SUCCESS;
  });
}

}  // namespace overlap::speculative
