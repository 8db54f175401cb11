// Node areas: published through the modex, opened when a neighbour is first written to.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/neighbours.hpp"

#include <fcntl.h>

#include "ompi/mca/common/overlap/settings.hpp"
#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"

namespace overlap {

NodeArea& node_area = never_destroyed<NodeArea>();

namespace {

/// What a process tells all others of the job.
struct Published {
  node::DescriptorAddress area;  ///< nothing: it has none
  std::uint64_t sleeps_on_adapter = 0;
};

Published published_by(ompi_proc_t& proc) {
  Published published;
  const std::vector<std::byte> bytes =
      lookup_published(&common::name_bearer(), proc.super.proc_name);
  if (bytes.size() == sizeof published) std::memcpy(&published, bytes.data(), sizeof published);
  return published;
}

}  // namespace

void NodeArea::publish(bool possible, bool on) noexcept {
  if (area_) return;
  if (possible) area_ = node::MappedArea::make();
  Published published{.area = {}, .sleeps_on_adapter = possible && on};
  if (const auto address = node::DescriptorAddress::of(area_.file())) {
    published.area = *address;
    waits_ = node::Waits(area_.get());
  }
  // Where it fails nobody finds the area, and nothing else changes.
  static_cast<void>(
      overlap::publish(&common::name_bearer(), std::as_bytes(std::span(&published, 1))));
}

namespace {

using common::wake_choice;

/// One number for the job, the same in all its processes.
std::uint64_t job_number() noexcept { return OPAL_PROC_MY_NAME.jobid; }

void report_no_module(KernelWakeAbsence why) noexcept try {
  if (common::tunables.wake != wake_choice::kernel) return;
  show_message(
      std::string("common_overlap_wake is kernel, but processes are woken through pipes: ") +
      describe(why) + ".");
} catch (const std::bad_alloc&) {
  return;  // nothing depends on the message
}

/// Say once that a neighbour cannot be woken.
void report_unreachable(const ompi_proc_t& proc) noexcept {
  static bool reported = false;  // progress lock
  if (common::tunables.progress != common::progress_choice::on || std::exchange(reported, true))
    return;
  show_message(
      "common_overlap_progress is on, but processes of this node cannot wake each other (here: one "
      "on " +
      hostname(&proc) +
      "): each must be of the same user and see the others in /proc. Messages through "
      "shared memory make progress inside MPI calls only.");
}

}  // namespace

bool NodeArea::open_bell() noexcept {
  if (!area_) {
    errno = ENOSYS;
    return false;
  }
  if (common::tunables.wake == wake_choice::pipe) return bell_.open(*area_.get());
  const auto rank = static_cast<std::uint32_t>(local_rank());
  auto opened = KernelWake::try_open(job_number(), rank);
  if (auto* module = std::get_if<KernelWake>(&opened))
    return bell_.open(*area_.get(), std::move(*module), job_number(), rank);
  report_no_module(std::get<KernelWakeUnavailable>(opened).why);
  return bell_.open(*area_.get());
}

bool NodeArea::reaches_by_kernel(const node::Area& target) noexcept {
  if (common::tunables.wake == wake_choice::pipe) return false;
  if (target.kernel_rank == node::no_kernel_rank || target.kernel_job != job_number()) return false;
  if (!std::exchange(tried_waker_, true)) {
    auto opened = KernelWake::try_open_observer(job_number());
    if (auto* module = std::get_if<KernelWake>(&opened)) waker_ = std::move(*module);
  }
  return waker_.has_value();
}

bool sleeps_on_adapter(ompi_proc_t& proc) noexcept try {
  return published_by(proc).sleeps_on_adapter != 0;
} catch (const std::bad_alloc&) {
  return false;
}

std::uint32_t Neighbour::coarse_ms() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint32_t>(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

void Neighbour::look(ompi_proc_t& proc) noexcept try {
  if (std::exchange(looked_, true)) return;
  const node::DescriptorAddress address = published_by(proc).area;
  if (address.descriptor < 0) return;  // it has none
  area_ = node::MappedArea::map(address.open(O_RDWR));
  area_.close_file();
  if (!area_) report_unreachable(proc);
} catch (const std::bad_alloc&) {
  return;  // nobody is woken
}

void Neighbour::wake(node::WakeDecision decision, const node::Envelope& arrival) noexcept {
  if (decision == node::WakeDecision::hand_on && try_leave(*area_.get(), arrival)) {
    ++common::counters.wakes_handed_on;
    return;
  }
  const bool by_kernel = node_area.reaches_by_kernel(*area_.get());
  if (!rope_) rope_ = node::BellRope::to(*area_.get());
  // Before the claim: who claims must be able to ring.
  if ((!by_kernel && !rope_) || !claim_wake(*area_.get())) return;
  if (!by_kernel || !node_area.wake_by_kernel(*area_.get())) rope_.ring();
  // Descriptors are the application's: with many neighbours each ring opens its own.
  constexpr int kept_below = 128;
  if (rope_.descriptor() >= kept_below) rope_ = {};
  area_->wakes.fetch_add(1, std::memory_order_relaxed);
  ++common::counters.wakes_rung;
}

}  // namespace overlap
