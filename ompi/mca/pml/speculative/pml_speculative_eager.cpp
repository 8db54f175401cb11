// The ways of an eager message to a BTL: in one call, from its buffer, from the user's, or later.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_send.hpp"

namespace overlap::speculative {

ByteConvertor byte_convertor;  // progress lock

SendRequest& make_request(const SendCall& call, Endpoint& endpoint, bool persistent) {
  SendRequest& request = take_send_request();
  request.endpoint = &endpoint;
  request.in_call = !persistent;
  request.base.req_base.req_proc = &endpoint.proc();
  ompi_communicator_t* const comm = call.comm;  // their macro has a parameter of this name
  MCA_PML_BASE_SEND_REQUEST_INIT(&request.base, call.buffer, call.count, call.type,
                                 call.destination, call.tag, comm, call.mode, persistent, 0);
  return request;
}

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

bool move_to_attached_buffer(SendRequest& request) {
  if (mca_pml_base_bsend_request_start(&request.ompi()) != OMPI_SUCCESS) return false;
  request.buffered = true;
  request.ompi().req_status.MPI_ERROR = OMPI_SUCCESS;
  ompi_request_complete(&request.ompi(), true);  // nobody waits yet, and there is no callback
  return true;
}

namespace {

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

/// The request of a message that outlives its call.
SendRequest& need_request(EagerSend& eager) {
  if (eager.request == nullptr) {
    eager.request = &make_request(eager.call, eager.endpoint, false);
    activate(*eager.request);
  }
  return *eager.request;
}

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

}  // namespace

void send_by_path(std::span<const std::byte> header, mca_btl_base_tag_t tag, const SendCall& call,
                  Endpoint& endpoint, Rail& rail, bool refused, SendRequest*& request) {
  const SendFacts facts = facts_of(call, endpoint, rail);
  const SendPath path = refused ? after_refusal(SendPath::inject, facts) : choose_path(facts);
  opal_convertor_t own;
  opal_convertor_t* const convertor = convertor_for(call, endpoint, facts.plain, own);
  EagerSend eager{call, endpoint, rail, header, tag, convertor, request};
  send_eager(eager, path, facts);
  if (convertor == &own) OBJ_DESTRUCT(&own);
  request = eager.request;
}

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

}  // namespace overlap::speculative
