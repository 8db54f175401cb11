// What arrives: checks on the responder's behalf, receive entries, copying, responses.
#include <algorithm>
#include <array>

#include "engine.hpp"

namespace overlap::fabric::soft {
namespace {

/// Up to here a message is copied at once; larger ones give way to others between pieces.
constexpr std::uint64_t at_once_bytes = 16U << 10U;

}  // namespace

// --- Requests at the responder -----------------------------------------------------------------------------------------------

void Engine::arrive(Pair& pair) {
  Lane& lane = pair.out;
  while (!lane.arrivals.empty() && lane.arrivals.front().at <= clock_) {
    if (lane.moving || pair.arrive_waiter.on != nullptr) return;
    if (pair.stalled) return wait(pair.arrive_waiter, pair.resumed);
    const Arrival arrival = lane.arrivals.front();
    Task& task = pair.task(arrival.task);
    if (!task.admitted && admit(pair, task) != Admission::granted) return;
    lane.arrivals.pop_front();
    if (task.is_read()) {
      pair.responses.push_back(arrival.task);
      next_response(pair);
      continue;
    }
    task.available_bytes = arrival.bytes;
    lane.task = arrival.task;
    if (!move(pair, lane)) return;
  }
  schedule_arrival(lane);
}

Engine::Admission Engine::admit(Pair& pair, Task& task) {
  CompletionStatus status = pair.fail_next;
  pair.fail_next = CompletionStatus::success;
  if (status == CompletionStatus::success) status = check_remote(pair, task);
  if (status == CompletionStatus::success && task.takes_receive()) {
    if (const Admission admission = admit_receive(pair, task); admission != Admission::granted)
      return admission;
  }
  if (status == CompletionStatus::success && task.is_atomic()) {
    const Copied outcome = run_atomic(pair, task);
    if (outcome == Copied::target_gone) return Admission::waits;  // for remove_client()
    if (outcome != Copied::done) status = CompletionStatus::remote_access_error;
  }
  if (status != CompletionStatus::success) {
    fail_task(pair, task, status, clock_ + pair.wire.latency_ns, &pair.out);
    return Admission::failed;
  }
  task.admitted = true;
  return Admission::granted;
}

CompletionStatus Engine::check_remote(const Pair& pair, const Task& task) const {
  const WorkRequest& request = task.request();
  if (request.opcode == Opcode::send || request.opcode == Opcode::send_with_immediate ||
      task.total_bytes == 0) {
    return CompletionStatus::success;
  }
  const unsigned rights = task.is_atomic() ? access::remote_atomic
                          : task.is_read() ? access::remote_read
                                           : access::remote_write;
  const std::uint32_t owner = pair.peer->client->id;
  const bool aligned = !task.is_atomic() || request.remote_address % sizeof(std::uint64_t) == 0;
  const Region* region =
      regions_.find(request.remote_key, owner, request.remote_address, task.total_bytes, rights);
  return region != nullptr && aligned ? CompletionStatus::success
                                      : CompletionStatus::remote_access_error;
}

Engine::Admission Engine::admit_receive(Pair& pair, Task& task) {
  Pair& peer = *pair.peer;
  if (peer.receives == nullptr || !host_.take_receive(*peer.receives, task.receive)) {
    // Receiver not ready. The message waits at the receiver's door; trying again costs the wire nothing.
    if (peer.receives != nullptr) {
      wait(pair.arrive_waiter, peer.receives->posted);
    } else {
      wait(pair.arrive_waiter, pair.resumed);
    }
    return Admission::waits;
  }
  if (task.request().opcode == Opcode::write_with_immediate)
    return Admission::granted;  // its bytes go elsewhere
  if (task.total_bytes > task.receive.bytes) {
    receive_failed(pair, task, CompletionStatus::length_error);
    return Admission::failed;
  }
  const Receive& receive = task.receive;
  if (task.total_bytes > 0 && regions_.find(receive.local_key, peer.client->id, receive.address,
                                            task.total_bytes, access::local_write) == nullptr) {
    receive_failed(pair, task, CompletionStatus::protection_error);
    return Admission::failed;
  }
  return Admission::granted;
}

Copied Engine::run_atomic(Pair& pair, Task& task) {
  const WorkRequest& request = task.request();
  const Client& owner = *pair.peer->client;
  const Region* region = regions_.own(request.remote_key, owner.id);
  const Piece target{request.remote_address, sizeof(std::uint64_t),
                     region->mapped(request.remote_address)};
  return host_.atomic(owner, target, request, task.old_value);
}

// --- Responses at the poster -------------------------------------------------------------------------------------------------

void Engine::come_back(Pair& pair) {
  Lane& lane = pair.back;
  while (!lane.arrivals.empty() && lane.arrivals.front().at <= clock_) {
    if (lane.moving) return;
    if (pair.stalled) return wait(pair.arrive_waiter, pair.resumed);
    const Arrival arrival = lane.arrivals.front();
    lane.arrivals.pop_front();
    pair.task(arrival.task).available_bytes = arrival.bytes;
    lane.task = arrival.task;
    if (!move(pair, lane)) return;
  }
  schedule_arrival(lane);
}

// --- Copying -----------------------------------------------------------------------------------------------------------------

/// Copy what has come of the lane's task, or leave it to move_piece(). @returns  true: the next arrival may be looked at
bool Engine::move(Pair& pair, Lane& lane) {
  const Task& task = pair.task(lane.task);
  lane.moving = true;
  if (task.available_bytes - task.moved_bytes > at_once_bytes) {
    backlog_.push_back({&pair, &lane});
    return false;
  }
  if (move_some(pair, lane) != Moved::done) return false;
  moved(pair, lane);
  return pair.state == PairState::established;
}

void Engine::move_piece() {
  const Moving moving = backlog_.front();
  backlog_.pop_front();
  Pair& pair = *moving.pair;
  Lane& lane = *moving.lane;
  if (move_some(pair, lane) != Moved::done) return;
  const Task& task = pair.task(lane.task);
  if (task.moved_bytes < task.available_bytes) {
    backlog_.push_back(moving);
    return;
  }
  moved(pair, lane);
  if (pair.state != PairState::established) return;
  if (&lane == &pair.out) {
    arrive(pair);
  } else {
    come_back(pair);
  }
}

/// What has arrived so far is copied.
void Engine::moved(Pair& pair, Lane& lane) {
  lane.moving = false;
  Task& task = pair.task(lane.task);
  if (task.moved_bytes < task.total_bytes) return;
  if (&lane == &pair.out) {
    deliver(pair, task);
  } else {
    answered(pair, task);
  }
}

/// Copy the next piece; a fault fails the task.
Engine::Moved Engine::move_some(Pair& pair, Lane& lane) {
  CompletionStatus fault = CompletionStatus::success;
  const Moved outcome = move_bytes(pair, lane, fault);
  if (outcome == Moved::failed) {
    const Time answer_ns = &lane == &pair.out ? pair.wire.latency_ns : 0;
    fail_task(pair, pair.task(lane.task), fault, clock_ + answer_ns, &lane);
  }
  return outcome;
}

/// Keys are looked up for each piece: memory may have been deregistered meanwhile.
Engine::Moved Engine::move_bytes(Pair& pair, Lane& lane, CompletionStatus& fault) {
  Task& task = pair.task(lane.task);
  const std::uint64_t count = std::min(task.available_bytes - task.moved_bytes, Host::piece_bytes);
  if (count == 0) return Moved::done;
  std::array<Piece, gather_limit> local;
  std::size_t pieces = 0;
  Piece remote;
  fault = find_local(pair, task, count, local, pieces);
  if (fault == CompletionStatus::success) fault = find_remote(pair, task, count, remote);
  if (fault != CompletionStatus::success) return Moved::failed;

  const bool last = task.moved_bytes + count == task.total_bytes;
  const std::span<const Piece> own{local.data(), pieces};
  const std::span<const Piece> other{&remote, 1};
  const Client& peer = *pair.peer->client;
  const bool to_poster = task.is_read();
  const CompletionStatus peers_fault = CompletionStatus::remote_access_error;
  const CompletionStatus own_fault = CompletionStatus::protection_error;
  switch (to_poster ? host_.copy(*pair.client, own, peer, other, last)
                    : host_.copy(peer, other, *pair.client, own, last)) {
    case Copied::done: task.moved_bytes += count; return Moved::done;
    case Copied::source_failed: fault = to_poster ? peers_fault : own_fault; return Moved::failed;
    case Copied::target_failed: fault = to_poster ? own_fault : peers_fault; return Moved::failed;
    case Copied::source_gone:
    case Copied::target_gone: break;
  }
  return Moved::held;  // until remove_client() ends it with the right words
}

/// The next bytes in the poster's memory.
CompletionStatus Engine::find_local(const Pair& pair, const Task& task, std::uint64_t count,
                                    std::array<Piece, gather_limit>& pieces,
                                    std::size_t& found) const {
  const WorkRequest& request = task.request();
  const std::uint64_t from = task.moved_bytes;
  if (request.inline_data) {
    pieces[found++] = {0, count, const_cast<std::byte*>(task.submission.inline_data) + from};
    return CompletionStatus::success;
  }
  const unsigned rights = task.is_read() ? access::local_write : 0;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < request.gather_count; offset += request.gather[i].bytes, ++i) {
    const Gather& part = request.gather[i];
    const std::uint64_t first = std::max(from, offset);
    const std::uint64_t last = std::min(from + count, offset + part.bytes);
    if (first >= last) continue;
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(part.address) + (first - offset);
    const Region* region =
        regions_.find(part.local_key, pair.client->id, address, last - first, rights);
    if (region == nullptr) return CompletionStatus::protection_error;
    pieces[found++] = {address, last - first, region->mapped(address)};
  }
  return CompletionStatus::success;
}

