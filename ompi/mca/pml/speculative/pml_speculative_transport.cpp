// Control messages out and everything in.
#include "pml_speculative.hpp"

namespace overlap::speculative {
namespace {

/// Bytes of a received fragment in one piece; most fragments are in one already.
std::span<const std::byte> gather(const Received& received, std::vector<std::byte>& storage) {
  if (received.segment_count == 1) [[likely]]
    return {received.data(), received.size()};
  storage.reserve(received.total_size());
  for (std::size_t i = 0; i < received.segment_count; ++i)
    storage.insert(storage.end(), received.data(i), received.data(i) + received.size(i));
  return storage;
}

void handle(std::span<const std::byte> message, const void* rail) {
  if (const char* fault = find_fault(message)) pml->refuse(fault, message);
  const Kind kind = kind_of(std::to_integer<std::uint8_t>(message[0]));
  const char* fault = nullptr;
  if (is_targeted(kind)) {
    fault = pml->protocol.on_targeted(message, rail);
  } else {
    const auto head = load<SequencedHeader>(message);
    Communicator* comm = pml->communicator(head.context);
    if (kind == Kind::revoke && (comm == nullptr || comm->incarnation != head.incarnation)) {
      pml->answer_for_freed(head);
      return;
    }
    if (comm == nullptr) {
      pml->keep_early(message);
      return;
    }
    fault = pml->protocol.on_sequenced(*comm, message, rail);
  }
  if (fault != nullptr) [[unlikely]]
    pml->refuse(fault, message);
  pml->run_actions();
}

void receive(const Received& received) noexcept {
  const CallbackEntry entry;
  ++pml->events;
  const int rc = guarded([&]() -> int {
    std::vector<std::byte> storage;
    handle(gather(received, storage), received.btl);
    return OMPI_SUCCESS;
  });
  if (rc != OMPI_SUCCESS)
    pml->refuse("no memory left to receive it", {received.data(), received.size()});
}

/// The short way of an eager message: next in its stream, in one piece, its receive posted.
void receive_eager(const Received& received) noexcept {
  const std::size_t bytes = received.size();
  if (received.segment_count == 1 && bytes >= sizeof(SequencedHeader)) [[likely]] {
    SequencedHeader head;
    std::memcpy(&head, received.data(), sizeof head);
    if (head.kind_version == kind_version(Kind::eager) && head.flags == 0) [[likely]] {
      const CallbackEntry entry;
      Communicator* comm = pml->communicator(head.context);
      ReceiveOp* op = nullptr;
      if (comm != nullptr && static_cast<std::uint32_t>(head.source) < comm->size() &&
          pml->protocol.try_match_eager(*comm, head, bytes - sizeof head, op)) {
        pml->deliver(*op, 0, {received.data() + sizeof head, bytes - sizeof head});
        pml->complete(request_of(*op), false);
        return;
      }
    }
  }
  receive(received);
}

void on_btl_error(mca_btl_base_module_t* btl, std::int32_t flags, opal_proc_t* proc,
                  char* info) noexcept {
  if ((flags & MCA_BTL_ERROR_FLAGS_NONFATAL) != 0) return;
  pml->lose(btl != nullptr ? btl->btl_component->btl_version.mca_component_name : "?",
            proc != nullptr ? hostname(reinterpret_cast<ompi_proc_t*>(proc)) : "an unknown process",
            info != nullptr ? info : "no details");
}

}  // namespace

void Pml::lose(const char* btl, const std::string& peer, const char* details) noexcept {
  show_topic("btl error", btl, peer.c_str(), details);
  abort_job(1);
}

void Pml::refuse(const char* fault, std::span<const std::byte> message) noexcept {
  show_topic("bad message", fault, describe(message).c_str());
  abort_job(1);
}

void Pml::break_off(const Action& action) noexcept {
  const Registration& used = action.send != nullptr ? request_of(*action.send).registration
                                                    : request_of(*action.receive).registration;
  const Peer& peer = action.send != nullptr ? *action.send->peer : *action.receive->peer;
  lose(used.bml_btl->btl->btl_component->btl_version.mca_component_name,
       hostname(static_cast<const PeerLink*>(peer.host_data)->proc),
       "a transfer under way has failed, and the other side may have been told that it has not");
}

bool send_descriptor(PeerLink& link, mca_bml_base_btl_t& bml_btl,
                     mca_btl_base_descriptor_t* descriptor, mca_btl_base_tag_t tag) {
  const bool may_keep = link.keeps_messages(*bml_btl.btl);
  descriptor->des_cbdata = may_keep ? link.unsent : nullptr;
  descriptor->des_cbfunc = [](mca_btl_base_module_t*, mca_btl_base_endpoint_t*,
                              mca_btl_base_descriptor_t* sent, int) {
    auto* unsent = static_cast<Unsent*>(sent->des_cbdata);
    if (unsent == nullptr) return;
    const CallbackEntry entry;
    if (--unsent->messages == 0 && unsent->orphaned) delete unsent;
  };
  if (may_keep) ++link.unsent->messages;  // before the call: the callback may run inside
  const int rc = mca_bml_base_send(&bml_btl, descriptor, tag);
  if (may_keep && rc != OMPI_SUCCESS) --link.unsent->messages;  // 1: sent, and no callback comes
  if (rc >= 0) return true;
  mca_bml_base_free(&bml_btl, descriptor);
  return false;
}

bool Pml::try_send_bytes(PeerLink& link, mca_bml_base_btl_t* bml_btl, mca_btl_base_tag_t tag,
                         std::span<const std::byte> bytes) {
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_alloc(
      bml_btl, &descriptor, MCA_BTL_NO_ORDER, bytes.size(),
      MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_FLAGS_SIGNAL);
  if (descriptor == nullptr) return false;
  std::memcpy(descriptor->des_segments[0].seg_addr.pval, bytes.data(), bytes.size());
  descriptor->des_segments[0].seg_len = bytes.size();
  descriptor->des_segment_count = 1;
  return send_descriptor(link, *bml_btl, descriptor, tag);
}

void Pml::send_bytes(PeerLink& link, mca_bml_base_btl_t* bml_btl, mca_btl_base_tag_t tag,
                     std::span<const std::byte> bytes) {
  // Not past those that wait already: the other side would have to put aside what comes before its turn.
  if (link.pending.empty() && try_send_bytes(link, bml_btl, tag, bytes)) return;
  if (link.pending.empty()) waiting_links_.push_back(&link);
  link.pending.push_back({bml_btl, tag, {bytes.begin(), bytes.end()}});
  more_to_poll_ = true;
}

void Pml::retry_pending() {
  // One link without room does not hold up the others, and costs one try.
  std::erase_if(waiting_links_, [this](PeerLink* link) {
    while (!link->pending.empty()) {
      const PendingBytes& next = link->pending.front();
      if (!try_send_bytes(*link, next.bml_btl, next.tag, next.bytes)) return false;
      link->pending.pop_front();
    }
    return true;
  });
  for (std::size_t i = 0; i < unsent_requests_.size();) {
    const UnsentRequest waiting = unsent_requests_[i];
    if (waiting.unsent->messages != 0) {
      ++i;
      continue;
    }
    unsent_requests_[i] = unsent_requests_.back();
    unsent_requests_.pop_back();
    complete(*waiting.request);
  }
  for (std::size_t i = stalled_sends_.size(); i > 0; --i) {
    SendRequest* request = stalled_sends_.front();
    stalled_sends_.pop_front();
    request->transfer.waiting = false;
    if (request->op.state == SendState::pushing) {
      push_fragments(*request);
    } else {
      start_write(*request);
    }
  }
  for (std::size_t i = stalled_receives_.size(); i > 0; --i) {
    ReceiveRequest* request = stalled_receives_.front();
    stalled_receives_.pop_front();
    request->transfer.waiting = false;
    start_read(*request);
  }
  run_actions();
}

void Pml::run_queued_actions() {
  running_ = true;
  std::vector<Action>& actions = protocol.actions();
  for (std::size_t i = 0; i < actions.size(); ++i) {
    Action action = actions[i];  // a copy: executing may append
    execute(action);
  }
  actions.clear();
  running_ = false;
}

void Pml::execute(Action& action) {
  switch (action.kind) {
    case Action::Kind::control: send_control(action); break;
    case Action::Kind::read: start_read(request_of(*action.receive)); break;
    case Action::Kind::write: {
      SendRequest& request = request_of(*action.send);
      start_write(request);
      break;
    }
    case Action::Kind::push: push_fragments(request_of(*action.send)); break;
    case Action::Kind::complete_send: complete(request_of(*action.send)); break;
    case Action::Kind::complete_receive: complete(request_of(*action.receive), false); break;
    case Action::Kind::complete_cancelled: complete(request_of(*action.receive), true); break;
    case Action::Kind::break_off: break_off(action);
  }
}

void Pml::send_control(const Action& action) {
  PeerLink* reached = link(*action.peer);
  if (reached == nullptr)
    refuse("no way to answer it", {action.header.data(), action.header_bytes});
  std::array<std::byte, header_max_bytes + key_max_bytes> message;
  std::memcpy(message.data(), action.header.data(), action.header_bytes);
  std::size_t bytes = action.header_bytes;
  mca_bml_base_btl_t* rail = nullptr;
  const auto add_memory = [&](std::size_t address_offset, std::size_t key_offset,
                              Registration& registration, const void* base, std::uint64_t length,
                              std::uint32_t access, bool contiguous) {
    const bool known = contiguous && register_memory(registration, *reached,
                                                     const_cast<void*>(base), length, access);
    if (!known) {
      message[1] |= std::byte{flag::no_memory};
      return;
    }
    rail = registration.bml_btl;
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(base);
    std::memcpy(message.data() + address_offset, &address, sizeof address);
    if (registration.handle == nullptr) return;
    const auto key_bytes = static_cast<std::uint16_t>(rail->btl->btl_registration_handle_size);
    std::memcpy(message.data() + key_offset, &key_bytes, sizeof key_bytes);
    std::memcpy(message.data() + bytes, registration.handle, key_bytes);
    bytes += key_bytes;
  };
  const Kind kind = kind_of(std::to_integer<std::uint8_t>(message[0]));
  if (kind == Kind::rts) {
    SendRequest& request = request_of(*action.send);
    add_memory(offsetof(RtsHeader, address), offsetof(RtsHeader, key_bytes), request.registration,
               data_start(request), request.op.length_bytes, MCA_BTL_REG_FLAG_REMOTE_READ,
               data_contiguous(request, *reached));
  } else if (kind == Kind::rtr || kind == Kind::grant) {
    ReceiveRequest& request = request_of(*action.receive);
    if (kind == Kind::grant)
      deregister(request.registration);  // a read that failed may have left one for another access
    const std::size_t address =
        kind == Kind::rtr ? offsetof(RtrHeader, address) : offsetof(GrantHeader, address);
    const std::size_t key =
        kind == Kind::rtr ? offsetof(RtrHeader, key_bytes) : offsetof(TargetedHeader, key_bytes);
    add_memory(address, key, request.registration, data_start(request), request.op.capacity_bytes,
               MCA_BTL_REG_FLAG_REMOTE_WRITE, request.contiguous && reached->plain_bytes);
  } else if (action.send != nullptr) {
    rail = request_of(*action.send).registration.bml_btl;  // behind the data, on the same rail
  }
  if (rail == nullptr) rail = mca_bml_base_btl_array_get_next(&reached->endpoint->btl_eager);
  const std::span<const std::byte> whole(message.data(), bytes);
  if (reached->pending.empty() && rail->btl->btl_sendi != nullptr &&
      mca_bml_base_sendi(
          rail, nullptr, message.data(), bytes, 0, MCA_BTL_NO_ORDER,
          MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_FLAGS_SIGNAL,
          tag_control, nullptr) == OMPI_SUCCESS) {
    return;
  }
  send_bytes(*reached, rail, tag_control, whole);
}

int register_callbacks() {
  if (const int rc = register_receiver<receive_eager>(tag_eager); rc != OMPI_SUCCESS) return rc;
  if (const int rc = register_receiver<receive>(tag_control); rc != OMPI_SUCCESS) return rc;
  return mca_bml.bml_register_error(on_btl_error);
}

}  // namespace overlap::speculative
