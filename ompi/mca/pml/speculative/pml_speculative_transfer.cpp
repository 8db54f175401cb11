// Payload of rendezvous messages: writes, reads and fragments, and what the protocol learns of
// them.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

namespace overlap::speculative {
namespace {

/// Say once that memory access is refused.
void report_fallback(const char* what, const Rail& rail, const ompi_proc_t& proc) noexcept {
  static bool reported = false;  // progress lock
  if (tunables.verbose < 1 || std::exchange(reported, true)) return;
  opal_output(
      0,
      "pml/speculative: %s of memory of a process on %s was refused by BTL %s; its messages "
      "are sent in fragments instead. On shared memory this usually means that the kernel "
      "forbids cross-memory attach (kernel.yama.ptrace_scope, a container's seccomp "
      "profile or user namespace).",
      what, hostname(&proc).c_str(), rail.btl().btl_component->btl_version.mca_component_name);
}

std::span<const std::byte> bytes_of(const DoneHeader& header) noexcept {
  return std::as_bytes(std::span(&header, 1));
}

void on_fragment(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*,
                 mca_btl_base_descriptor_t* descriptor, int status) noexcept {
  in_callback([=] {
    auto& request = *static_cast<SendRequest*>(descriptor->des_cbdata);
    if (status != OMPI_SUCCESS) {
      abort_peer_failure(btl->btl_component->btl_version.mca_component_name,
                         hostname(request.base.req_base.req_proc), "a fragment could not be sent");
    }
    // Where the caller waits the fragment is the message's own: it is given back here, so that the
    // next piece has it before anybody else asks.
    if (request.op.caller_waits) btl->btl_free(btl, descriptor);
    request.fragments.fragment_ended();
  });
}

/// Does a refusal concern all messages? What could go eagerly may lie anywhere, also where nobody
/// may look; large data behind it must be read all the same.
bool speaks_for_rail(const Endpoint& endpoint, std::uint64_t bytes) noexcept {
  return bytes > endpoint.eager_bytes;
}

/// How data comes through shared memory whose sender sits in MPI, and its memory can be read.
CopyWay choose_way(ReceiveRequest& request) noexcept {
  BlockingCopy& copy = request.copy;
  copy.crosses = pml->awaited_copies.in_send();
  if (!request.caller_waits && !copy.crosses) return CopyWay::read;
  switch (blocking_copies()) {
    case BlockingCopies::read: return CopyWay::read;
    case BlockingCopies::fragments: return CopyWay::fragments;
    case BlockingCopies::measured: break;
  }
  copy.started_ns = steady_now_ns();
  return pml->copy_ways[copy.crosses].choose(request.op.take_bytes());
}

}  // namespace

BlockingCopies blocking_copies() noexcept {
  if (opal_using_threads()) return BlockingCopies::read;  // no message is pushed
  switch (tunables.blocking_copy) {
    case blocking_copy_choice::read: return BlockingCopies::read;
    case blocking_copy_choice::fragments: return BlockingCopies::fragments;
    case blocking_copy_choice::measured: break;
  }
  // Where processes share cores, time says nothing, and each fragment would cost a change of them.
  return opal_progress_yield_when_idle ? BlockingCopies::read : BlockingCopies::measured;
}

void SendTransfer::start_write() {
  SendOp& op = request_.op;
  request_.exposed.drop();
  if (!is_contiguous(request_)) {
    ended(false);
    return;
  }
  start({.endpoint = endpoint_of(*op.peer),
         .direction = Direction::put,
         .local = static_cast<std::byte*>(data_start(request_)),
         .remote_address = op.target.address,
         .remote_key = std::span<const std::byte>(op.target.key).first(op.target.key_bytes),
         .came_over = op.target.rail,
         .bytes = op.take_bytes,
         .speaks_for_rail = speaks_for_rail(*request_.endpoint, op.length_bytes)});
}

std::span<const std::byte> SendTransfer::end_message(mca_btl_base_tag_t& tag) {
  tag = tag_control;
  done_ = Protocol::done_behind(request_.op);
  return bytes_of(done_);
}

void SendTransfer::posted(bool end_behind) {
  end_behind ? pml->protocol.write_chained(request_.op) : pml->protocol.write_posted(request_.op);
}

void SendTransfer::moved(std::uint64_t bytes) {
  pml->driver.note_event();
  process_counters().put_bytes += bytes;
}

void SendTransfer::ended(bool ok) {
  ok ? pml->protocol.write_done(request_.op) : pml->protocol.write_refused(request_.op);
  pml->actions.run();
}

void SendTransfer::refused_for_good(const Rail& rail) {
  report_fallback("A write", rail, *request_.base.req_base.req_proc);
}

void ReceiveTransfer::start_read() {
  ReceiveOp& op = request_.op;
  Endpoint* endpoint = endpoint_of(*op.peer);
  if (endpoint == nullptr) abort_bad_message("no way to answer it", {});
  BlockingCopy& copy = request_.copy;
  const bool sender_waits = op.sender_waits && endpoint->copies_itself();
  const bool can_read = op.source_memory.accessible && request_.contiguous;
  // What can only come in fragments needs calls of this process anyway.
  copy.awaited =
      can_read && sender_waits && !request_.caller_waits && pml->awaited_copies.in_send();
  if (copy.awaited) pml->awaited_copies.begin();
  copy.way = can_read && sender_waits ? choose_way(request_) : CopyWay::read;
  if (!can_read || copy.way == CopyWay::fragments) {
    ended(!request_.contiguous && unpack_copy(*endpoint));
    return;
  }
  start({.endpoint = endpoint,
         .direction = Direction::get,
         .local = static_cast<std::byte*>(data_start(request_)),
         .remote_address = op.source_memory.address,
         .remote_key =
             std::span<const std::byte>(op.source_memory.key).first(op.source_memory.key_bytes),
         .came_over = op.source_memory.rail,
         .bytes = op.take_bytes(),
         .speaks_for_rail = speaks_for_rail(*endpoint, op.length_bytes)});
}

/// What could have gone eagerly needs nothing of its sender: it is copied, and unpacked.
/// @returns  false: it is too large, or the kernel refuses
bool ReceiveTransfer::unpack_copy(const Endpoint& endpoint) {
  ReceiveOp& op = request_.op;
  if (op.length_bytes > endpoint.eager_bytes) return false;
  std::vector<std::byte> packed(op.take_bytes());
  if (!pml->delivery.copy(*op.peer, op.source_memory, packed)) return false;
  pml->delivery.deliver(op, 0, packed);
  return true;
}

std::span<const std::byte> ReceiveTransfer::end_message(mca_btl_base_tag_t& tag) {
  tag = tag_control;
  done_ = Protocol::done_behind(request_.op);
  return bytes_of(done_);
}

void ReceiveTransfer::posted(bool end_behind) {
  if (end_behind) pml->protocol.read_chained(request_.op);
}

void ReceiveTransfer::moved(std::uint64_t bytes) {
  pml->driver.note_event();
  process_counters().get_bytes += bytes;
}

void ReceiveTransfer::ended(bool ok) {
  ok ? pml->protocol.read_done(request_.op) : pml->protocol.read_refused(request_.op);
  pml->actions.run();
}

void ReceiveTransfer::refused_for_good(const Rail& rail) {
  report_fallback("A read", rail, known_endpoint(*request_.op.peer)->proc());
}

/// A socket's BTL queues fragments without a copy: many, so that the wire is busy while the process
/// computes. Others copy them: few, so that they stay in the cache.
std::uint32_t Fragments::in_flight_max() const noexcept {
  constexpr std::uint32_t times = 8;
  const bool queued = endpoint_of(*request_.op.peer)->puts_are_messages();
  return tunables.fragment_depth * (queued ? times : 1);
}

bool FragmentRoom::keep(const Rail& rail) {
  bml_btl_ = rail.bml_btl;
  const auto allocate = [this](std::size_t bytes) {
    mca_btl_base_descriptor_t* made = nullptr;
    mca_bml_base_alloc(bml_btl_, &made, MCA_BTL_NO_ORDER, bytes, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    return made;
  };
  long_ = allocate(rail.btl().btl_max_send_size);
  if (long_ != nullptr) short_ = allocate(rail.btl().btl_eager_limit);
  if (short_ != nullptr) return true;
  drop();
  return false;
}

bool FragmentRoom::use(std::size_t bytes) noexcept {
  if (long_ == nullptr && short_ == nullptr) return false;
  return give_back(bytes <= bml_btl_->btl->btl_eager_limit ? short_ : long_);
}

void FragmentRoom::drop() noexcept {
  static_cast<void>(give_back(long_));
  static_cast<void>(give_back(short_));
}

bool FragmentRoom::give_back(mca_btl_base_descriptor_t*& kept) noexcept {
  if (kept == nullptr) return false;
  mca_bml_base_free(bml_btl_, std::exchange(kept, nullptr));
  return true;
}

void Fragments::start() {
  sent_bytes_ = 0;
  in_flight_ = 0;
  push_or_wait();
}

bool Fragments::try_again() { return push() != Pushed::no_room; }

void Fragments::fragment_ended() {
  pml->driver.note_event();
  --in_flight_;
  endpoint_of(*request_.op.peer)->note_fragment_end();
  push_or_wait();
  pml->actions.run();
}

void Fragments::push_or_wait() {
  // With fragments in flight the next completion continues; without any, a retry has to.
  if (push() == Pushed::no_room) endpoint_of(*request_.op.peer)->wait_as_fragments(*this);
}

/// Keep as many fragments in flight as the tunables allow. After `ended` the request may be gone.
Fragments::Pushed Fragments::push() {
  if (pushing_) return Pushed::in_flight;
  pushing_ = true;
  bool room = true;
  const std::uint32_t most = in_flight_max();
  while (room && sent_bytes_ < request_.op.take_bytes && in_flight_ < most) {
    room = try_send_one();
  }
  pushing_ = false;
  if (in_flight_ > 0) return Pushed::in_flight;
  if (sent_bytes_ < request_.op.take_bytes) return Pushed::no_room;
  pml->protocol.push_done(request_.op);
  pml->actions.run();
  return Pushed::ended;
}

/// @param bytes  in: wanted; out: got. @returns  nullptr: the BTL has no room
mca_btl_base_descriptor_t* Fragments::take_fragment(const Rail& rail, std::size_t& bytes) {
  opal_convertor_t* convertor = &request_.base.req_base.req_convertor;
  std::size_t position = sent_bytes_;
  opal_convertor_set_position(convertor, &position);
  const std::uint32_t owner = request_.op.caller_waits ? 0U : MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_prepare_src(rail.bml_btl, convertor, MCA_BTL_NO_ORDER, sizeof(FragHeader), &bytes,
                           owner | MCA_BTL_DES_SEND_ALWAYS_CALLBACK | MCA_BTL_DES_FLAGS_SIGNAL,
                           &descriptor);
  return descriptor;
}

/// Send one more fragment. @returns  false when the BTL has no room
bool Fragments::try_send_one() {
  const SendOp& op = request_.op;
  Endpoint* const endpoint = endpoint_of(*op.peer);
  Rail& rail = endpoint->next_send();
  std::size_t bytes = std::min<std::uint64_t>(op.take_bytes - sent_bytes_, tunables.fragment_size);
  bytes = std::min<std::size_t>(bytes, rail.btl().btl_max_send_size - sizeof(FragHeader));
  const std::size_t wanted_bytes = bytes;
  mca_btl_base_descriptor_t* descriptor = take_fragment(rail, bytes);
  if (descriptor == nullptr && room_.use(sizeof(FragHeader) + wanted_bytes)) {
    bytes = wanted_bytes;
    descriptor = take_fragment(rail, bytes);
  }
  if (descriptor == nullptr) return false;
  if (bytes == 0) {
    mca_bml_base_free(rail.bml_btl, descriptor);
    return false;
  }
  FragHeader header{};
  header.head = {kind_version(Kind::frag), 0, 0, 0, op.receive};
  header.offset_bytes = sent_bytes_;
  std::memcpy(descriptor->des_segments[0].seg_addr.pval, &header, sizeof header);
  descriptor->des_cbfunc = on_fragment;
  descriptor->des_cbdata = &request_;
  sent_bytes_ += bytes;  // before the call: the callback may run inside
  ++in_flight_;
  endpoint->note_fragment();
  if (mca_bml_base_send(rail.bml_btl, descriptor, tag_control) >= 0) {
    process_counters().pipelined_bytes += bytes;
    endpoint->announce({.kind = node::WaitKind::answer});
    return true;
  }
  sent_bytes_ -= bytes;
  --in_flight_;
  endpoint->note_fragment_end();
  mca_bml_base_free(rail.bml_btl, descriptor);
  return false;
}

}  // namespace overlap::speculative
