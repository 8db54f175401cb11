// MPI's sends: eagerly where that is possible, otherwise by the protocol.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_byte_convertor.hpp"
#include "pml_speculative_request.hpp"

#include "protocol/send_path.hpp"

namespace overlap::speculative {
namespace {

ByteConvertor byte_convertor;  // progress lock

/// The arguments of a send.
struct SendCall {
  const void* buffer;
  std::size_t count;
  ompi_datatype_t* type;
  int destination;
  int tag;
  mca_pml_base_send_mode_t mode;
  ompi_communicator_t* comm;
  bool waits = false;  ///< in MPI until the message is complete

  [[nodiscard]] std::uint64_t bytes() const noexcept { return type->super.size * count; }
  [[nodiscard]] const void* start() const noexcept {
    return static_cast<const char*>(buffer) + type->super.true_lb;
  }
  [[nodiscard]] bool buffered() const noexcept { return mode == MCA_PML_BASE_SEND_BUFFERED; }
};

/// An eager message on its way to a BTL.
struct EagerSend {
  const SendCall& call;
  Endpoint& endpoint;
  Rail& rail;
  std::span<const std::byte> header;
  mca_btl_base_tag_t tag;
  opal_convertor_t* convertor;  ///< at the start of the data; nullptr without data
  SendRequest* request;         ///< nullptr: none is needed yet
};

SendRequest& make_request(const SendCall& call, Endpoint& endpoint, bool persistent) {
  SendRequest& request = take_send_request();
  request.endpoint = &endpoint;
  request.base.req_base.req_proc = &endpoint.proc();
  ompi_communicator_t* const comm = call.comm;  // their macro has a parameter of this name
  MCA_PML_BASE_SEND_REQUEST_INIT(&request.base, call.buffer, call.count, call.type,
                                 call.destination, call.tag, comm, call.mode, persistent, 0);
  return request;
}

/// Make a request active, with its convertor at the start of the data and the status that its
/// completion reports: one-sided components read tag, source and count in the callback of a send.
void activate(SendRequest& request) noexcept {
  mca_pml_base_request_t& base = request.base.req_base;
  request.life.start();
  request.buffered = false;
  base.req_pml_complete = false;
  base.req_ompi.req_complete = REQUEST_PENDING;
  base.req_ompi.req_state = OMPI_REQUEST_ACTIVE;
  ompi_status_public_t& status = base.req_ompi.req_status;
  status.MPI_SOURCE = base.req_comm->c_my_rank;
  status.MPI_TAG = base.req_tag;
  status._ucount = request.base.req_bytes_packed;
  status._cancelled = 0;
  std::size_t origin = 0;
  if (request.base.req_bytes_packed > 0) {
    opal_convertor_set_position(&base.req_convertor, &origin);
  }
}

/// The request of a message that outlives its call.
SendRequest& need_request(EagerSend& eager) {
  if (eager.request == nullptr) {
    eager.request = &make_request(eager.call, eager.endpoint, false);
    activate(*eager.request);
  }
  return *eager.request;
}

constexpr std::uint32_t eager_flags = MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

bool try_inject(EagerSend& eager) {
  return eager.rail.try_inject(eager.tag, eager.header, eager.convertor, eager.call.bytes(),
                               eager_flags);
}

/// Pack header and payload into a descriptor of the BTL. @returns  nullptr: no room
mca_btl_base_descriptor_t* pack(Rail& rail, std::span<const std::byte> header, std::uint64_t bytes,
                                opal_convertor_t* convertor) {
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_alloc(rail.bml_btl, &descriptor, MCA_BTL_NO_ORDER, header.size() + bytes,
                     eager_flags);
  if (descriptor == nullptr) return nullptr;
  auto* out = static_cast<std::byte*>(descriptor->des_segments[0].seg_addr.pval);
  std::memcpy(out, header.data(), header.size());
  if (bytes > 0) {
    std::size_t origin = 0;
    opal_convertor_set_position(convertor, &origin);  // a refused try may have moved it
    iovec piece{out + header.size(), bytes};
    std::uint32_t pieces = 1;
    std::size_t packed = bytes;
    opal_convertor_pack(convertor, &piece, &pieces, &packed);
  }
  descriptor->des_segments[0].seg_len = header.size() + bytes;
  descriptor->des_segment_count = 1;
  return descriptor;
}

/// A BTL that kept a message has sent it.
void kept_message_sent(void* owner) {
  static_cast<SendRequest*>(owner)->endpoint->note_sent();
  let_go_send(owner);
}

/// Offer a packed message of a request that is held for it. @returns  false: no room
bool offer_kept(SendRequest& request, Endpoint& endpoint, Rail& rail,
                mca_btl_base_descriptor_t* descriptor, mca_btl_base_tag_t tag) {
  endpoint.note_kept();  // before the call: the callback may run inside
  if (endpoint.try_send(rail, descriptor, tag, make_hold<kept_message_sent>(&request))) {
    return true;
  }
  endpoint.note_sent();
  return false;
}

void on_sent_in_place(mca_btl_base_module_t*, mca_btl_base_endpoint_t*,
                      mca_btl_base_descriptor_t* sent, int) noexcept {
  in_callback([sent] { kept_message_sent(sent->des_cbdata); });
}

/// Send from the user's buffer (P3.2). Until the BTL has called back the request is held.
bool try_zero_copy(EagerSend& eager) {
  std::size_t bytes = eager.call.bytes();
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_prepare_src(eager.rail.bml_btl, eager.convertor, MCA_BTL_NO_ORDER,
                           eager.header.size(), &bytes, eager_flags, &descriptor);
  if (descriptor == nullptr) return false;
  if (bytes != eager.call.bytes()) {
    mca_bml_base_free(eager.rail.bml_btl, descriptor);
    return false;
  }
  std::memcpy(descriptor->des_segments[0].seg_addr.pval, eager.header.data(), eager.header.size());
  SendRequest& request = need_request(eager);
  descriptor->des_cbfunc = on_sent_in_place;
  descriptor->des_cbdata = &request;
  request.life.hold();  // before the call: the callback may run inside
  eager.endpoint.note_kept();
  const int rc = mca_bml_base_send(eager.rail.bml_btl, descriptor, eager.tag);
  if (rc == OMPI_SUCCESS) {
    ++process_counters().eager_lent;
    return true;
  }
  if (rc < 0) mca_bml_base_free(eager.rail.bml_btl, descriptor);
  eager.endpoint.note_sent();
  static_cast<void>(request.life.let_go());  // refused; or copied after all, and no callback comes
  return rc > 0;
}

/// Copy a buffered send's data into the user's attached buffer; the call is complete with that.
/// @returns  false: the attached buffer is full
bool move_to_attached_buffer(SendRequest& request) {
  if (mca_pml_base_bsend_request_start(&request.ompi()) != OMPI_SUCCESS) return false;
  request.buffered = true;
  request.ompi().req_status.MPI_ERROR = OMPI_SUCCESS;
  ompi_request_complete(&request.ompi(), true);  // nobody waits yet, and there is no callback
  return true;
}

/// Give a message the request that is held while a BTL keeps it.
/// @returns  false: a buffered send without anything in the attached buffer; it is complete
bool prepare_to_hold(EagerSend& eager) {
  if (eager.call.buffered() && eager.call.bytes() == 0) return false;
  SendRequest& request = need_request(eager);
  return !eager.call.buffered() || request.buffered || move_to_attached_buffer(request);
}

/// A message that the BTL keeps holds its request: MPI_Buffer_detach waits for buffered ones too.
bool try_copy(EagerSend& eager) {
  mca_btl_base_descriptor_t* descriptor =
      pack(eager.rail, eager.header, eager.call.bytes(), eager.convertor);
  if (descriptor == nullptr) return false;
  if (!prepare_to_hold(eager))
    return eager.endpoint.try_send(eager.rail, descriptor, eager.tag, {});
  eager.request->life.hold();
  if (offer_kept(*eager.request, eager.endpoint, eager.rail, descriptor, eager.tag)) return true;
  static_cast<void>(eager.request->life.let_go());  // the message is still to be sent
  return false;
}

/// No room: the request keeps the data, in the user's buffer, until there is.
void wait_for_room(EagerSend& eager) {
  SendRequest& request = need_request(eager);
  const std::size_t data_bytes = eager.call.bytes();
  if (eager.call.buffered() && !request.buffered &&
      (data_bytes == 0 || !move_to_attached_buffer(request))) {
    // Nothing to copy; or the attached buffer is full, of which its owner learns too late for this
    // message, which has its place in the stream already. It is stored here.
    std::vector<std::byte> bytes(eager.header.begin(), eager.header.end());
    bytes.resize(eager.header.size() + data_bytes);
    if (data_bytes > 0) {
      iovec piece{bytes.data() + eager.header.size(), data_bytes};
      std::uint32_t pieces = 1;
      std::size_t packed = data_bytes, origin = 0;
      opal_convertor_set_position(eager.convertor, &origin);
      opal_convertor_pack(eager.convertor, &piece, &pieces, &packed);
    }
    eager.endpoint.send_control(eager.rail, eager.tag, bytes);
    return;
  }
  request.life.hold();
  request.eager.wait(eager.endpoint, eager.tag, eager.header);
}

/// Send an eager message whose place in the stream is taken, in whatever way the BTL has room for.
/// Afterwards eager.request is set if the message outlives the call.
/// @param path  the first to try
void send_eager(EagerSend& eager, SendPath path, const SendFacts& facts) {
  for (;;) {
    bool sent = false;
    switch (path) {
      case SendPath::inject: sent = try_inject(eager); break;
      case SendPath::copy: sent = try_copy(eager); break;
      case SendPath::zero_copy: sent = try_zero_copy(eager); break;
      case SendPath::wait:
      case SendPath::rendezvous: wait_for_room(eager); return;
    }
    if (sent) [[likely]]
      return;
    path = after_refusal(path, facts);
  }
}

/// The data's convertor for a BTL: borrowed for plain bytes, prepared in `own` otherwise.
opal_convertor_t* convertor_for(const SendCall& call, const Endpoint& endpoint, bool plain,
                                opal_convertor_t& own) {
  if (call.bytes() == 0) return nullptr;  // nobody looks at a convertor without data
  if (plain) [[likely]]
    return byte_convertor.at(call.start(), call.bytes());
  OBJ_CONSTRUCT(&own, opal_convertor_t);
  opal_convertor_copy_and_prepare_for_send(endpoint.proc().super.proc_convertor, &call.type->super,
                                           call.count, call.buffer, 0, &own);
  return &own;
}

[[gnu::always_inline]] inline SendFacts facts_of(const SendCall& call, const Endpoint& endpoint,
                                                 const Rail& rail) noexcept {
  return {.bytes = call.bytes(),
          .eager_bytes = endpoint.eager_bytes,
          .zero_copy_bytes = call.buffered() ? 0 : zero_copy_bytes(rail),
          .can_inject = rail.btl().btl_sendi != nullptr,
          .plain = is_contiguous(*call.type, call.count),
          .crowded = endpoint.crowded(),
          .refuses_for_room = rail.refuses_for_room};
}

/// @param refused  the BTL has refused to inject the message
[[gnu::noinline]] void send_by_path(std::span<const std::byte> header, mca_btl_base_tag_t tag,
                                    const SendCall& call, Endpoint& endpoint, Rail& rail,
                                    bool refused, SendRequest*& request) {
  const SendFacts facts = facts_of(call, endpoint, rail);
  const SendPath path = refused ? after_refusal(SendPath::inject, facts) : choose_path(facts);
  opal_convertor_t own;
  opal_convertor_t* const convertor = convertor_for(call, endpoint, facts.plain, own);
  EagerSend eager{call, endpoint, rail, header, tag, convertor, request};
  send_eager(eager, path, facts);
  if (convertor == &own) OBJ_DESTRUCT(&own);
  request = eager.request;
}

/// Send the data of an eager message behind its header.
[[gnu::always_inline]] inline void send_behind(std::span<const std::byte> header,
                                               mca_btl_base_tag_t tag, const SendCall& call,
                                               Endpoint& endpoint, SendRequest*& request) {
  Rail& rail = endpoint.next_eager();
  // What nearly every message needs, and nothing else, in front of all the rest.
  const SendFacts facts = facts_of(call, endpoint, rail);
  const bool injects = choose_path(facts) == SendPath::inject && facts.plain;
  if (injects) [[likely]] {
    opal_convertor_t* const convertor =
        facts.bytes > 0 ? byte_convertor.at(call.start(), facts.bytes) : nullptr;
    if (rail.try_inject(tag, header, convertor, facts.bytes, eager_flags)) [[likely]]
      return;
  }
  send_by_path(header, tag, call, endpoint, rail, injects, request);
}

/// An eager message that is not synchronous. @param request  in: the one it must use, or nullptr;
/// out: the one that is not complete yet, or nullptr
[[gnu::always_inline]] inline void start_eager(const SendCall& call, Peer& peer, Endpoint& endpoint,
                                               SendRequest*& request) {
  const Prefixed<SequencedHeader> header = pml->protocol.eager_header(peer, call.tag);
  send_behind(header.bytes(), tag_eager, call, endpoint, request);
  if (request != nullptr) end(*request);  // but for what holds it
}

void start_eager_sync(const SendCall& call, Peer& peer, Endpoint& endpoint, SendRequest& request) {
  request.op.peer = &peer;
  const Prefixed<EagerSyncHeader> header = pml->protocol.eager_sync_header(request.op);
  SendRequest* same = &request;
  send_behind(header.bytes(), tag_control, call, endpoint, same);
}

/// Poll the network once before a large send, so that an RTR that has arrived is used (P1.4).
void look_early(Peer& peer, int tag) {
  if (!tunables.early_progress || !pml->protocol.wants_early_progress(peer, tag)) return;
  pml->driver.poll_thoroughly();
  if (Protocol::has_rtr(peer, tag)) ++process_counters().early_progress_hits;
}

/// May the receiver of a message whose caller waits ask for it in fragments? Not where there is no
/// room for them now: it may be held by messages to a process that computes.
bool can_push(Endpoint& endpoint, SendRequest& request) {
  if (!endpoint.copies_itself() || opal_using_threads() || pml->endpoints.has_work()) return false;
  return request.fragments.keep_room(endpoint.next_send());
}

int start_rendezvous(const SendCall& call, Peer& peer, Endpoint& endpoint, SendRequest& request) {
  request.op.peer = &peer;
  request.op.eager_sized = call.bytes() <= endpoint.eager_bytes;
  request.op.caller_waits = call.waits && !request.op.eager_sized && can_push(endpoint, request);
  if (call.buffered() && !move_to_attached_buffer(request)) return MPI_ERR_BUFFER;
  request.demand.add(pml->interrupts);
  // Where RTRs usually come, but cross their sends, this one is given a moment to come (P1.14); it
  // is decided before the call returns, because the caller may leave MPI.
  const bool rtr_may_come = may_speculate(endpoint);
  if (!rtr_may_come) ++process_counters().rts_only;
  pml->protocol.start_send(request.op, rtr_may_come ? steady_now_ns() : 0);
  while (request.op.state == SendState::deferred) {
    pml->driver.poll_thoroughly();
    pml->protocol.expire(steady_now_ns());
  }
  return OMPI_SUCCESS;
}

/// A message that needs a request: large, persistent or synchronous, or better read.
/// @param eager  it goes eagerly
[[gnu::noinline]] int start_with_request(const SendCall& call, Peer& peer, Endpoint& endpoint,
                                         bool eager, SendRequest*& request) {
  if (!eager && may_speculate(endpoint)) look_early(peer, call.tag);
  if (request == nullptr) request = &make_request(call, endpoint, false);
  activate(*request);
  request->op.tag = call.tag;
  request->op.length_bytes = call.bytes();
  request->op.synchronous = call.mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
  if (!eager) return start_rendezvous(call, peer, endpoint, *request);
  if (request->op.synchronous) {
    start_eager_sync(call, peer, endpoint, *request);
  } else {
    start_eager(call, peer, endpoint, request);
  }
  return OMPI_SUCCESS;
}

/// Start a message. @param request  in: a persistent request, or nullptr; out: the request that
/// MPI completes later, or nullptr when the message is complete
[[gnu::always_inline]] inline int start_message(const SendCall& call, SendRequest*& request) {
  Peer& peer = protocol_of(call.comm).peer(call.destination);
  Endpoint* endpoint = endpoint_of(peer);
  if (endpoint == nullptr) [[unlikely]]
    return OMPI_ERR_UNREACH;
  int rc = OMPI_SUCCESS;
  const bool eager = call.bytes() <= endpoint->eager_bytes;
  if (!eager || request != nullptr || call.mode == MCA_PML_BASE_SEND_SYNCHRONOUS) [[unlikely]] {
    rc = start_with_request(call, peer, *endpoint, eager, request);
  } else if (call.waits && call.bytes() >= Turns::message_min_bytes &&
             is_better_read(*endpoint, call.bytes(), is_contiguous(*call.type, call.count)))
      [[unlikely]] {
    rc = start_with_request(call, peer, *endpoint, false, request);
  } else {
    start_eager(call, peer, *endpoint, request);
  }
  if (rc == OMPI_SUCCESS) pml->actions.run();  // one to this very process has been received by now
  return rc;
}

}  // namespace

void WaitingEager::wait(Endpoint& endpoint, mca_btl_base_tag_t tag,
                        std::span<const std::byte> header) {
  tag_ = tag;
  header_bytes_ = static_cast<std::uint8_t>(header.size());
  std::memcpy(header_.data(), header.data(), header.size());
  endpoint.wait_as_message(*this);
}

bool WaitingEager::try_again() {
  Endpoint& endpoint = *request_.endpoint;
  Rail& rail = endpoint.next_eager();
  const std::span<const std::byte> header = std::span(header_).first(header_bytes_);
  const std::size_t bytes = request_.base.req_bytes_packed;
  if (rail.refuses_for_room) {
    if (!try_inject(rail, header, bytes)) return false;
    std::vector<std::byte>().swap(packed_);  // its memory, too: requests are used again
    let_go_send(&request_);
    return true;
  }
  if (endpoint.is_full()) return false;
  mca_btl_base_descriptor_t* descriptor =
      pack(rail, header, bytes, &request_.base.req_base.req_convertor);
  return descriptor != nullptr && offer_kept(request_, endpoint, rail, descriptor, tag_);
}

/// A BTL packs before it finds that there is no room, in every turn. So what has to be packed is
/// packed once, when its turn has come: one message for each endpoint at a time.
bool WaitingEager::try_inject(const Rail& rail, std::span<const std::byte> header,
                              std::size_t bytes) {
  opal_convertor_t* const convertor = &request_.base.req_base.req_convertor;
  std::size_t origin = 0;
  if (packed_.empty() && bytes > 0) opal_convertor_set_position(convertor, &origin);
  if (packed_.empty() && bytes > 0 && opal_convertor_need_buffers(convertor)) {
    packed_.resize(header.size() + bytes);
    std::ranges::copy(header, packed_.begin());
    iovec piece{packed_.data() + header.size(), bytes};
    std::uint32_t pieces = 1;
    std::size_t packed = bytes;
    opal_convertor_pack(convertor, &piece, &pieces, &packed);
  }
  if (!packed_.empty()) return rail.try_inject(tag_, packed_, nullptr, 0, eager_flags);
  return rail.try_inject(tag_, header, bytes > 0 ? convertor : nullptr, bytes, eager_flags);
}

int isend(const void* buffer, std::size_t count, ompi_datatype_t* type, int destination, int tag,
          mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
          ompi_request_t** request) noexcept {
  SendRequest* made = nullptr;
  const int rc = guarded([&]() -> int {
    const LeavingEntry entry(pml->interrupts);
    return start_message({buffer, count, type, destination, tag, mode, comm}, made);
  });
  if (rc != OMPI_SUCCESS) [[unlikely]] {
    if (made != nullptr) release(*made);
    made = nullptr;
  }
  // The only thing to be learnt from a finished send is that it was not cancelled.
  *request = made != nullptr ? &made->ompi() : &ompi_request_empty;
  return rc;
}

int send(const void* buffer, std::size_t count, ompi_datatype_t* type, int destination, int tag,
         mca_pml_base_send_mode_t mode, ompi_communicator_t* comm) noexcept {
  SendRequest* made = nullptr;
  bool ended = false;
  int rc = guarded([&]() -> int {
    const Entry entry;
    const int started = start_message(
        {buffer, count, type, destination, tag, mode, comm, mode != MCA_PML_BASE_SEND_BUFFERED},
        made);
    ended = !pml->completions.empty();
    if (made != nullptr && started == OMPI_SUCCESS) pml->awaited_copies.enter_send();
    return started;
  });
  if (made == nullptr) [[likely]]
    return rc;
  if (rc != OMPI_SUCCESS) {
    release(*made);
    return rc;
  }
  wait_in_send(made->ompi(), ended);
  rc = made->ompi().req_status.MPI_ERROR;
  give_up(*made);
  return rc;
}

int isend_init(const void* buffer, std::size_t count, ompi_datatype_t* type, int destination,
               int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
               ompi_request_t** request) noexcept {
  return guarded([&]() -> int {
    const Entry entry;
    Endpoint* endpoint = endpoint_of(protocol_of(comm).peer(destination));
    if (endpoint == nullptr) return OMPI_ERR_UNREACH;
    SendRequest& made =
        make_request({buffer, count, type, destination, tag, mode, comm}, *endpoint, true);
    made.base.req_base.req_pml_complete = true;
    *request = &made.ompi();
    return OMPI_SUCCESS;
  });
}

/// MPI_Start of a persistent send. @thread  progress lock held
int start_send(SendRequest& request, SendRequest*& message) {
  const mca_pml_base_request_t& base = request.base.req_base;
  const SendCall call{base.req_addr, base.req_count, base.req_datatype,
                      base.req_peer, base.req_tag,   request.base.req_send_mode,
                      base.req_comm};
  if (!call.buffered()) {
    SendRequest* own = &request;
    return start_message(call, own);
  }
  activate(request);
  const int rc = start_message(call, message);
  end(request);
  request.ompi().req_status.MPI_ERROR = rc;
  return rc;
}

}  // namespace overlap::speculative
