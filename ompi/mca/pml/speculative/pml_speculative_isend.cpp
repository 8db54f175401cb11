// MPI's sends: eagerly where that is possible, otherwise by the protocol.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_send.hpp"

namespace overlap::speculative {
namespace {

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
  const bool large = call.bytes() > endpoint.eager_bytes;
  request.op.eager_sized = !large;
  request.op.caller_waits = call.waits && large && can_push(endpoint, request);
  if (call.buffered() && !move_to_attached_buffer(request)) return MPI_ERR_BUFFER;
  // Who has read before needs nothing of this process.
  if (large || !endpoint.read_pace.has_read()) request.demand.add(pml->interrupts);
  // Where RTRs usually come, but cross their sends, this one is given a moment to come (P1.14); it
  // is decided before the call returns, because the caller may leave MPI.
  const bool rtr_may_come = may_speculate(endpoint);
  if (!rtr_may_come && large) ++process_counters().rts_only;
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

/// Of any two processes one does.
bool leads_exchanges(const Endpoint& endpoint) noexcept {
  return process_number(OPAL_PROC_MY_NAME) < process_number(endpoint.proc().super.proc_name);
}

/// The way of a message that could go eagerly.
EagerReads::Choice choose_eager_way(const SendCall& call, Peer& peer, Endpoint& endpoint) {
  // Who has freed the communicator answers nothing.
  if (peer.ended || !may_be_read(endpoint) || !is_contiguous(*call.type, call.count)) return {};
  if (eager_reads() == BlockingCopies::read) return {.way = CopyWay::read, .paced = true};
  EagerReads::Send send{
      .bytes = call.bytes(), .arrived = peer.expected_sequence, .leads = leads_exchanges(endpoint)};
  if (call.waits) send.kind = EagerReads::Kind::waiting;
  if (call.mode == MCA_PML_BASE_SEND_SYNCHRONOUS) send.kind = EagerReads::Kind::synchronous;
  return pml->eager_reads.choose(receiver_of(peer, endpoint), send, steady_now_ns);
}

/// A message that could go eagerly, and may be read.
[[gnu::noinline]] int start_readable(const SendCall& call, Peer& peer, Endpoint& endpoint,
                                     SendRequest*& request) {
  const EagerReads::Choice choice = choose_eager_way(call, peer, endpoint);
  const std::uint64_t started_ns = choice.timed ? steady_now_ns() : 0;
  if (choice.way == CopyWay::read) {
    if (request == nullptr) request = &make_request(call, endpoint, false);
    request->read = {.outstanding = true, .choice = choice, .started_ns = started_ns};
    return start_with_request(call, peer, endpoint, false, request);
  }
  int rc = OMPI_SUCCESS;
  if (request != nullptr || call.mode == MCA_PML_BASE_SEND_SYNCHRONOUS) {
    rc = start_with_request(call, peer, endpoint, true, request);
  } else {
    start_eager(call, peer, endpoint, request);
  }
  if (started_ns != 0 && !endpoint.has_waiting_messages())
    pml->eager_reads.pushed(call.bytes(), steady_now_ns() - started_ns);
  return rc;
}

/// Behind a message that was pushed (ExchangePace). Polling would only find the other one's next
/// message ahead of its receive.
void pause_in_exchange(Endpoint& endpoint, std::uint64_t bytes) noexcept {
  if (!endpoint.exchange_pace.pauses_behind_send(pml->send_runs.note_send(), steady_now_ns))
      [[likely]]
    return;
  ++process_counters().exchange_pauses;
  const std::uint64_t end_ns = steady_now_ns() + ExchangePace::pause_ns(bytes);
  while (steady_now_ns() < end_ns) LinuxPlatform::pause();
}

/// An eager message that takes its receiver a while.
[[gnu::noinline]] int start_longer(const SendCall& call, Peer& peer, Endpoint& endpoint,
                                   SendRequest*& request) {
  static_assert(ExchangePace::message_end_bytes == EagerReads::message_min_bytes);
  const bool exchanges = ExchangePace::concerns(call.bytes());
  if (!exchanges && !call.buffered()) return start_readable(call, peer, endpoint, request);
  int rc = OMPI_SUCCESS;
  if (request != nullptr || call.mode == MCA_PML_BASE_SEND_SYNCHRONOUS)
    rc = start_with_request(call, peer, endpoint, true, request);
  else
    start_eager(call, peer, endpoint, request);
  if (exchanges) pause_in_exchange(endpoint, call.bytes());
  return rc;
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
  if (eager && call.bytes() >= ExchangePace::message_min_bytes) [[unlikely]] {
    rc = start_longer(call, peer, *endpoint, request);
  } else if (!eager || request != nullptr || call.mode == MCA_PML_BASE_SEND_SYNCHRONOUS)
      [[unlikely]] {
    rc = start_with_request(call, peer, *endpoint, eager, request);
  } else {
    start_eager(call, peer, *endpoint, request);
  }
  if (rc == OMPI_SUCCESS) pml->actions.run();  // one to this very process has been received by now
  if (request != nullptr) request->in_call = false;
  return rc;
}

}  // namespace

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
    if (made != nullptr && started == OMPI_SUCCESS) enter_send();
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
