// MPI's sends: eagerly where that is possible, otherwise by the protocol.
#include "pml_speculative.hpp"

namespace overlap::speculative {
namespace {

/// What is left of a convertor when the data is plain bytes: enough for a BTL to find and copy them.
///
/// Preparing a real one costs more than copying a small message; this one is prepared once and only pointed elsewhere.
class ByteConvertor {
 public:
  opal_convertor_t* at(const void* bytes, std::size_t count) noexcept {
    if (!ready_) {
      OBJ_CONSTRUCT(&convertor_, opal_convertor_t);
      opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &ompi_mpi_byte.dt.super, 1,
                                               this, 0, &convertor_);
      ready_ = true;
    }
    convertor_.pBaseBuf = static_cast<unsigned char*>(const_cast<void*>(bytes));
    convertor_.count = count;
    convertor_.local_size = convertor_.remote_size = count;
    convertor_.bConverted = 0;
    convertor_.flags &= ~static_cast<std::uint32_t>(CONVERTOR_COMPLETED);
    return &convertor_;
  }

 private:
  opal_convertor_t convertor_;
  bool ready_ = false;
};

ByteConvertor byte_convertor;  // progress lock

/// The user's data as the arguments of a send describe it.
struct Payload {
  const void* buffer;
  std::size_t count;
  ompi_datatype_t* type;
  std::uint64_t bytes;
  bool plain;  ///< contiguous and in the peer's representation

