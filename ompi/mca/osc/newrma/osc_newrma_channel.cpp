// Messages out: cut to what a BTL takes, or waiting for room.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_channel.hpp"

#include <optional>

#include "ompi/mca/common/overlap/entry.hpp"
#include "ompi/mca/common/overlap/kernel_copy.hpp"
#include "ompi/mca/common/overlap/process.hpp"

#include "osc_newrma_window.hpp"
#include "protocol/block_cursor.hpp"
#include "protocol/write_row.hpp"

namespace overlap::newrma {
namespace {

/// Does its target wait for the end of this rank's epoch by it?
bool ends_epoch(Notice notice) noexcept {
  return notice == Notice::complete || notice == Notice::unlock || notice == Notice::fence;
}

constexpr std::uint32_t message_flags =
    MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_FLAGS_SIGNAL;

}  // namespace

/// What waits: one of these.
struct Channel::Item {
  Bundle bundle;                      ///< messages with their bytes
  std::size_t operations = 0;         ///< of these
  bool of_epoch = false;              ///< some of it: see Channel::has_gone()
  RmaOperation* operation = nullptr;  ///< the rest of one
  MessageHead head;                   ///< of an answer from memory, or of a key
  std::vector<Block> memory;          ///< an answer from memory
  std::optional<BlockCursor> cursor;  ///< in `memory`
};

Channel::Channel(Window& window, Rank rank) : window_(window), rank_(rank) {}
Channel::~Channel() {
  if (endpoint_ != nullptr) endpoint_->drop_user();
}

MessageHead Channel::head_of(Kind kind) const noexcept {
  MessageHead head = window_.message_head();
  head.kind = kind;
  return head;
}

void Channel::send_notice(const NoticeMessage& notice) {
  MessageHead head = head_of(Kind::notice);
  head.notice = notice.notice;
  head.lock_type = notice.type;
  head.id = notice.id;
  head.value = notice.value;
  static_cast<void>(add_message(head, 0));
  if (ends_epoch(notice.notice)) note_of_epoch();
  pushed(false);
}

void Channel::send_operation(RmaOperation& operation) {
  if (add_operation(operation)) {
    window_.operation_sent(operation);  // before its answer can come
    pushed(true);
    return;
  }
  auto item = std::make_unique<Item>();
  item->operation = &operation;
  items_.push(std::move(item));
  note_of_epoch();
  pushed(false);
}

/// @returns  false: it is large, or its messages are cut to what nobody knows yet
bool Channel::add_operation(RmaOperation& operation) {
  if (endpoint_ == nullptr || operation.all_sent()) return false;
  const std::uint64_t room = std::min(room_bytes(), small_max_bytes);
  MessageHead head = head_of(Kind::put);
  std::vector<Block> blocks;
  const std::uint64_t payload_bytes = operation.next_blocks(blocks, room, head);
  const std::span<const std::byte> block_bytes = std::as_bytes(std::span(blocks));
  if (!operation.ends_with_message()) {
    operation.message_not_gone();
    return false;
  }
  head.block_count = static_cast<std::uint32_t>(blocks.size());
  const std::span<std::byte> behind = add_message(head, block_bytes.size() + payload_bytes);
  std::ranges::copy(block_bytes, behind.begin());
  operation.write_payload(behind.subspan(block_bytes.size()));
  operation.message_gone();
  count_operation();
  return true;
}

void Channel::send_write(const MessageHead& head, const Block& block, const void* from) {
  const std::uint64_t bytes = sizeof block + block.bytes;
  Bundle* const bundle = newest_bundle();
  std::span<std::byte> behind;
  if (bundle != nullptr) behind = extend_row(*bundle, head, bytes);
  if (behind.empty()) behind = add_message(head, bytes);
  std::memcpy(behind.data(), &block, sizeof block);
  std::memcpy(behind.data() + sizeof block, from, block.bytes);
  count_operation();
  pushed(true);
}

void Channel::send_data(std::uint32_t id, std::uint64_t offset_bytes,
                        std::span<const std::byte> data) {
  MessageHead head = head_of(Kind::data);
  head.id = id;
  head.value = offset_bytes;
  std::ranges::copy(data, add_message(head, data.size()).begin());
  pushed(false);
}

void Channel::send_memory(std::uint32_t id, std::uint64_t offset_bytes, std::vector<Block> blocks) {
  const std::uint64_t bytes = bytes_of(blocks);
  if (endpoint_ != nullptr && bytes <= std::min(room_bytes(), small_max_bytes)) {
    MessageHead head = head_of(Kind::data);
    head.id = id;
    head.value = offset_bytes;
    copy_out(blocks, add_message(head, bytes).data());
    pushed(false);
    return;
  }
  auto item = std::make_unique<Item>();
  item->head = head_of(Kind::data);
  item->head.id = id;
  item->head.value = offset_bytes;
  item->memory = std::move(blocks);
  item->cursor.emplace(item->memory);
  push(std::move(item));
}

void Channel::send_key_wanted() {
  static_cast<void>(add_message(head_of(Kind::key_wanted), 0));
  pushed(false);
}

void Channel::send_key() {
  auto item = std::make_unique<Item>();
  item->head = head_of(Kind::key);
  key_sent_ = true;
  push(std::move(item));
}

void Channel::offer_key() {
  const WindowMemory& memory = window_.memory();
  if (key_sent_ || memory.flavor() == Flavor::dynamic || memory.own_bytes() == 0) return;
  Endpoint* const way = endpoint();
  if (way == nullptr) return;
  const Rail* const rail = transfer_rail(*way);
  if (rail != nullptr && needs_key(*rail)) send_key();
}

void Channel::push(std::unique_ptr<Item> item) {
  items_.push(std::move(item));
  pushed(false);
}

/// One more message, in a bundle. @returns  where to write the bytes behind its head
std::span<std::byte> Channel::add_message(const MessageHead& head, std::uint64_t bytes) {
  constexpr std::uint64_t bundle_max_bytes = 16384;
  const std::uint64_t message_bytes = sizeof head + bytes;
  const Bundle* const shared = newest_bundle();
  if (shared == nullptr || !shared->has_room(message_bytes)) {
    const std::uint64_t most = endpoint_ != nullptr ? std::min(room_bytes(), bundle_max_bytes) : 0;
    auto item = std::make_unique<Item>();
    item->bundle = Bundle(std::max(sizeof(Bundle::Length) + message_bytes, most));
    items_.push(std::move(item));
  }
  const std::span<std::byte> out = items_.at(items_.size() - 1)->bundle.add(message_bytes);
  std::memcpy(out.data(), &head, sizeof head);
  return out.subspan(sizeof head);
}

/// What waits last, if it may still grow. One of no messages belongs to something else.
Bundle* Channel::newest_bundle() {
  return items_.size() > (sending_ ? 1 : 0) ? &items_.at(items_.size() - 1)->bundle : nullptr;
}

/// So is the newest item, or part of it.
void Channel::note_of_epoch() {
  if (!std::exchange(items_.at(items_.size() - 1)->of_epoch, true)) ++epoch_items_;
}

/// The last message is one.
void Channel::count_operation() {
  note_of_epoch();
  ++items_.at(items_.size() - 1)->operations;
  window_.note_waiting();
}

/// There is something more. @param may_wait  calls that wait for it turn the progress
void Channel::pushed(bool may_wait) {
  if (together_ || (may_wait && holds_operation())) return;
  go_on();
}

/// Does the newest operation, with what stands in front of it, wait for more?
bool Channel::holds_operation() {
  if (endpoint_ == nullptr || !endpoint_->works_by_events() || sending_ || waiting()) return false;
  if (!pace_.holds(process->driver.turns()) || items_.size() > 1) return false;
  if (!std::exchange(listed_, true)) window_.hold(*this);
  return held_ = true;
}

bool Channel::has_row_ended() noexcept {
  // The interrupt thread may sleep after its turn.
  return !held_ || pace_.has_ended() || process->interrupts.inside();
}

void Channel::let_go() {
  listed_ = false;
  if (held_) go_on();
}

/// @returns  false: only an MPI thread can make the endpoint
bool Channel::connect() {
  if (endpoint_ != nullptr) return true;
  if (process->interrupts.inside()) {
    const ompi_proc_t* const proc = window_.known_process_of(rank_);
    endpoint_ = proc != nullptr ? Endpoints::find(*proc) : nullptr;
    if (endpoint_ == nullptr) return false;
  } else {
    endpoint_ = process->endpoint_of(window_.process_of(rank_));
    if (endpoint_ == nullptr) abort_job(1);  // who made it has said why
  }
  endpoint_->add_user();
  return true;
}

Rail* Channel::copying_rail() const noexcept {
  return endpoint_ != nullptr && kernel_copies(*endpoint_) ? transfer_rail(*endpoint_) : nullptr;
}

void Channel::go_on() {
  held_ = false;
  if (items_.empty() || sending_ || together_ || waiting()) return;
  if (!connect()) {
    window_.leave_to_mpi_thread();
    return;
  }
  if (endpoint_->crowded() || !send_waiting()) endpoint_->wait_as_message(*this);
}

bool Channel::try_again() { return !endpoint_->is_full() && send_waiting(); }

/// @returns  false: there is no room for the next one
bool Channel::send_waiting() noexcept {
  sending_ = true;
  const std::uint32_t sent_before = sent_;
  must_run([this] {
    while (send_first()) {}
  });
  sending_ = false;
  if (sent_ != sent_before) endpoint_->announce(window_.envelope(window_.self()));
  return items_.empty();
}

/// @returns  whether the next one may go
bool Channel::send_first() {
  if (items_.empty()) return false;
  const Sent sent = send_next(*items_.front());
  if (sent == Sent::whole) {
    const std::unique_ptr<Item> done = std::move(items_.front());
    items_.pop();
    if (done->of_epoch) --epoch_items_;
    window_.note_gone(done->operations);
    if (done->operation != nullptr) window_.operation_sent(*done->operation);
  }
  return sent != Sent::no_room && !endpoint_->is_full();
}

Channel::Sent Channel::send_next(Item& item) {
  if (item.operation != nullptr) return send_operation_part(*item.operation);
  if (item.cursor) return send_memory_part(item);
  return item.head.kind == Kind::key ? send_key_now(item.head) : send_bundle(item.bundle);
}

Channel::Sent Channel::send_key_now(const MessageHead& head) {
  const auto key = window_.key_for(*endpoint_);
  const bool gone = try_message(
      head, key.size(), [&key](std::span<std::byte> out) { std::ranges::copy(key, out.begin()); });
  return gone ? Sent::whole : Sent::no_room;
}

Channel::Sent Channel::send_bundle(const Bundle& bundle) {
  MessageHead head = head_of(Kind::bundle);
  std::span<const std::byte> behind = bundle.bytes();
  if (bundle.messages() == 1) {
    std::memcpy(&head, bundle.message().data(), sizeof head);
    behind = bundle.message().subspan(sizeof head);
  }
  const bool gone = try_message(head, behind.size(), [&behind](std::span<std::byte> out) {
    std::ranges::copy(behind, out.begin());
  });
  return gone ? Sent::whole : Sent::no_room;
}

Channel::Sent Channel::send_operation_part(RmaOperation& operation) {
  if (operation.all_sent()) return Sent::whole;  // of no bytes
  MessageHead head = head_of(Kind::put);
  std::vector<Block> blocks;
  const std::uint64_t payload_bytes = operation.next_blocks(blocks, room_bytes(), head);
  const std::span<const std::byte> block_bytes = std::as_bytes(std::span(blocks));
  head.block_count = static_cast<std::uint32_t>(blocks.size());
  const bool gone =
      try_message(head, block_bytes.size() + payload_bytes, [&](std::span<std::byte> out) {
        std::ranges::copy(block_bytes, out.begin());
        operation.write_payload(out.subspan(block_bytes.size()));
      });
  if (!gone) {
    operation.message_not_gone();
    return Sent::no_room;
  }
  operation.message_gone();
  return operation.all_sent() ? Sent::whole : Sent::part;
}

Channel::Sent Channel::send_memory_part(Item& item) {
  const BlockCursor before = *item.cursor;
  std::vector<Block> pieces;
  MessageHead head = item.head;
  head.value += item.cursor->position();
  const std::uint64_t bytes = item.cursor->take(pieces, room_bytes(), 1, true);
  const bool gone =
      try_message(head, bytes, [&](std::span<std::byte> out) { copy_out(pieces, out.data()); });
  if (!gone) {
    item.cursor = before;
    return Sent::no_room;
  }
  return item.cursor->at_end() ? Sent::whole : Sent::part;
}

void Channel::copy_out(std::span<const Block> blocks, std::byte* to) const {
  for (const Block& each : blocks) {
    std::memcpy(to, window_.memory_at(each), each.bytes);
    to += each.bytes;
  }
}

/// For blocks and payload of one message.
std::uint64_t Channel::room_bytes() const noexcept {
  return std::min<std::uint64_t>(endpoint_->eager_most_bytes(), message_max_bytes) -
         sizeof(MessageHead);
}

/// A BTL that kept a message has sent it. The window outlives that: it is freed when all have gone.
void Channel::kept_message_sent(void* channel) noexcept {
  auto& self = *static_cast<Channel*>(channel);
  --self.kept_;
  self.endpoint_->note_sent();
}

/// The same of a message of has_gone().
void Channel::epoch_message_sent(void* channel) noexcept {
  --static_cast<Channel*>(channel)->epoch_kept_;
  kept_message_sent(channel);
}

/// A small message that needs no descriptor. The BTL takes it at once or refuses.
bool Channel::try_inject(std::span<const std::byte> message) {
  return endpoint_->eager_rails().front().try_inject(message_tag, message, nullptr, 0,
                                                     message_flags);
}

/// Through shared memory no message waits in the BTL: this process may leave MPI when its last one
/// is gone. One without room keeps its bytes for the next try: it is the same then, or has grown.
/// @param fill  writes them
template <class Fill>
bool Channel::try_inject_large(std::uint64_t bytes, Fill&& fill) {
  if (refused_.size() != bytes) {
    refused_.resize(bytes);
    fill(refused_.data());
  }
  if (!try_inject(refused_)) return false;
  std::vector<std::byte>().swap(refused_);  // its memory, too
  ++sent_;
  return true;
}

/// @param behind_bytes  of the message, behind its head; `write` makes them
template <class Write>
bool Channel::try_message(MessageHead head, std::uint64_t behind_bytes, Write&& write) {
  constexpr std::uint64_t injected_max_bytes = 256;
  head.sequence = sent_;
  const std::uint64_t bytes = sizeof head + behind_bytes;
  // The first rail always: the others would only deliver out of order.
  Rail& rail = const_cast<Rail&>(endpoint_->eager_rails().front());
  std::array<std::byte, injected_max_bytes> small;
  const auto fill = [&](std::byte* out) {
    std::memcpy(out, &head, sizeof head);
    write(std::span(out + sizeof head, behind_bytes));
  };
  if (bytes <= injected_max_bytes) {
    fill(small.data());
    if (try_inject({small.data(), bytes})) {
      ++sent_;
      return true;
    }
  }
  if (rail.refuses_for_room) return bytes > injected_max_bytes && try_inject_large(bytes, fill);
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_alloc(rail.bml_btl, &descriptor, MCA_BTL_NO_ORDER, bytes, message_flags);
  if (descriptor == nullptr) return false;
  auto* const out = static_cast<std::byte*>(descriptor->des_segments[0].seg_addr.pval);
  if (bytes <= injected_max_bytes)
    std::memcpy(out, small.data(), bytes);
  else
    fill(out);
  descriptor->des_segments[0].seg_len = bytes;
  descriptor->des_segment_count = 1;
  endpoint_->note_kept();  // before the call: the callback may run inside
  ++kept_;
  const bool of_epoch = items_.front()->of_epoch;
  if (of_epoch) ++epoch_kept_;
  const MessageHold hold =
      of_epoch ? make_hold<epoch_message_sent>(this) : make_hold<kept_message_sent>(this);
  if (!endpoint_->try_send(rail, descriptor, message_tag, hold)) {
    hold.release();
    return false;
  }
  ++sent_;
  return true;
}

}  // namespace overlap::newrma
