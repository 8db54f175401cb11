// Messages in: to their communicator, or kept until it is made.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/process.hpp"
#include "opal/mca/common/overlap/message.hpp"

#include "coll_mq_communicator.hpp"

namespace overlap::coll_mq {
namespace {

std::string text_of(const MessageHead& head) {
  return "message of rank " + std::to_string(head.source) + " in the communicator with number " +
         std::to_string(head.context) + " (collective " + std::to_string(head.sequence) +
         ", step " + std::to_string(head.step) + ", " + std::to_string(head.bytes) + " bytes)";
}

void receive_message(const Received& received) noexcept {
  in_callback([&received] {
    if (process == nullptr) return;
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
    process->note_era(head.era);
    communicators.receive(head, message.subspan(sizeof head));
  });
}

int poll_left() noexcept {
  int resumed = 0;
  must_run([&resumed] { resumed = communicators.resume_left(); });
  return resumed;
}

}  // namespace

int register_receiver() { return overlap::register_receiver<receive_message>(message_tag); }

void abort_bad_message(const Communicator& communicator, const MessageHead& head) {
  show_message("coll/mq: malformed " + text_of(head) + ": rank " +
               std::to_string(communicator.self()) + " of " + std::to_string(communicator.size()) +
               " expects no such message. The job ends.\nDo all ranks run the same build of "
               "overlap, with the same --mca coll_mq_* parameters?");
  abort_job(1);
}

void abort_too_early(const MessageHead& head) {
  show_message("coll/mq: a " + text_of(head) +
               " is one too many for communicators that this process has not made yet. The job "
               "ends.\nDo all ranks of it call MPI, with the same --mca coll_mq_* parameters?");
  abort_job(1);
}

void Communicators::add(Communicator& communicator) {
  all_.emplace(communicator.context(), &communicator);
}

void Communicators::remove(Communicator& communicator) noexcept {
  const auto found = all_.find(communicator.context());
  if (found != all_.end() && found->second == &communicator) all_.erase(found);
  must_run([&] { buried_.bury(communicator.context(), communicator.senders_); });
}

void Communicators::receive(const MessageHead& head, std::span<const std::byte> payload) {
  const auto found = all_.find(head.context);
  // An answer is never early: who has asked may be gone, and its number used again.
  if (head.is_answer() && (found == all_.end() || !head.answers(found->second->head().birth)))
      [[unlikely]] {
    ++counters.messages_stale;
    return;
  }
  if (found != all_.end()) [[likely]] {
    found->second->receive(head, payload);
    return;
  }
  if (buried_.holds(head.context, head.sender())) {
    ++counters.messages_stale;
    return;
  }
  if (early_count_ == early_max) abort_too_early(head);
  ++early_count_;
  ++counters.messages_early;
  early_[head.context].push_back({head, {payload.begin(), payload.end()}});
}

void Communicators::take_early(Communicator& communicator) {
  const auto kept = early_.extract(communicator.context());
  if (kept.empty()) return;
  early_count_ -= kept.mapped().size();
  for (const Communicator::Early& each : kept.mapped())
    communicator.receive(each.head, each.payload);
}

void Communicators::leave(Stream& stream) {
  if (std::ranges::find(left_, &stream) == left_.end()) left_.push_back(&stream);
  process->driver.set_pollable({poll_left, nullptr}, true);
}

void Communicators::forget(const Stream& stream) noexcept {
  std::erase(left_, &stream);
  if (left_.empty() && process != nullptr)
    process->driver.set_pollable({poll_left, nullptr}, false);
}

int Communicators::resume_left() {
  const std::vector<Stream*> left = std::exchange(left_, {});
  process->driver.set_pollable({poll_left, nullptr}, false);
  for (Stream* each : left) each->resume();
  return static_cast<int>(left.size());
}

}  // namespace overlap::coll_mq
