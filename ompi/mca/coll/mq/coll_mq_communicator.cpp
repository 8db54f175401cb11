// A communicator: its members and streams.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll_mq_communicator.hpp"

#include <bit>

#include "ompi/mca/common/overlap/process.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"

#include "coll_mq_device_barriers.hpp"
#include "protocol/barrier_plan.hpp"

namespace overlap::coll_mq {

Communicators& communicators = never_destroyed<Communicators>();
Counters counters;

namespace {

std::uint64_t number_of_first(ompi_group_t* group) noexcept {
  return process_number(ompi_group_peer_lookup(group, 0)->super.proc_name);
}

/// A persistent collective is started again when it has ended: nobody is far ahead.
constexpr std::uint32_t persistent_window = 4;

}  // namespace

Communicator::Communicator(ompi_communicator_t& comm) : comm_(comm) {
  static std::uint32_t births = 0;
  size_ = ompi_comm_size(&comm);
  if (OMPI_COMM_IS_INTER(&comm)) {
    const Rank remote = ompi_comm_remote_size(&comm);
    if (number_of_first(comm.c_local_group) < number_of_first(comm.c_remote_group))
      first_remote_ = size_;
    else
      first_local_ = remote;
    size_ += remote;
  }
  head_.process = process_number(OPAL_PROC_MY_NAME);
  head_.context = context_of(&comm);
  head_.birth = births++;
  head_.source = first_local_ + comm.c_my_rank;
  streams_.push_back(std::make_unique<Stream>(*this, 0, std::bit_floor(tunables.window)));
  streams_made_ = 1;
  communicators.add(*this);
  if (device != nullptr) device->add(*this);
  ++counters.communicators;
}

Communicator::~Communicator() {
  device_barriers_.reset();
  if (device != nullptr) device->remove(*this);
  for (const auto& each : streams_) communicators.forget(*each);
  if (waited_for_ != 0 && process != nullptr) demand_.drop(process->interrupts);
  communicators.remove(*this);
}

ompi_proc_t& Communicator::process_of(Rank rank) const noexcept {
  if (!OMPI_COMM_IS_INTER(&comm_)) return *ompi_group_peer_lookup(comm_.c_local_group, rank);
  const Rank remote = rank - first_remote_;
  if (remote >= 0 && remote < ompi_comm_remote_size(&comm_))
    return *ompi_group_peer_lookup(comm_.c_remote_group, remote);
  return *ompi_group_peer_lookup(comm_.c_local_group, rank - first_local_);
}

std::vector<Rank> Communicator::nodes() const {
  if (OMPI_COMM_IS_INTER(&comm_)) return {};
  std::vector<Rank> nodes;
  for (Rank rank = 0; rank < size_; ++rank) {
    const opal_process_name_t name = ompi_group_get_proc_name(comm_.c_local_group, rank);
    // Launchers of several jobs number nodes each for itself.
    if (name.jobid != OPAL_PROC_MY_NAME.jobid) return {};
    const std::optional<std::uint32_t> node = node_number(name);
    if (!node) return {};
    nodes.push_back(static_cast<Rank>(*node));
  }
  std::vector<Rank> different = nodes;
  std::ranges::sort(different);
  different.erase(std::ranges::unique(different).begin(), different.end());
  if (different.size() < 2 || different.size() == nodes.size()) return {};
  return nodes;
}

Stream* Communicator::find_stream(std::uint32_t number) noexcept {
  if (number == 0) [[likely]]
    return streams_.front().get();
  const auto found = std::ranges::find(streams_, number, &Stream::number);
  return found != streams_.end() ? found->get() : nullptr;
}

Stream& Communicator::add_stream() {
  streams_.push_back(std::make_unique<Stream>(*this, streams_made_, persistent_window));
  ++streams_made_;
  Stream& made = *streams_.back();
  for (const Early& each : early_) {
    if (each.head.stream == made.number()) made.receive(each.head, each.payload);
  }
  std::erase_if(early_, [&made](const Early& each) { return each.head.stream == made.number(); });
  return made;
}

void Communicator::remove_stream(Stream& stream) noexcept {
  communicators.forget(stream);
  std::erase_if(streams_, [&stream](const auto& each) { return each.get() == &stream; });
}

bool Communicator::may_plan(PlanKey key) const {
  if (plans_agreed_ < plans_max) [[likely]]
    return true;
  if (plans_.contains(key)) return true;
  key.in_place = !key.in_place;
  return plans_.contains(key);
}

PlanId Communicator::add_plan(PlanKey key, Plan plan) {
  const PlanId made = stream().add(std::move(plan));
  plans_.emplace(key, made);
  key.in_place = !key.in_place;
  if (!plans_.contains(key)) ++plans_agreed_;
  return made;
}

DeviceBarriers& Communicator::make_device_barriers() {
  if (device_barriers_ == nullptr) {
    try {
      device_barriers_ = std::make_unique<DeviceBarriers>(
          *device, *this,
          coll_mq::barrier_plan(self(), size(), {.radix = static_cast<Rank>(tunables.radix)}));
    } catch (const fabric::Error& error) {
      abort_device(*this, error.what());
    }
  }
  return *device_barriers_;
}

void Communicator::add_demand() noexcept {
  if (waited_for_++ != 0) return;
  node::Envelope wait = envelope();
  wait.source = node::any;
  demand_.add(process->interrupts, wait);
}

void Communicator::drop_demand() noexcept {
  if (--waited_for_ == 0) demand_.drop(process->interrupts);
}

void Communicator::receive(const MessageHead& head, std::span<const std::byte> payload) {
  switch (senders_.judge(head.source, head.sender())) {
    case Senders::Verdict::same: break;
    case Senders::Verdict::other: ++counters.messages_stale; return;
    case Senders::Verdict::unknown:
      if (communicators.is_buried(head.context, head.sender())) {
        ++counters.messages_stale;
        return;
      }
      if (head.source < 0 || head.source >= size_ || head.source == self())
        abort_bad_message(*this, head);
      senders_.add(head.source, head.sender());
  }
  if (Stream* const stream = find_stream(head.stream)) [[likely]] {
    stream->receive(head, payload);
    return;
  }
  if (head.stream < streams_made_) {  // its request has been freed
    ++counters.messages_stale;
    return;
  }
  ++counters.messages_early;
  early_.push_back({head, {payload.begin(), payload.end()}});
}

void Communicator::leave_to_mpi_thread(Stream& stream) {
  ++counters.left;
  communicators.leave(stream);
}

}  // namespace overlap::coll_mq