  [[nodiscard]] const void* start() const noexcept {
    return static_cast<const char*>(buffer) + type->super.true_lb;
  }
};

Payload describe(const void* buffer, std::size_t count, ompi_datatype_t* type,
                 const PeerLink& link) noexcept {
  const bool plain =
      link.plain_bytes &&
      opal_datatype_is_contiguous_memory_layout(
          &type->super, static_cast<std::int32_t>(count > INT32_MAX ? INT32_MAX : count)) != 0;
  return {buffer, count, type, type->super.size * count, plain};
}

SequencedHeader eager_header(Peer& peer, int tag, std::uint16_t sequence) noexcept {
  const Communicator& comm = *peer.comm;
  return {kind_version(Kind::eager), 0, comm.context, comm.my_rank, tag, sequence,
          comm.incarnation};
}

/// Pack header and payload into a descriptor of the BTL and send it; the user's buffer is free when this returns.
/// @returns  false when the BTL has no room; nothing was sent
bool send_copied(PeerLink& link, mca_bml_base_btl_t& bml_btl, std::span<const std::byte> header,
                 const Payload& payload, opal_convertor_t* convertor, mca_btl_base_tag_t tag) {
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_alloc(&bml_btl, &descriptor, MCA_BTL_NO_ORDER, header.size() + payload.bytes,
                     MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
  if (descriptor == nullptr) return false;
  auto* out = static_cast<std::byte*>(descriptor->des_segments[0].seg_addr.pval);
  std::memcpy(out, header.data(), header.size());
  if (payload.bytes > 0) {
    iovec piece{out + header.size(), payload.bytes};
    std::uint32_t pieces = 1;
    std::size_t packed = payload.bytes;
    opal_convertor_pack(convertor, &piece, &pieces, &packed);
  }
  descriptor->des_segments[0].seg_len = header.size() + payload.bytes;
  descriptor->des_segment_count = 1;
  return send_descriptor(link, bml_btl, descriptor, tag);
}

/// Send an eager message that btl_sendi has refused, or queue it; the user's buffer is free when this returns.
void send_stored(PeerLink& link, mca_bml_base_btl_t& bml_btl, std::span<const std::byte> header,
                 const Payload& payload, opal_convertor_t* convertor, mca_btl_base_tag_t tag) {
  std::size_t origin = 0;
  if (payload.bytes > 0) opal_convertor_set_position(convertor, &origin);
  if (link.pending.empty() && send_copied(link, bml_btl, header, payload, convertor, tag)) return;
  std::vector<std::byte> bytes(header.begin(), header.end());
  bytes.resize(header.size() + payload.bytes);
  if (payload.bytes > 0) {
    origin = 0;
    opal_convertor_set_position(convertor, &origin);
    iovec piece{bytes.data() + header.size(), payload.bytes};
    std::uint32_t pieces = 1;
    std::size_t packed = payload.bytes;
    opal_convertor_pack(convertor, &piece, &pieces, &packed);
  }
  pml->send_bytes(link, &bml_btl, tag, bytes);
}

bool sends_in_place(const PeerLink& link, const mca_btl_base_module_t& btl,
                    std::uint64_t bytes) noexcept {
  const BtlCapability* capability = link.capability_of(btl);
  return capability != nullptr && capability->in_place_min_bytes != 0 &&
         bytes >= capability->in_place_min_bytes;
}

/// Send an eager message whose place in the stream is already taken, in whatever way the BTL has room for.
/// @returns  nullptr; or a BTL that has refused because it would rather send from the user's buffer: nothing was sent
[[nodiscard]] mca_bml_base_btl_t* send_eager(PeerLink& link, std::span<const std::byte> header,
                                             const Payload& payload, mca_btl_base_tag_t tag) {
  mca_bml_base_btl_t* bml_btl = mca_bml_base_btl_array_get_next(&link.endpoint->btl_eager);
  opal_convertor_t own;
  opal_convertor_t* convertor = nullptr;
  if (payload.bytes == 0) {
    // Nobody looks at a convertor without data.
  } else if (payload.plain) [[likely]] {
    convertor = byte_convertor.at(payload.start(), payload.bytes);
  } else {
    OBJ_CONSTRUCT(&own, opal_convertor_t);
    convertor = &own;
    opal_convertor_copy_and_prepare_for_send(link.proc->super.proc_convertor, &payload.type->super,
                                             payload.count, payload.buffer, 0, convertor);
  }
  bool sent = false;
  const bool room = link.pending.empty();
  if (room && bml_btl->btl->btl_sendi != nullptr) {
    sent = mca_bml_base_sendi(bml_btl, convertor, const_cast<std::byte*>(header.data()),
                              header.size(), payload.bytes, MCA_BTL_NO_ORDER,
                              MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP, tag,
                              nullptr) == OMPI_SUCCESS;
  }
  if (!sent) {
    if (room && payload.plain && payload.bytes >= link.in_place_bytes &&
        sends_in_place(link, *bml_btl->btl, payload.bytes))
      return bml_btl;
    send_stored(link, *bml_btl, header, payload, convertor, tag);
  }
  if (convertor == &own) OBJ_DESTRUCT(&own);
  return nullptr;
}

void on_sent_in_place(mca_btl_base_module_t*, mca_btl_base_endpoint_t*,
                      mca_btl_base_descriptor_t* sent, int) noexcept {
  const CallbackEntry entry;
  pml->buffer_returned(*static_cast<SendRequest*>(sent->des_cbdata));
}

/// Send an eager message from where it lies (P3.2). Until the BTL has called back, `request` does not complete.
void send_in_place(SendRequest& request, PeerLink& link, mca_bml_base_btl_t& bml_btl,
                   std::span<const std::byte> header, const Payload& payload,
                   mca_btl_base_tag_t tag) {
  opal_convertor_t* convertor = byte_convertor.at(payload.start(), payload.bytes);
  std::size_t bytes = payload.bytes;
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_prepare_src(&bml_btl, convertor, MCA_BTL_NO_ORDER, header.size(), &bytes,
                           MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP,
                           &descriptor);
  if (descriptor != nullptr && bytes == payload.bytes) {
    std::memcpy(descriptor->des_segments[0].seg_addr.pval, header.data(), header.size());
    descriptor->des_cbfunc = on_sent_in_place;
    descriptor->des_cbdata = &request;
    request.lent = true;  // before the call: the callback may run inside
    const int rc = mca_bml_base_send(&bml_btl, descriptor, tag);
    if (rc == OMPI_SUCCESS) {
      ++process_counters().eager_lent;
      return;
    }
    if (rc > 0) {  // copied after all, and no callback comes
      if (request.lent) pml->buffer_returned(request);
      return;
    }
    request.lent = false;
  }
  if (descriptor != nullptr) mca_bml_base_free(&bml_btl, descriptor);
  send_stored(link, bml_btl, header, payload, byte_convertor.at(payload.start(), payload.bytes),
              tag);
}

template <class Header>
std::span<const std::byte> bytes_of(const Header& header) noexcept {
  return std::as_bytes(std::span(&header, 1));
}

/// Send an eager message for which a request exists.
template <class Header>
void send_eager_of(SendRequest& request, PeerLink& link, const Header& header,
                   const Payload& payload, mca_btl_base_tag_t tag) {
  mca_bml_base_btl_t* refused = send_eager(link, bytes_of(header), payload, tag);
  if (refused != nullptr) [[unlikely]]
    send_in_place(request, link, *refused, bytes_of(header), payload, tag);
}

SendRequest* make_send(const void* buffer, std::size_t count, ompi_datatype_t* type,
                       int destination, int tag, mca_pml_base_send_mode_t mode,
                       ompi_communicator_t* comm, ompi_proc_t* proc, bool persistent) {
  SendRequest* request = pml->spare_send;
  if (request != nullptr) {
    pml->spare_send = nullptr;
  } else {
    request = reinterpret_cast<SendRequest*>(opal_free_list_get(&mca_pml_base_send_requests));
    if (request == nullptr) throw std::bad_alloc();
  }
  request->base.req_base.req_proc = proc;
  MCA_PML_BASE_SEND_REQUEST_INIT(&request->base, buffer, count, type, destination, tag, comm, mode,
                                 persistent, 0);
  request->protocol_done = true;
  request->freed = false;
  return request;
}

/// Make a request active, with its convertor at the start of the data.
void activate(SendRequest& request) noexcept {
  mca_pml_base_request_t& base = request.base.req_base;
  base.req_pml_complete = false;
  base.req_ompi.req_complete = REQUEST_PENDING;
  base.req_ompi.req_state = OMPI_REQUEST_ACTIVE;
  base.req_ompi.req_status._cancelled = 0;
  std::size_t origin = 0;
  if (request.base.req_bytes_packed > 0) opal_convertor_set_position(&base.req_convertor, &origin);
}

/// Send a message for which a request exists: rendezvous, synchronous, or persistent.
int start_with(SendRequest& request, PeerLink& link, Peer& peer) {
  mca_pml_base_request_t& base = request.base.req_base;
  activate(request);
  request.protocol_done = false;
  request.op.peer = &peer;
  request.op.tag = base.req_tag;
  request.op.length_bytes = request.base.req_bytes_packed;
  request.transfer = {};
  const Payload payload = describe(base.req_addr, base.req_count, base.req_datatype, link);
  const bool synchronous = request.base.req_send_mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
  if (payload.bytes <= link.eager_bytes) {
    if (!synchronous) {
      const SequencedHeader header =
          eager_header(peer, base.req_tag, pml->protocol.eager_sequence(peer, base.req_tag));
      send_eager_of(request, link, header, payload, tag_eager);
      pml->complete_when_sent(request, link);
      return OMPI_SUCCESS;
    }
    EagerSyncHeader header{};
    header.send = pml->protocol.await_sync(request.op);
    header.head =
        eager_header(peer, base.req_tag, pml->protocol.eager_sequence(peer, base.req_tag));
    header.head.kind_version = kind_version(Kind::eager_sync);
    send_eager_of(request, link, header, payload, tag_control);
    return OMPI_SUCCESS;
  }
  if (request.base.req_send_mode == MCA_PML_BASE_SEND_BUFFERED) {
    if (const int rc = mca_pml_base_bsend_request_start(&request.ompi()); rc != OMPI_SUCCESS) {
      request.protocol_done = true;
      return rc;
    }
  }
  pml->protocol.start_send(request.op);
  if (request.base.req_send_mode == MCA_PML_BASE_SEND_BUFFERED) {
    request.ompi().req_status.MPI_ERROR = OMPI_SUCCESS;
    pml->finish_mpi(request.ompi());
  }
  return OMPI_SUCCESS;
}

/// Look at the network once before a large send, so that an RTR that has arrived is used (P1.4).
void look_early(Peer& peer, int tag) {
  if (!tunables.early_progress || !pml->protocol.wants_early_progress(peer, tag)) return;
  const std::uint32_t kept = peer.kept_rtrs;
  if (kept != 0) return;
  pml->poll();
  if (peer.kept_rtrs != 0) ++process_counters().early_progress_hits;
}

/// Go on with an eager message that a BTL would rather send from the user's buffer.
/// @returns  the request that lives until the BTL has sent it; nullptr: the user's buffer is free already
SendRequest* isend_in_place(mca_bml_base_btl_t& bml_btl, PeerLink& link,
                            const SequencedHeader& header, const Payload& payload, int destination,
                            mca_pml_base_send_mode_t mode, ompi_communicator_t* comm) {
  if (mode == MCA_PML_BASE_SEND_BUFFERED) {
    // Complete when the call returns.
    send_stored(link, bml_btl, bytes_of(header), payload,
                byte_convertor.at(payload.start(), payload.bytes), tag_eager);
    return nullptr;
  }
  SendRequest* request = make_send(payload.buffer, payload.count, payload.type, destination,
                                   header.tag, mode, comm, link.proc, false);
  activate(*request);
  request->protocol_done = false;
  send_in_place(*request, link, bml_btl, bytes_of(header), payload, tag_eager);
  pml->complete_when_sent(*request, link);
  return request;
}

int isend_locked(const void* buffer, std::size_t count, ompi_datatype_t* type, int destination,
                 int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
                 SendRequest*& request) {
  Peer& peer = protocol_of(comm).peer(destination);
  PeerLink* link = pml->link(peer);
  if (link == nullptr) [[unlikely]]
    return OMPI_ERR_UNREACH;
  const Payload payload = describe(buffer, count, type, *link);
  request = nullptr;
  if (payload.bytes <= link->eager_bytes && mode != MCA_PML_BASE_SEND_SYNCHRONOUS) [[likely]] {
    const SequencedHeader header = eager_header(peer, tag, pml->protocol.eager_sequence(peer, tag));
    if (mca_bml_base_btl_t* refused = send_eager(*link, bytes_of(header), payload, tag_eager))
        [[unlikely]] {
      request = isend_in_place(*refused, *link, header, payload, destination, mode, comm);
      if (request != nullptr) return OMPI_SUCCESS;
    }
    pml->run_actions();  // a message to this very process has been received by now
    if (!link->may_keep || link->unsent->messages == 0 || mode == MCA_PML_BASE_SEND_BUFFERED)
        [[likely]]
      return OMPI_SUCCESS;
    // The BTL needs progress to send it; the caller may compute or wait outside MPI once the send is complete.
    request = make_send(buffer, count, type, destination, tag, mode, comm, link->proc, false);
    activate(*request);
    request->protocol_done = false;
    pml->complete_when_sent(*request, *link);
    return OMPI_SUCCESS;
  }
  if (payload.bytes > link->eager_bytes) look_early(peer, tag);
  request = make_send(buffer, count, type, destination, tag, mode, comm, link->proc, false);
  if (const int rc = start_with(*request, *link, peer); rc != OMPI_SUCCESS) {
    release(*request);
    request = nullptr;
    return rc;
  }
  pml->run_actions();
  return OMPI_SUCCESS;
}

/// Let a blocking send wait while the receiver does not keep up.
void await_room(ompi_communicator_t* comm, int destination) noexcept {
  const auto crowded = [&] {
    const Peer* peer = protocol_of(comm).peer_if_known(destination);
    const auto* link = peer != nullptr ? static_cast<const PeerLink*>(peer->host_data) : nullptr;
    return link != nullptr && link->pending.size() > pending_max_messages;
  };
  for (;;) {
    {
      const Entry entry;
      if (!crowded()) return;
    }
    opal_progress();
  }
}

}  // namespace

int isend(const void* buffer, std::size_t count, ompi_datatype_t* type, int destination, int tag,
          mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
          ompi_request_t** request) noexcept {
  return guarded([&]() -> int {
    const Entry entry;
    SendRequest* made = nullptr;
    const int rc = isend_locked(buffer, count, type, destination, tag, mode, comm, made);
    // The only thing to be learnt from a finished send is that it was not cancelled.
    *request = made != nullptr ? &made->ompi() : &ompi_request_empty;
    return rc;
  });
}

int send(const void* buffer, std::size_t count, ompi_datatype_t* type, int destination, int tag,
         mca_pml_base_send_mode_t mode, ompi_communicator_t* comm) noexcept {
  return guarded([&]() -> int {
    SendRequest* made = nullptr;
    int rc = OMPI_SUCCESS;
    bool links_wait = false;
    {
      const Entry entry;
      rc = isend_locked(buffer, count, type, destination, tag, mode, comm, made);
      links_wait = pml->links_wait();
    }
    if (made == nullptr) {
      if (links_wait) [[unlikely]]
        await_room(comm, destination);
      return rc;
    }
    wait_complete(made->ompi());
    rc = made->ompi().req_status.MPI_ERROR;
    ompi_request_t* handle = &made->ompi();
    ompi_request_free(&handle);
    return rc;
  });
}

int isend_init(const void* buffer, std::size_t count, ompi_datatype_t* type, int destination,
               int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
               ompi_request_t** request) noexcept {
  return guarded([&]() -> int {
    const Entry entry;
    Peer& peer = protocol_of(comm).peer(destination);
    PeerLink* link = pml->link(peer);
    if (link == nullptr) return OMPI_ERR_UNREACH;
    SendRequest* made =
        make_send(buffer, count, type, destination, tag, mode, comm, link->proc, true);
    made->base.req_base.req_pml_complete = true;
    *request = &made->ompi();
    return OMPI_SUCCESS;
  });
}

/// MPI_Start of a persistent send. @thread  lock held
int start_send(SendRequest& request) {
  mca_pml_base_request_t& base = request.base.req_base;
  Peer& peer = protocol_of(base.req_comm).peer(base.req_peer);
  PeerLink* link = pml->link(peer);
  if (link == nullptr) return OMPI_ERR_UNREACH;
  if (request.base.req_send_mode == MCA_PML_BASE_SEND_BUFFERED) {
    // The message may still be under way when the request is complete and is started again: each start is a message of its own.
    SendRequest* message = nullptr;
    activate(request);
    const int rc = isend_locked(base.req_addr, base.req_count, base.req_datatype, base.req_peer,
                                base.req_tag, MCA_PML_BASE_SEND_BUFFERED, base.req_comm, message);
    if (message != nullptr) {
      message->freed = true;
      if (message->protocol_done) release(*message);
    }
    base.req_pml_complete = true;
    request.ompi().req_status.MPI_ERROR = rc;
    pml->finish_mpi(request.ompi());
    return rc;
  }
  const Payload payload = describe(base.req_addr, base.req_count, base.req_datatype, *link);
  if (payload.bytes > link->eager_bytes) look_early(peer, base.req_tag);
  return start_with(request, *link, peer);
}

}  // namespace overlap::speculative
