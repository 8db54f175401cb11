// The data path.
//
// Doorbell order: post() needs no fence of its own. What was stored before it reaches memory before
// the device is told of the request: every hardware provider of rdma-core has a
// udma_to_device_barrier() between the entry and the doorbell, and the software ones (rxe, siw)
// enter the kernel. The call goes through a function pointer, so the compiler keeps the stores
// before it as well.
// SPDX-License-Identifier: BSD-3-Clause
#include "queues.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "convert.hpp"

namespace overlap::fabric::verbs {
namespace {

Status post_status(int error) noexcept {
  switch (error) {
    case 0: return Status::done;
    case ENOMEM: return Status::retry_queue_full;
    case EINVAL: return Status::bad_argument;
    default: return Status::broken;
  }
}

unsigned send_flags(const WorkRequest& request) noexcept {
  unsigned flags = 0;
  if (request.signalled) flags |= IBV_SEND_SIGNALED;
  if (request.fenced) flags |= IBV_SEND_FENCE;
  if (request.inline_data) flags |= IBV_SEND_INLINE;
  const bool is_send =
      request.opcode == Opcode::send || request.opcode == Opcode::send_with_immediate;
  if (request.solicited && is_send) flags |= IBV_SEND_SOLICITED;
  return flags;
}

/// What is being made, for messages. @throws Error: bad_option when the device has no queues of
/// this size
std::string entries_text(const char* queue, std::uint32_t entries, const Capabilities& can,
                         std::uint32_t max) {
  const std::string what =
      std::string("a ") + queue + " of " + std::to_string(entries) + " entries on " + can.name;
  if (entries >= 1 && entries <= max) return what;
  throw Error(Error::Kind::bad_option,
              "cannot make " + what + ": its limits are 1 and " + std::to_string(max));
}

/// Sends are posted with this bit and their mark, receive entries with the user's id: a completion
/// that has failed does not tell which of them it belongs to.
constexpr std::uint64_t send_bit = std::uint64_t{1} << 63U;

bool is_atomic(Opcode opcode) noexcept {
  return opcode == Opcode::fetch_add || opcode == Opcode::compare_swap;
}

}  // namespace

// --- Completion queue ------------------------------------------------------------------

VerbsCompletionQueue::VerbsCompletionQueue(Core& core, std::uint32_t entries) : core_(core) {
  const std::string what = entries_text("completion queue", entries, core.capabilities,
                                        core.capabilities.completion_queue_max);
  queue_.reset(ibv_create_cq(core.port.context.get(), static_cast<int>(entries), nullptr,
                             core.arrivals.channel(),
                             completion_vector(core.port.context->num_comp_vectors, getpid())));
  if (queue_ == nullptr) throw failure("cannot make " + what, errno);
  core.arrivals.add(*queue_);
}

std::size_t VerbsCompletionQueue::poll(std::span<Completion> out) noexcept {
  std::size_t count = kept_.empty() ? 0 : take_kept(out);
  std::array<ibv_wc, 16> entries;  // filled by the device's driver
  while (count < out.size()) {
    const int wanted = static_cast<int>(std::min(entries.size(), out.size() - count));
    const int got = ibv_poll_cq(queue_.get(), wanted, entries.data());
    for (int i = 0; i < got; ++i) {
      if (const auto told = translate(entries[static_cast<std::size_t>(i)])) out[count++] = *told;
    }
    if (got < wanted) break;
  }
  return count;
}

std::size_t VerbsCompletionQueue::take_kept(std::span<Completion> out) noexcept {
  const std::size_t count = std::min(out.size(), kept_.size());
  std::copy_n(kept_.begin(), count, out.begin());
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

std::optional<Completion> VerbsCompletionQueue::translate(const ibv_wc& entry) noexcept {
  Completion result = completion(entry);
  VerbsQueuePair* queue_pair = core_.queue_pairs.find(entry.qp_num);
  const bool is_send = (entry.wr_id & send_bit) != 0;
  if (queue_pair == nullptr) {  // destroyed, and drain() was cut short
    if (is_send) return std::nullopt;
    return result;
  }
  if (is_send) {
    const auto id = queue_pair->posted_requests().ended(static_cast<std::uint32_t>(entry.wr_id));
    if (!id) return std::nullopt;
    result.id = *id;
  }
  result.queue_pair_number = queue_pair->number();
  Connection& connection = queue_pair->connection();
  if (result.status != CompletionStatus::success) {
    core_.connector.apply(connection, ConnectionEvent::failed, text(result.status));
  } else if (connection.state != ConnectionState::established && result.opcode == Opcode::receive) {
    // The peer's first message may be here before librdmacm has told that the connection stands.
    core_.connector.apply(connection, ConnectionEvent::data_arrived);
  }
  return result;
}

void VerbsCompletionQueue::drain() noexcept {
  try {
    // Not more than fit in: other queue pairs may go on filling it.
    for (int left = queue_->cqe + 1; left > 0; --left) {
      ibv_wc entry{};
      if (ibv_poll_cq(queue_.get(), 1, &entry) != 1) return;
      if (const auto told = translate(entry)) kept_.push_back(*told);
    }
  } catch (...) {
    // Out of memory: what is left stays in the device's queue and comes without a number.
  }
}

void VerbsCompletionQueue::add_flushed(std::uint64_t id, std::uint32_t queue_pair_number) {
  Completion completion;
  completion.id = id;
  completion.status = CompletionStatus::flushed;
  completion.queue_pair_number = queue_pair_number;
  kept_.push_back(completion);
}

// --- Receive queue ---------------------------------------------------------------------

VerbsReceiveQueue::VerbsReceiveQueue(Core& core, std::uint32_t entries) {
  const std::string what = entries_text("receive queue", entries, core.capabilities,
                                        core.capabilities.receive_queue_max);
  ibv_srq_init_attr attributes{};
  attributes.attr.max_wr = entries;
  attributes.attr.max_sge = 1;
  queue_.reset(ibv_create_srq(core.domain.get(), &attributes));
  if (queue_ == nullptr) throw failure("cannot make " + what, errno);
}

Status VerbsReceiveQueue::post(std::uint64_t id, void* address, std::uint32_t bytes,
                               std::uint32_t local_key) noexcept {
  if ((id & send_bit) != 0) return Status::bad_argument;
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uintptr_t>(address);
  piece.length = bytes;
  piece.lkey = local_key;
  ibv_recv_wr entry{};
  entry.wr_id = id;
  entry.sg_list = &piece;
  entry.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return post_status(ibv_post_srq_recv(queue_.get(), &entry, &bad));
}

// --- Queue pair ------------------------------------------------------------------------

ibv_qp_init_attr queue_pair_attributes(ibv_cq* completions, ibv_srq* receives,
                                       std::uint32_t send_queue_entries, std::uint32_t gather_max,
                                       std::uint32_t inline_bytes) noexcept {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = completions;
  attributes.recv_cq = completions;
  attributes.srq = receives;
  attributes.cap.max_send_wr = send_queue_entries;
  attributes.cap.max_send_sge = gather_max;
  attributes.cap.max_inline_data = inline_bytes;
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = 0;
  return attributes;
}

VerbsQueuePair::VerbsQueuePair(Core& core, VerbsCompletionQueue& completions,
                               VerbsReceiveQueue& receives, std::uint32_t send_queue_entries)
    : core_(core),
      completions_(completions),
      posted_(send_queue_entries),
      inline_max_bytes_(core.capabilities.inline_max_bytes) {
  const Capabilities& can = core.capabilities;
  const std::string what = entries_text("send queue", send_queue_entries, can, can.send_queue_max);
  ibv_qp_init_attr attributes =
      queue_pair_attributes(completions.device_queue(), receives.device_queue(), send_queue_entries,
                            can.gather_max, inline_max_bytes_);
  queue_pair_.reset(ibv_create_qp(core.domain.get(), &attributes));
  if (queue_pair_ == nullptr) throw failure("cannot make " + what, errno);
  connection_.device_queue_pair = queue_pair_.get();
  connection_.owner = this;
  core.queue_pairs.insert(queue_pair_->qp_num, this);
  try {
    core.connector.add(connection_);
  } catch (...) {
    core.queue_pairs.erase(queue_pair_->qp_num);
    throw;
  }
  number_ = ++core.last_number;
}

VerbsQueuePair::~VerbsQueuePair() {
  core_.connector.close(connection_);
  wait_for_flush();  // some drivers drop its completions when it goes, and with them the user's
                     // receive buffers
  core_.connector.remove(connection_);
  const std::uint32_t device_number = queue_pair_->qp_num;
  queue_pair_.reset();
  completions_.drain();  // others leave them behind
  core_.queue_pairs.erase(device_number);
  try {
    posted_.flush([this](std::uint64_t id) { completions_.add_flushed(id, number_); });
  } catch (...) {
    // Out of memory: what is left is not reported.
  }
}

/// The queue pair is in its error state: the device flushes what is posted, soon but not at once.
///
/// The entries that it has taken from the shared receive queue stand in the completion queue when
/// the device has told of the last one (IBV_EVENT_QP_LAST_WQE_REACHED), not before. Devices that do
/// not tell are waited for a few times only.
void VerbsQueuePair::wait_for_flush() noexcept {
  constexpr auto longest = std::chrono::milliseconds(20);
  constexpr std::uint32_t misses_max = 2;
  const auto began = std::chrono::steady_clock::now();
  const bool tells = connection_.took_entries && core_.last_entries_missed < misses_max;
  const auto goes_on = [&] {
    return posted_.signalled() > 0 || (tells && !connection_.last_entry);
  };
  do {
    core_.connector.read_async_events();  // first: what it announces stands in the queue
    completions_.drain();
  } while (goes_on() && std::chrono::steady_clock::now() - began < longest);
  // One that tells is slow now and then; one that never does is waited for no more.
  if (tells) core_.last_entries_missed = connection_.last_entry ? 0 : core_.last_entries_missed + 1;
}

Status VerbsQueuePair::post(const WorkRequest& request) noexcept {
  if (connection_.state != ConnectionState::established) [[unlikely]] {
    return connection_.state == ConnectionState::ended ? Status::broken : Status::bad_argument;
  }
  if (!posted_.has_room()) [[unlikely]]
    return Status::retry_queue_full;
  if (request.gather_count > core_.capabilities.gather_max || request.opcode == Opcode::receive)
      [[unlikely]]
    return Status::bad_argument;
  std::array<ibv_sge, gather_limit> pieces;
  std::uint32_t bytes = 0;
  for (std::size_t i = 0; i < request.gather_count; ++i) {
    const Gather& from = request.gather[i];
    pieces[i].addr = reinterpret_cast<std::uintptr_t>(from.address);
    pieces[i].length = from.bytes;
    pieces[i].lkey = from.local_key;
    bytes += from.bytes;
  }
  // Drivers differ in what they answer to too much inline data, and one of the answers is "queue
  // full".
  if (request.inline_data && bytes > inline_max_bytes_) [[unlikely]]
    return Status::bad_argument;
  ibv_send_wr entry;  // only what the opcode needs is filled in, and looked at
  entry.wr_id = send_bit | posted_.next();
  entry.next = nullptr;
  entry.sg_list = pieces.data();
  entry.num_sge = request.gather_count;
  entry.opcode = work_opcode(request.opcode);
  entry.send_flags = send_flags(request);
  entry.imm_data = htonl(request.immediate);
  if (is_atomic(request.opcode)) {
    if (!core_.capabilities.atomics) [[unlikely]]
      return Status::bad_argument;
    entry.wr.atomic.remote_addr = request.remote_address;
    entry.wr.atomic.rkey = request.remote_key;
    entry.wr.atomic.compare_add =
        request.opcode == Opcode::fetch_add ? request.operand : request.compare;
    entry.wr.atomic.swap = request.operand;
  } else {
    entry.wr.rdma.remote_addr = request.remote_address;
    entry.wr.rdma.rkey = request.remote_key;
  }
  ibv_send_wr* bad = nullptr;
  const Status status = post_status(ibv_post_send(queue_pair_.get(), &entry, &bad));
  if (status == Status::done) [[likely]]
    posted_.posted(request.id, request.signalled);
  return status;
}

/// Asked of the connected queue pair: some drivers say no to any that is not ready to send.
WriteOrder VerbsQueuePair::write_order() const noexcept {
  WriteOrder order;
  const bool guaranteed = ibv_query_qp_data_in_order(queue_pair_.get(), IBV_WR_RDMA_WRITE, 0) == 1;
  order.last_byte = guaranteed ? LastByte::last : last_byte_of_vendor(core_.port.device.vendor_id);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr unused{};
  if (ibv_query_qp(queue_pair_.get(), &attributes, IBV_QP_PATH_MTU, &unused) == 0)
    order.packet_bytes = mtu_bytes(attributes.path_mtu);
  return order;
}

}  // namespace overlap::fabric::verbs
