// Messages out: cut to what a BTL takes, or waiting for room.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_channel.hpp"

#include <optional>

#include "ompi/mca/common/overlap/process.hpp"

#include "osc_newrma_window.hpp"
#include "protocol/block_cursor.hpp"

namespace overlap::newrma {
namespace {

/// A BTL that kept a message has sent it.
void note_sent(void* owner) noexcept { static_cast<Endpoint*>(owner)->note_sent(); }

constexpr std::uint32_t message_flags =
    MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_FLAGS_SIGNAL;

}  // namespace

/// What waits.
struct Channel::Item {
  MessageHead head;
  std::vector<std::byte> data;  ///< an answer with its bytes
  RmaOperation* operation = nullptr;
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
  auto item = std::make_unique<Item>();
  item->head = head_of(Kind::notice);
  item->head.notice = notice.notice;
  item->head.lock_type = notice.type;
  item->head.id = notice.id;
  item->head.value = notice.value;
  push(std::move(item));
}

void Channel::send_operation(RmaOperation& operation) {
  auto item = std::make_unique<Item>();
  item->operation = &operation;
  push(std::move(item));
}

void Channel::send_data(std::uint32_t id, std::uint64_t offset_bytes, std::vector<std::byte> data) {
  auto item = std::make_unique<Item>();
  item->head = head_of(Kind::data);
  item->head.id = id;
  item->head.value = offset_bytes;
  item->data = std::move(data);
  push(std::move(item));
}

void Channel::send_memory(std::uint32_t id, std::uint64_t offset_bytes, std::vector<Block> blocks) {
  auto item = std::make_unique<Item>();
  item->head = head_of(Kind::data);
  item->head.id = id;
  item->head.value = offset_bytes;
  item->memory = std::move(blocks);
  item->cursor.emplace(item->memory);
  push(std::move(item));
}

void Channel::send_key_wanted() {
  auto item = std::make_unique<Item>();
  item->head = head_of(Kind::key_wanted);
  push(std::move(item));
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
  if (items_.size() == 1) go_on();
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

void Channel::go_on() {
  if (sending_ || waiting()) return;
  if (!connect()) {
    window_.leave_to_mpi_thread();
    return;
  }
  if (endpoint_->crowded() || !send_waiting()) endpoint_->wait_as_message(*this);
}

bool Channel::try_again() { return !endpoint_->is_full() && send_waiting(); }

/// @returns  false: there is no room for the next one
bool Channel::send_waiting() {
  sending_ = true;
  const std::uint32_t sent_before = sent_;
  bool room = true;
  while (room && !items_.empty()) {
    const Sent sent = send_next(*items_.front());
    room = sent != Sent::no_room && !endpoint_->is_full();
    if (sent == Sent::whole) {
      const std::unique_ptr<Item> done = std::move(items_.front());
      items_.pop();
      if (done->operation != nullptr) window_.operation_sent(*done->operation);
    }
  }
  sending_ = false;
  if (sent_ != sent_before) endpoint_->announce(window_.envelope(window_.self()));
  return items_.empty();
}

Channel::Sent Channel::send_next(Item& item) {
  if (item.operation != nullptr) return send_operation_part(*item.operation);
  if (item.cursor) return send_memory_part(item);
  if (item.head.kind == Kind::key) {
    const auto key = window_.key_for(*endpoint_);
    item.data.assign(key.begin(), key.end());
  }
  const bool gone = try_message(item.head, {}, item.data.size(), [&item](std::span<std::byte> out) {
    if (!out.empty()) std::memcpy(out.data(), item.data.data(), out.size());
  });
  return gone ? Sent::whole : Sent::no_room;
}

Channel::Sent Channel::send_operation_part(RmaOperation& operation) {
  if (operation.all_sent()) return Sent::whole;  // of no bytes
  MessageHead head = head_of(Kind::put);
  std::vector<Block> blocks;
  const std::uint64_t payload_bytes = operation.next_blocks(blocks, room_bytes(), head);
  const bool gone =
      try_message(head, blocks, payload_bytes,
                  [&operation](std::span<std::byte> out) { operation.write_payload(out); });
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
  const bool gone = try_message(head, {}, bytes, [&](std::span<std::byte> out) {
    std::byte* to = out.data();
    for (const Block& piece : pieces) {
      std::memcpy(to, window_.memory_at(piece), piece.bytes);
      to += piece.bytes;
    }
  });
  if (!gone) {
    item.cursor = before;
    return Sent::no_room;
  }
  return item.cursor->at_end() ? Sent::whole : Sent::part;
}

/// For blocks and payload of one message.
std::uint64_t Channel::room_bytes() const noexcept {
  return std::min<std::uint64_t>(endpoint_->eager_most_bytes(), message_max_bytes) -
         sizeof(MessageHead);
}

/// A small message that needs no descriptor. The BTL takes it at once or refuses.
bool Channel::try_inject(std::span<const std::byte> message) {
  const Rail& rail = endpoint_->eager_rails().front();
  return rail.btl().btl_sendi != nullptr &&
         mca_bml_base_sendi(rail.bml_btl, nullptr, const_cast<std::byte*>(message.data()),
                            message.size(), 0, MCA_BTL_NO_ORDER, message_flags, message_tag,
                            nullptr) == OMPI_SUCCESS;
}

template <class Write>
bool Channel::try_message(MessageHead& head, std::span<const Block> blocks,
                          std::uint64_t payload_bytes, Write&& write) {
  constexpr std::uint64_t injected_max_bytes = 256;
  head.sequence = sent_;
  head.block_count = static_cast<std::uint32_t>(blocks.size());
  const std::uint64_t bytes = sizeof head + blocks.size_bytes() + payload_bytes;
  // The first rail always: the others would only deliver out of order.
  Rail& rail = const_cast<Rail&>(endpoint_->eager_rails().front());
  std::array<std::byte, injected_max_bytes> small;
  const auto fill = [&](std::byte* out) {
    std::memcpy(out, &head, sizeof head);
    if (!blocks.empty()) std::memcpy(out + sizeof head, blocks.data(), blocks.size_bytes());
    write(std::span(out + sizeof head + blocks.size_bytes(), payload_bytes));
  };
  if (bytes <= injected_max_bytes) {
    fill(small.data());
    if (try_inject({small.data(), bytes})) {
      ++sent_;
      return true;
    }
  }
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
  if (!endpoint_->try_send(rail, descriptor, message_tag, make_hold<note_sent>(endpoint_))) {
    endpoint_->note_sent();
    return false;
  }
  ++sent_;
  return true;
}

}  // namespace overlap::newrma
