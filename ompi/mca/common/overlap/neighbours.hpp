// The processes of this node: what this one shows them, and waking those that wait for it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "opal/mca/common/overlap/node/area_file.hpp"
#include "opal/mca/common/overlap/node/bell.hpp"
#include "opal/mca/common/overlap/node/wake.hpp"
#include "opal/mca/common/overlap/wake/kernel_wake.hpp"

#include <optional>

namespace overlap {

/// This process's node area (docs/design/node-area.md). Without one, which the kernel may refuse,
/// nobody wakes this process: its large messages make progress in MPI calls, as before.
///
/// @thread  progress lock held, or nobody knows the object yet; Doze and bell: interrupt thread too
class NodeArea {
 public:
  /// Make the area and publish where it is, or that there is none: Open MPI waits two seconds for
  /// what a process has not published. In the component's init function.
  /// @param possible  may this process have an interrupt thread?
  /// @param on        may that thread sleep on what an adapter reports?
  void publish(bool possible, bool on) noexcept;
  /// @returns  nullptr: there is none
  [[nodiscard]] node::Area* get() const noexcept { return area_.get(); }
  [[nodiscard]] node::Waits& waits() noexcept { return waits_; }
  /// Let others ring for this process. @returns  false: the kernel refuses; errno says why
  [[nodiscard]] bool open_bell() noexcept;
  /// Can this process wake that one through the kernel module?
  [[nodiscard]] bool reaches_by_kernel(const node::Area& target) noexcept;
  /// Do it. @returns  false: nobody sleeps there
  [[nodiscard]] bool wake_by_kernel(const node::Area& target) noexcept {
    return waker_->wake(target.kernel_rank) == KernelWake::Woken::done;
  }
  [[nodiscard]] node::Bell& bell() noexcept { return bell_; }
  [[nodiscard]] const node::Bell& bell() const noexcept { return bell_; }
  [[nodiscard]] bool has_bell() const noexcept { return bell_.descriptors()[0] >= 0; }
  [[nodiscard]] const node::MappedArea& file() const noexcept { return area_; }

 private:
  node::MappedArea area_;
  node::Waits waits_;
  node::Bell bell_;
  std::optional<KernelWake> waker_;
  bool tried_waker_ = false;
};

/// The one of this process.
extern NodeArea& node_area;

/// Has that process, of whatever node, said that its interrupt thread may sleep on what an adapter
/// reports? @thread  MPI
[[nodiscard]] bool sleeps_on_adapter(ompi_proc_t& proc) noexcept;

/// Another process of this node, as far as waking it goes.
///
/// @thread  progress lock held
class Neighbour {
 public:
  /// A message for this process has been given to a BTL of shared memory.
  /// @param may_look  may its area be looked for now? Open MPI's tables are for MPI threads only
  void announce(ompi_proc_t& proc, const node::Envelope& arrival, bool may_look) noexcept {
    if (!area_) [[unlikely]] {
      if (!may_look) return;
      look(proc);
      if (!area_) return;
    }
    const node::WakeDecision decision = decide_wake(*area_.get(), arrival, coarse_ms());
    if (decision != node::WakeDecision::nothing) [[unlikely]]
      wake(decision, arrival);
  }

  /// Look for its area, once. @thread  MPI thread
  void look(ompi_proc_t& proc) noexcept;

 private:
  /// Milliseconds of the clock that helpers use; wraps.
  [[nodiscard]] static std::uint32_t coarse_ms() noexcept;
  void wake(node::WakeDecision decision, const node::Envelope& arrival) noexcept;

  node::MappedArea area_;
  node::BellRope rope_;
  bool looked_ = false;
};

}  // namespace overlap