/// The next bytes at the peer: what the request names, or its receive entry, or the value an atomic found there.
CompletionStatus Engine::find_remote(const Pair& pair, const Task& task, std::uint64_t count,
                                     Piece& piece) const {
  const WorkRequest& request = task.request();
  if (task.is_atomic()) {
    piece = {0, count, const_cast<std::byte*>(reinterpret_cast<const std::byte*>(&task.old_value))};
    return CompletionStatus::success;
  }
  const bool by_receive =
      request.opcode == Opcode::send || request.opcode == Opcode::send_with_immediate;
  const std::uint64_t address =
      (by_receive ? task.receive.address : request.remote_address) + task.moved_bytes;
  const std::uint32_t key = by_receive ? task.receive.local_key : request.remote_key;
  const unsigned rights = by_receive       ? access::local_write
                          : task.is_read() ? access::remote_read
                                           : access::remote_write;
  const Region* region = regions_.find(key, pair.peer->client->id, address, count, rights);
  if (region == nullptr)
    return by_receive ? CompletionStatus::remote_error : CompletionStatus::remote_access_error;
  piece = {address, count, region->mapped(address)};
  return CompletionStatus::success;
}

// --- The end of a task -------------------------------------------------------------------------------------------------------

/// All bytes of a send or write are there.
void Engine::deliver(Pair& pair, Task& task) {
  if (task.takes_receive()) {
    const WorkRequest& request = task.request();
    Completion completion;
    completion.id = task.receive.id;
    completion.opcode = Opcode::receive;
    completion.has_immediate = request.opcode != Opcode::send;
    completion.immediate = request.immediate;
    completion.bytes = static_cast<std::uint32_t>(task.total_bytes);
    completion.queue_pair_number = pair.peer->number;
    push(*pair.peer->completions, *pair.peer, completion, 0);
  }
  task.done = true;
  task.done_at = clock_ + pair.wire.latency_ns;
  if (task.request().signalled || pair.failing)
    arm_retire(pair);  // what has failed may stand behind it
}

/// A response is there.
void Engine::answered(Pair& pair, Task& task) {
  task.done = true;
  task.done_at = clock_;
  --pair.reads_under_way;
  raise(pair.reads_ended);
  arm_retire(pair);
}

}  // namespace overlap::fabric::soft
