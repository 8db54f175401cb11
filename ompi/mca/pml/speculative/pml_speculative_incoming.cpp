// Messages in: from a BTL's callback to the protocol.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

#include "ompi/mca/common/overlap/process.hpp"
#include "ompi/mca/common/overlap/receivers.hpp"
#include "ompi/mca/common/overlap/settings.hpp"

namespace overlap::speculative {
namespace {

/// Bytes of a received fragment in one piece; most fragments are in one already.
std::span<const std::byte> gather(const Received& received, std::vector<std::byte>& storage) {
  if (received.segment_count == 1) [[likely]]
    return {received.data(), received.size()};
  storage.reserve(received.total_size());
  for (std::size_t i = 0; i < received.segment_count; ++i) {
    storage.insert(storage.end(), received.data(i), received.data(i) + received.size(i));
  }
  return storage;
}

/// See to it that the interrupt thread knows the sender's further messages: a process that only
/// receives, with MPI_ANY_SOURCE, has asked nobody yet. Before the message ends anything: what ends
/// then, a turn of progress completes (see completes_at_once), and tells the thread.
void meet_sender(std::span<const std::byte> message) {
  if (!begins_stream(message) || !InterruptThread::is_possible()) return;
  Peer* const sender = pml->protocol.sender_of(message);
  if (sender != nullptr) static_cast<void>(endpoint_of(*sender));
}

void handle(std::span<const std::byte> message, const void* rail) {
  if (const char* fault = find_fault(message)) abort_bad_message(fault, message);
  meet_sender(message);
  const char* fault = pml->protocol.on_message(message, rail);
  if (fault != nullptr) [[unlikely]]
    abort_bad_message(fault, message);
  pml->actions.run();
}

/// Has a message come from a process that this one has an endpoint of? In a new communicator it may
/// be the first one.
bool comes_from_known(std::span<const std::byte> message) {
  if (pml->protocol.knows_sender(message)) return true;
  Peer* const sender = pml->protocol.sender_of(message);
  return sender != nullptr && made_endpoint_of(*sender) != nullptr;
}

/// The same in the interrupt thread, which connects to nobody.
void handle_interrupted(std::span<const std::byte> message, const void* rail) {
  if (find_fault(message) != nullptr || comes_from_known(message)) {
    handle(message, rail);
    return;
  }
  ++common::counters.interrupt_left;
  pml->left.add({message, rail});
  set_retries();
}

[[gnu::noinline]] void receive(const Received& received) noexcept {
  in_callback([&received] {
    pml->driver.note_event();
    std::vector<std::byte> storage;
    const auto message = gather(received, storage);
    pml->interrupts.inside() ? handle_interrupted(message, received.btl)
                             : handle(message, received.btl);
  });
}

/// Does a message's delivery tell what a copy of it takes? Not of one that is unpacked or cut off.
bool is_plain_copy(ReceiveOp& op, std::size_t payload_bytes) noexcept {
  const Endpoint* const sender = known_endpoint(*op.peer);
  return sender != nullptr && sender->copies_itself() && request_of(op).contiguous &&
         payload_bytes <= op.capacity_bytes;
}

/// Of messages that might have been read instead.
[[gnu::noinline]] void deliver_timed(ReceiveOp& op, std::span<const std::byte> payload) {
  op.peer->replies.note_message(false);
  if (!is_plain_copy(op, payload.size()) || !pml->eager_reads.times_copy(payload.size())) {
    pml->delivery.deliver(op, 0, payload);
    return;
  }
  const std::uint64_t started_ns = steady_now_ns();
  pml->delivery.deliver(op, 0, payload);
  pml->eager_reads.copied(payload.size(), steady_now_ns() - started_ns);
}

[[gnu::always_inline]] inline void deliver_eager(ReceiveOp& op,
                                                 std::span<const std::byte> payload) {
  if (payload.size() >= EagerReads::message_min_bytes) [[unlikely]]
    deliver_timed(op, payload);
  else
    pml->delivery.deliver(op, 0, payload);
}

/// The short way of an eager message: next in its stream, in one piece, its receive posted.
void receive_eager(const Received& received) noexcept {
  const std::size_t bytes = received.size();
  if (received.segment_count == 1 && bytes >= sizeof(SequencedHeader)) [[likely]] {
    SequencedHeader head;
    std::memcpy(&head, received.data(), sizeof head);
    if (head.kind_version == kind_version(Kind::eager) && head.flags == 0) [[likely]] {
      bool matched = false;
      in_callback([&] {
        if (pml->interrupts.inside()) return;
        ReceiveOp* op = nullptr;
        matched = pml->protocol.try_match_eager(head, bytes - sizeof head, op);
        if (!matched) return;
        pml->driver.note_event();
        deliver_eager(*op, {received.data() + sizeof head, bytes - sizeof head});
        end_eager(request_of(*op));
      });
      if (matched) return;
    }
  }
  receive(received);
}

void on_btl_error(mca_btl_base_module_t* btl, std::int32_t flags, opal_proc_t* proc,
                  char* info) noexcept {
  if ((flags & MCA_BTL_ERROR_FLAGS_NONFATAL) != 0) return;
  abort_peer_failure(
      btl != nullptr ? btl->btl_component->btl_version.mca_component_name : "?",
      proc != nullptr ? hostname(reinterpret_cast<ompi_proc_t*>(proc)) : "an unknown process",
      info != nullptr ? info : "no details");
}

/// Prepare the convertor of a receive whose data is not plain bytes. The sender must be known.
void prepare_convertor(ReceiveRequest& request) {
  mca_pml_base_request_t& base = request.base.req_base;
  const Endpoint* endpoint = endpoint_of(*request.op.peer);
  const ompi_proc_t* proc = endpoint != nullptr ? &endpoint->proc() : ompi_proc_local();
  base.req_proc = const_cast<ompi_proc_t*>(proc);
  opal_convertor_copy_and_prepare_for_recv(proc->super.proc_convertor, &base.req_datatype->super,
                                           base.req_count, base.req_addr, 0, &base.req_convertor);
  request.converter_ready = true;
}

[[gnu::noinline]] void unpack(ReceiveRequest& request, std::size_t offset_bytes,
                              std::span<const std::byte> payload) {
  opal_convertor_t& convertor = request.base.req_base.req_convertor;
  if (!request.converter_ready) prepare_convertor(request);
  opal_convertor_set_position(&convertor, &offset_bytes);
  iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
  std::uint32_t pieces = 1;
  std::size_t unpacked = payload.size();
  opal_convertor_unpack(&convertor, &piece, &pieces, &unpacked);
}

}  // namespace

std::size_t LeftMessages::handle_all() {
  const std::vector<KeptMessage> messages = std::exchange(messages_, {});
  for (const KeptMessage& each : messages) handle(each.bytes, each.rail);
  return messages.size();
}

void Delivery::deliver(ReceiveOp& op, std::uint64_t offset_bytes,
                       std::span<const std::byte> payload) {
  ReceiveRequest& request = request_of(op);
  const std::uint64_t room_bytes =
      op.capacity_bytes > offset_bytes ? op.capacity_bytes - offset_bytes : 0;
  const std::size_t bytes = std::min<std::uint64_t>(payload.size(), room_bytes);
  if (bytes == 0) return;
  if (request.contiguous) [[likely]] {
    std::memcpy(static_cast<char*>(data_start(request)) + offset_bytes, payload.data(), bytes);
    return;
  }
  unpack(request, offset_bytes, payload.first(bytes));
}

std::uint64_t Delivery::process_of(const Communicator& own, std::int32_t rank) {
  // The interrupt thread asks for processes with an endpoint only, and must not ask Open MPI.
  const Peer* peer = own.peer_if_known(rank);
  if (peer != nullptr && known_endpoint(*peer) != nullptr)
    return process_number(known_endpoint(*peer)->proc().super.proc_name);
  return process_number(ompi_comm_peer_lookup(communicator_of(own), rank)->super.proc_name);
}

int keep_early() noexcept {
  return guarded([] { return keep_early_messages({tag_eager, tag_control}); });
}

int register_callbacks() {
  if (const int rc = register_receiver<receive_eager>(tag_eager); rc != OMPI_SUCCESS) return rc;
  if (const int rc = register_receiver<receive>(tag_control); rc != OMPI_SUCCESS) return rc;
  return register_added_receivers();
}

int register_error_callback() { return mca_bml.bml_register_error(on_btl_error); }

void abort_peer_failure(const char* btl, const std::string& peer, const char* details) noexcept {
  show_topic("btl error", btl, peer.c_str(), details);
  abort_job(1);
}

void abort_bad_message(const char* fault, std::span<const std::byte> message) noexcept {
  show_topic("bad message", fault, describe(message).c_str());
  abort_job(1);
}

}  // namespace overlap::speculative
