// Node areas: published through the modex, opened when a neighbour is first written to.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/neighbours.hpp"

#include <fcntl.h>

#include "ompi/mca/common/overlap/settings.hpp"

namespace overlap {

NodeArea node_area;

void NodeArea::publish() noexcept {
  if (area_) return;
  area_ = node::MappedArea::make();
  const auto address = node::DescriptorAddress::of(area_.file());
  if (!address) return;
  waits_ = node::Waits(area_.get());
  // Where it fails nobody finds the area, and nothing else changes.
  static_cast<void>(
      overlap::publish(&common::name_bearer(), std::as_bytes(std::span(&*address, 1))));
}

std::uint32_t Neighbour::coarse_ms() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint32_t>(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

void Neighbour::look(ompi_proc_t& proc) noexcept try {
  looked_ = true;
  const std::vector<std::byte> bytes =
      lookup_published(&common::name_bearer(), proc.super.proc_name);
  node::DescriptorAddress address;
  if (bytes.size() != sizeof address) return;
  std::memcpy(&address, bytes.data(), sizeof address);
  area_ = node::MappedArea::map(address.open(O_RDWR));
} catch (const std::bad_alloc&) {
  return;  // nobody is woken
}

void Neighbour::wake(node::WakeDecision decision, const node::Envelope& arrival) noexcept {
  if (decision == node::WakeDecision::hand_on && try_leave(*area_.get(), arrival)) {
    ++common::counters.wakes_handed_on;
    return;
  }
  if (!rope_) rope_ = node::BellRope::to(*area_.get());
  // Before the claim: who claims must be able to ring.
  if (!rope_ || !claim_wake(*area_.get())) return;
  rope_.ring();
  area_->wakes.fetch_add(1, std::memory_order_relaxed);
  ++common::counters.wakes_rung;
}

}  // namespace overlap
