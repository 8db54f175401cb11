// What the protocol asks for: control messages, transfers, completions.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

#include <optional>

namespace overlap::speculative {
namespace {

/// Where a control message goes and which memory it describes.
struct Outgoing {
  Rail* rail = nullptr;
  MemoryDescription memory;
  bool accessible = false;

  void describe(bool exposed, const Registration& registration, const void* base) {
    accessible = exposed;
    if (!exposed) return;
    rail = registration.rail();
    memory.address = reinterpret_cast<std::uintptr_t>(base);
    memory.key = registration.key();
  }
};

void describe_source(Outgoing& out, SendRequest& request, Endpoint& endpoint) {
  void* base = data_start(request);
  const bool exposed =
      is_contiguous(request) && request.exposed.expose(endpoint, base, request.op.length_bytes,
                                                       MCA_BTL_REG_FLAG_REMOTE_READ, key_max_bytes);
  out.describe(exposed, request.exposed, base);
}

void describe_target(Outgoing& out, ReceiveRequest& request, Endpoint& endpoint) {
  void* base = data_start(request);
  const bool exposed =
      request.contiguous && request.exposed.expose(endpoint, base, request.op.capacity_bytes,
                                                   MCA_BTL_REG_FLAG_REMOTE_WRITE, key_max_bytes);
  out.describe(exposed, request.exposed, base);
}

/// The last message of a request ends nothing before it has left: the process may make no more
/// calls once its request is complete. But a receive does not wait behind messages without room:
/// this process comes back to MPI for those, at the latest in MPI_Finalize, and what gives room may
/// be a third process that computes, even where the target waits for this very message in MPI_Send.
MessageHold hold_for(const Action& action, Kind kind, const Endpoint& endpoint) {
  const bool last = kind == Kind::done || kind == Kind::rtr_ack || kind == Kind::sync_ack;
  if (!last) return {};
  if (action.send != nullptr) {
    SendRequest& request = request_of(*action.send);
    if (!request.life.active()) return {};
    request.life.hold();
    return make_hold<let_go_send>(&request);
  }
  if (action.receive == nullptr || endpoint.has_waiting_messages()) return {};
  ReceiveRequest& request = request_of(*action.receive);
  if (!request.life.active()) return {};
  request.life.hold();
  return make_hold<let_go_receive>(&request);
}

/// What a process of this node must be woken for: an RTS that a receive may wait for, and what a
/// request of its own needs to get further. @returns  nullopt: it can wait
std::optional<node::Envelope> announcement_of(const Action& action, Kind kind) noexcept {
  if (kind == Kind::grant) return node::Envelope{.kind = node::WaitKind::answer};
  if (kind != Kind::rts) return std::nullopt;
  SequencedHeader head;
  std::memcpy(&head, action.message.header.data(), sizeof head);
  return node::Envelope{.kind = node::WaitKind::message,
                        .context = head.context,
                        .source = head.source,
                        .tag = head.tag};
}

/// One DONE by each rail of a striped write, ordered after the rail's share of the bytes.
void send_striped_done(ControlMessage done, SendRequest& request, Endpoint& endpoint) {
  const std::size_t parts = request.transfer.rails_used();
  done.set_parts(static_cast<std::uint32_t>(parts));
  std::array<std::byte, control_max_bytes> bytes;
  const std::size_t length = encode(done, nullptr, bytes);
  for (std::size_t i = 0; i < parts; ++i) {
    request.life.hold();
    endpoint.send_control(request.transfer.rail(i), tag_control,
                          std::span<const std::byte>(bytes).first(length),
                          make_hold<let_go_send>(&request));
  }
}

[[noreturn]] void abort_failed_transfer(const Action& action) noexcept {
  const bool sends = action.send != nullptr;
  const Transfer& transfer = sends ? static_cast<Transfer&>(request_of(*action.send).transfer)
                                   : request_of(*action.receive).transfer;
  const Peer& peer = sends ? *action.send->peer : *action.receive->peer;
  const char* btl = transfer.rails_used() > 0
                        ? transfer.rail(0).btl().btl_component->btl_version.mca_component_name
                        : "?";
  abort_peer_failure(
      btl, hostname(&known_endpoint(peer)->proc()),
      "a transfer in flight has failed, and the other side may have been told that it has not");
}

}  // namespace

bool offers_memory(const Endpoint& endpoint) noexcept {
  return tunables.cancel == cancel_choice::sender || !endpoint.puts_are_messages();
}

void Actions::run_queued() {
  running_ = true;
  std::vector<Action>& actions = protocol_.actions();
  must_run([this, &actions] {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      Action action = actions[i];  // a copy: performing may append
      perform(action);
    }
  });
  actions.clear();
  running_ = false;
}

void Actions::perform(Action& action) {
  switch (action.kind) {
    case Action::Kind::control: send_control(action); break;
    case Action::Kind::read: request_of(*action.receive).transfer.start_read(); break;
    case Action::Kind::write: request_of(*action.send).transfer.start_write(); break;
    case Action::Kind::push: request_of(*action.send).fragments.start(); break;
    case Action::Kind::complete_send: end(request_of(*action.send)); break;
    case Action::Kind::complete_receive: end(request_of(*action.receive), false); break;
    case Action::Kind::complete_cancelled: end(request_of(*action.receive), true); break;
    case Action::Kind::break_off: abort_failed_transfer(action);
  }
}

void Actions::send_control(const Action& action) {
  Endpoint* endpoint = endpoint_of(*action.peer);
  if (endpoint == nullptr) {
    abort_bad_message("no way to answer it",
                      {action.message.header.data(), action.message.header_bytes});
  }
  const Kind kind = action.message.kind();
  Outgoing out;
  if (kind == Kind::rts) {
    describe_source(out, request_of(*action.send), *endpoint);
  } else if (kind == Kind::grant && action.receive != nullptr) {
    ReceiveRequest& request = request_of(*action.receive);
    if (request.copy.way == CopyWay::read) describe_target(out, request, *endpoint);
  } else if (kind == Kind::rtr) {
    if (offers_memory(*endpoint)) describe_target(out, request_of(*action.receive), *endpoint);
    action.receive->names_memory = out.accessible;
  } else if (action.send != nullptr && request_of(*action.send).transfer.rails_used() > 0) {
    if (kind == Kind::done && request_of(*action.send).transfer.rails_used() > 1) {
      send_striped_done(action.message, request_of(*action.send), *endpoint);
      return;
    }
    out.rail = &request_of(*action.send).transfer.rail(0);  // ordered after the data
  }
  if (out.rail == nullptr) out.rail = &endpoint->next_eager();
  std::array<std::byte, control_max_bytes> bytes;
  const std::size_t length = encode(action.message, out.accessible ? &out.memory : nullptr, bytes);
  const std::optional<node::Envelope> announces = announcement_of(action, kind);
  endpoint->send_control(*out.rail, tag_control, std::span<const std::byte>(bytes).first(length),
                         hold_for(action, kind, *endpoint), announces ? &*announces : nullptr);
}

}  // namespace overlap::speculative
