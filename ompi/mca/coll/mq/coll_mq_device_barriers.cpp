// A plan as tasks of a management queue; connections; lists out and completions in.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll_mq_device_barriers.hpp"

#include <algorithm>
#include <bit>

#include "ompi/mca/common/overlap/process.hpp"

#include "coll_mq_communicator.hpp"
#include "coll_mq_module.hpp"

namespace overlap::coll_mq {
namespace {

/// Receive entries are posted again for so many barriers at a time, out of the way of those that
/// run.
constexpr std::uint32_t block_barriers = 16;
/// A list waits for the sends of so many earlier ones: they have ended long since.
constexpr std::uint32_t barriers_per_send_wait = 1024;

}  // namespace

DeviceBarriers::DeviceBarriers(Device& device, Communicator& communicator, const Plan& plan)
    : device_(device),
      communicator_(communicator),
      window_(std::bit_floor(tunables.window)),
      sent_(device.fabric().make_counting_queue()) {
  links_.reserve(plan.edges.size());
  for (const Edge& edge : plan.edges) make_link(edge);
  queue_ = device.fabric().make_management_queue(
      std::min(device.fabric().capabilities().management_queue_max,
               window_ * (credits_of(plan).management + 1)));
  translate(plan);
  supply(window_ + 1 + block_barriers);
  missing_ = static_cast<std::uint32_t>(links_.size());
  for (Link& link : links_) connect(link);
}

void DeviceBarriers::make_link(const Edge& edge) {
  fabric::Device& fabric = device_.fabric();
  const fabric::Capabilities& capabilities = fabric.capabilities();
  Link& link = links_.emplace_back();
  link.peer = edge.peer;
  link.sends = edge.sends;
  link.receives = edge.receives;
  link.arrived = fabric.make_counting_queue();
  link.receive_queue = fabric.make_receive_queue(
      std::max(1U, std::min(capabilities.receive_queue_max,
                            (window_ + 1 + 2 * block_barriers) * link.receives)));
  link.queue_pair = fabric.make_queue_pair(
      {.completions = sent_.get(),
       .receive_completions = link.arrived.get(),
       .receives = link.receive_queue.get(),
       .send_queue_entries =
           std::max(1U, std::min(capabilities.send_queue_max, (window_ + 2) * link.sends)),
       .remote_rights = 0,  // nothing is written but immediate data
       .managed_sends = true});
}

/// The rank with the smaller number asks.
void DeviceBarriers::connect(Link& link) {
  if (link.peer < communicator_.self()) return;
  const opal_process_name_t& name = communicator_.process_of(link.peer).super.proc_name;
  const std::optional<fabric::Address> address = address_of(name);
  if (!address) abort_device(communicator_, "rank " + std::to_string(link.peer) + " has no device");
  Introduction introduction;
  introduction.process = process_number(OPAL_PROC_MY_NAME);
  introduction.context = communicator_.context();
  introduction.source = communicator_.self();
  fabric::PrivateData data;
  std::memcpy(data.bytes.data(), &introduction, sizeof introduction);
  data.size_bytes = sizeof introduction;
  if (device_.fabric().connect(*link.queue_pair, *address, data) != fabric::Status::done)
    abort_device(communicator_, "the device begins no connection");
}

void DeviceBarriers::accept(Rank peer, std::uint64_t request) {
  const auto link = std::ranges::find(links_, peer, &Link::peer);
  if (link == links_.end() ||
      device_.fabric().accept(request, *link->queue_pair) != fabric::Status::done)
    abort_device(communicator_, "the connection of rank " + std::to_string(peer) +
                                    " is not expected; do all ranks have the same parameters?");
}

bool DeviceBarriers::take(const fabric::Event& event) {
  const auto link = std::ranges::find_if(
      links_, [&](const Link& each) { return each.queue_pair.get() == event.queue_pair; });
  if (link == links_.end()) return false;
  switch (event.kind) {
    case fabric::Event::Kind::connect_request: break;
    case fabric::Event::Kind::established:
      if (!std::exchange(link->established, true) && --missing_ == 0) post_waiting();
      break;
    case fabric::Event::Kind::rejected:
    case fabric::Event::Kind::unreachable:
      abort_device(communicator_,
                   "rank " + std::to_string(link->peer) + " cannot be connected: " + event.why);
    case fabric::Event::Kind::peer_lost:
      break;  // a peer may have freed the communicator; a list that needs it fails
  }
  return true;
}

/// The first task waits for sends; the others are the plan's.
void DeviceBarriers::translate(const Plan& plan) {
  using Kind = fabric::Task::Kind;
  fabric::Task sends;
  sends.kind = Kind::wait;
  sends.queue = sent_.get();
  tasks_.push_back(sends);
  for (const Task& each : managed_tasks(plan)) {
    const Link& link = links_[each.edge];
    fabric::Task task;
    switch (each.kind) {
      case TaskKind::send: task.kind = Kind::send; break;
      case TaskKind::write_immediate: task.kind = Kind::write_immediate; break;
      case TaskKind::wait: task.kind = Kind::wait; break;
      case TaskKind::send_enable: task.kind = Kind::send_enable; break;
      case TaskKind::receive:
      case TaskKind::receive_enable:
      case TaskKind::copy:
      case TaskKind::reduce: continue;  // no barrier has them
    }
    task.count = each.count;
    if (task.kind == Kind::wait) {
      task.queue = link.arrived.get();
    } else {
      task.queue_pair = link.queue_pair.get();
    }
    if (is_send(each.kind)) {
      task.request.opcode = each.kind == TaskKind::send ? fabric::Opcode::send_with_immediate
                                                        : fabric::Opcode::write_with_immediate;
      task.request.signalled = true;
      ++sends_;
    }
    tasks_.push_back(task);
  }
}

void DeviceBarriers::supply(std::uint32_t barriers) {
  for (Link& link : links_) {
    for (std::uint32_t i = 0; i < barriers * link.receives; ++i) {
      if (link.receive_queue->post(0, nullptr, 0, 0) != fabric::Status::done)
        abort_device(communicator_, "the device takes no receive entry");
    }
  }
}

void DeviceBarriers::start(Execution& execution) {
  if (missing_ != 0 || !waiting_.empty() || !try_post(execution)) waiting_.push_back(&execution);
}

/// @returns  false: there is no room
bool DeviceBarriers::try_post(Execution& execution) {
  if (running_.size() >= window_) return false;
  const bool waits_for_sends = posted_ % barriers_per_send_wait == 0 && unwaited_ != 0;
  tasks_.front().count = unwaited_;
  const std::span<const fabric::Task> tasks(tasks_);
  const fabric::Posted posted = queue_->post(posted_, waits_for_sends ? tasks : tasks.subspan(1));
  switch (posted.status) {
    case fabric::Status::done: break;
    case fabric::Status::retry_queue_full: return false;
    case fabric::Status::bad_argument:
    case fabric::Status::refused:
    case fabric::Status::broken: {
      std::string why = device_.last_fault();
      if (why.empty()) why = "task " + std::to_string(posted.task) + " of a list is refused";
      abort_device(communicator_, why);
    }
  }
  if (waits_for_sends) unwaited_ = 0;
  unwaited_ += sends_;
  ++posted_;
  ++counters.device_barriers;
  counters.messages_sent += sends_;
  running_.push_back(&execution);
  return true;
}

void DeviceBarriers::post_waiting() {
  while (!waiting_.empty() && try_post(*waiting_.front())) waiting_.pop_front();
}

void DeviceBarriers::check(const fabric::Completion& completion) const {
  if (completion.status == fabric::CompletionStatus::success) return;
  std::string why = fabric::text(completion.status);
  device_.poll_events();
  if (!device_.last_fault().empty()) why = device_.last_fault();
  abort_device(communicator_, why);
}

int DeviceBarriers::poll() {
  int ended = 0;
  fabric::Completion completion;
  while (!running_.empty() && queue_->completions().poll({&completion, 1}) == 1) {
    check(completion);
    Execution& execution = *running_.front();
    running_.pop_front();
    execution.end(Outcome::done);
    ++ended;
    if (++unsupplied_ == block_barriers) {
      unsupplied_ = 0;
      supply(block_barriers);
    }
  }
  if (!waiting_.empty() && missing_ == 0) post_waiting();
  return ended;
}

DeviceBarriers::~DeviceBarriers() { drain(); }

/// A queue pair that goes takes along what it has not delivered: the peers may wait for it.
void DeviceBarriers::drain() noexcept {
  if (queue_ == nullptr || unwaited_ == 0) return;
  tasks_.front().count = unwaited_;
  if (queue_->post(posted_, {tasks_.data(), 1}).status != fabric::Status::done) return;
  fabric::Completion completion;
  while (queue_->completions().poll({&completion, 1}) == 0) sched_yield();
}

}  // namespace overlap::coll_mq
