// Messages in: what other ranks do to this rank's memory, and answers to its own operations.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_window.hpp"

#include <cinttypes>
#include <cstdio>

#include "ompi/mca/common/overlap/process.hpp"
#include "opal/mca/common/overlap/message.hpp"

#include "protocol/message_check.hpp"
#include "protocol/write_row.hpp"

namespace overlap::newrma {
namespace {

[[noreturn]] void abort_malformed(const Window& window, const MessageHead& head) {
  show_message(
      "osc/newrma: rank " + std::to_string(window.self()) + " cannot read a message of rank " +
      std::to_string(head.source) +
      " of the same window. The job ends.\nSee that all nodes have the same installation.");
  abort_job(MPI_ERR_INTERN);
}

/// Blocks of a message; its bytes may lie anywhere.
std::vector<Block> blocks_of_message(const MessageHead& head, std::span<const std::byte> message) {
  std::vector<Block> blocks(head.block_count);
  if (!blocks.empty())
    std::memcpy(blocks.data(), message.data() + sizeof head, blocks.size() * sizeof(Block));
  return blocks;
}

[[noreturn]] void abort_outside(const Window& window, const MessageHead& head, const Block& block) {
  const std::string name = window.win().w_name;
  char address[sizeof block.address * 2 + 3];
  std::snprintf(address, sizeof address, "0x%" PRIx64, block.address);
  show_message(
      "osc/newrma: rank " + std::to_string(head.source) + " accesses " +
      std::to_string(block.bytes) + " bytes at address " + address + " of rank " +
      std::to_string(window.self()) + ", where nothing is attached to the window" +
      (name.empty() ? "" : " " + name) +
      ". The job ends.\nPass an address that "
      "MPI_Get_address has given in memory that MPI_Win_attach has attached, and detach it "
      "only when nobody accesses it any more.");
  abort_job(MPI_ERR_RMA_RANGE);
}

void receive_message(const Received& received) noexcept {
  in_callback([&received] {
    process->driver.note_event();
    std::vector<std::byte> storage;
    std::span<const std::byte> message{received.data(), received.size()};
    if (received.segment_count > 1) {
      for (std::size_t i = 0; i < received.segment_count; ++i)
        storage.insert(storage.end(), received.data(i), received.data(i) + received.size(i));
      message = storage;
    }
    MessageHead head;
    if (message.size() < sizeof head) return;
    std::memcpy(&head, message.data(), sizeof head);
    Window* const window = windows.find(head);
    if (window != nullptr) window->receive(message);  // else it has been freed
  });
}

}  // namespace

int register_receiver_once() {
  static const int registered = register_receiver<receive_message>(message_tag);
  return registered;
}

void Window::receive(std::span<const std::byte> message) {
  MessageHead head;
  std::memcpy(&head, message.data(), sizeof head);
  MessageOrder& order = channel(head.source).order;
  if (!order.is_next(head.sequence, message)) return;
  handle(message);
  while (const auto kept = order.take_next()) handle(*kept);
  update_polling();
}

void Window::handle(std::span<const std::byte> message) {
  MessageHead head;
  std::memcpy(&head, message.data(), sizeof head);
  if (head.kind == Kind::bundle) {
    Channel& answers = channel(head.source);
    answers.begin_together();
    const bool is_whole_bundle =
        Bundle::for_each(message.subspan(sizeof head), [this, &head](auto each) {
          if (each.size() < sizeof head) abort_malformed(*this, head);
          handle(each);
        });
    if (!is_whole_bundle) abort_malformed(*this, head);
    answers.end_together();
    return;
  }
  if (head.kind == Kind::notice) {
    if (head.notice == Notice::flushed || head.notice == Notice::unlocked)
      channel(head.source).unseen_writes.note_answer();
    epochs_.on_notice(head.source, {head.notice, head.lock_type, head.id, head.value});
    return;
  }
  if (head.is_row) {
    const bool is_whole_row =
        for_each_write(head, message.subspan(sizeof head), [&](const Block& block, auto data) {
          handle_request(head, {&block, 1}, data);
        });
    if (!is_whole_row) abort_malformed(*this, head);
    return;
  }
  if (!holds_blocks(head, message.size() - sizeof head)) abort_malformed(*this, head);
  const std::vector<Block> blocks = blocks_of_message(head, message);
  const auto payload = message.subspan(sizeof head + blocks.size() * sizeof(Block));
  if (!is_whole(head, blocks, payload.size())) abort_malformed(*this, head);
  if (head.kind == Kind::data)
    take_data(head, payload);
  else if (head.kind == Kind::key)
    channel(head.source).target_key.take(payload);
  else
    handle_request(head, blocks, payload);
}

void Window::handle_request(const MessageHead& head, std::span<const Block> blocks,
                            std::span<const std::byte> payload) {
  check(head, blocks);
  switch (head.kind) {
    case Kind::put: put(blocks, payload); break;
    case Kind::accumulate:
    case Kind::get_accumulate: accumulate(head, blocks, payload); break;
    case Kind::compare_swap: compare_swap(head, blocks.front(), payload); break;
    case Kind::get:
      channel(head.source).send_memory(head.id, head.value, {blocks.begin(), blocks.end()});
      break;
    case Kind::key_wanted: channel(head.source).send_key(); break;
    case Kind::notice:
    case Kind::data:
    case Kind::key:
    case Kind::bundle: break;
  }
}

/// The origin has checked what it knows the size of; attached memory only its owner knows.
void Window::check(const MessageHead& head, std::span<const Block> blocks) const {
  // What lies behind the last member of an element is not looked at.
  const bool of_elements = head.kind == Kind::accumulate || head.kind == Kind::get_accumulate;
  if (of_elements && (op_of_number(head.op) == nullptr || type_of_number(head.element) == nullptr))
    abort_malformed(*this, head);
  const std::uint64_t gap_bytes = of_elements ? end_gap_of(*type_of_number(head.element)) : 0;
  for (const Block& each : blocks) {
    if (memory_->find(each.address, each.bytes - gap_bytes) == nullptr)
      abort_outside(*this, head, each);
  }
}

void Window::put(std::span<const Block> blocks, std::span<const std::byte> payload) {
  for (const Block& each : blocks) {
    std::memcpy(memory_->find(each.address, each.bytes), payload.data(), each.bytes);
    payload = payload.subspan(each.bytes);
  }
}

void Window::accumulate(const MessageHead& head, std::span<const Block> blocks,
                        std::span<const std::byte> payload) {
  ompi_op_t& op = *op_of_number(head.op);
  ompi_datatype_t& element = *type_of_number(head.element);  // check() has seen that they exist
  const bool answers = head.kind == Kind::get_accumulate;
  std::vector<std::byte> old(answers ? bytes_of(blocks) : 0);
  std::byte* to = old.data();
  {
    const AccumulateGuard guard(*memory_->control_of(self()));
    for (const Block& each : blocks) {
      std::byte* const memory = memory_->find(each.address, 0);
      if (answers) copy_elements(element, to, memory, each.bytes);
      to += answers ? each.bytes : 0;
      if (payload.empty()) continue;  // MPI_NO_OP
      apply_elements(op, element, memory, payload.first(each.bytes));
      payload = payload.subspan(each.bytes);
    }
  }
  if (answers) channel(head.source).send_data(head.id, head.value, std::move(old));
}

void Window::compare_swap(const MessageHead& head, const Block& block,
                          std::span<const std::byte> payload) {
  std::byte* const memory = memory_->find(block.address, block.bytes);
  std::vector<std::byte> old(block.bytes);
  {
    const AccumulateGuard guard(*memory_->control_of(self()));
    std::memcpy(old.data(), memory, block.bytes);
    if (std::memcmp(old.data(), payload.data(), block.bytes) == 0)
      std::memcpy(memory, payload.data() + block.bytes, block.bytes);
  }
  channel(head.source).send_data(head.id, head.value, std::move(old));
}

void Window::take_data(const MessageHead& head, std::span<const std::byte> payload) {
  const auto found = answered_.find(head.id);
  if (found == answered_.end()) return;
  RmaOperation& operation = *found->second;
  operation.take_result(head.value, payload);
  if (operation.is_done()) end_operation(operation);
}

}  // namespace overlap::newrma
