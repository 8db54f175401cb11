// MPI's barriers: blocking, non-blocking, persistent.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/process.hpp"
#include "ompi/mca/common/overlap/waiting.hpp"

#include "coll_mq_communicator.hpp"
#include "coll_mq_device_barriers.hpp"
#include "coll_mq_module.hpp"
#include "protocol/barrier_plan.hpp"
#include "protocol/plan_choice.hpp"

namespace overlap::coll_mq {
namespace {

Plan make_plan(const Communicator& communicator, Rank radix) {
  const BarrierShape shape{.radix = radix};
  if (tunables.two_level) {
    const std::vector<Rank> nodes = communicator.nodes();
    if (!nodes.empty()) return two_level_barrier_plan(communicator.self(), nodes, shape);
  }
  return barrier_plan(communicator.self(), communicator.size(), shape);
}

/// Of a barrier whose caller polls.
Rank blocking_radix() noexcept { return static_cast<Rank>(tunables.radix); }
/// Of one whose caller may compute.
Rank nonblocking_radix(const Communicator& communicator) noexcept {
  return choose_barrier_radix(communicator.size(), static_cast<Rank>(tunables.straight_max),
                              blocking_radix());
}

PlanId plan_of(Communicator& communicator, Rank radix) {
  return communicator.plan({.kind = PlanKind::barrier, .shape = static_cast<std::uint32_t>(radix)},
                           [&] { return make_plan(communicator, radix); });
}

/// How the communicator's barriers are carried out; made with the first of them.
/// @returns  the interpreter's plan; nothing: the device has it
std::optional<PlanId> prepare(Communicator& communicator, Rank radix) {
  if (device == nullptr) return plan_of(communicator, radix);
  static_cast<void>(communicator.make_device_barriers());
  return {};
}

void start(Communicator& communicator, std::optional<PlanId> plan, Execution& execution) {
  if (plan)
    communicator.stream().start(*plan, execution);
  else
    communicator.make_device_barriers().start(execution);
}

/// @thread  progress lock NOT held
void wait_for(const Execution& execution) {
  poll_until(process->driver, process->completions, [&execution] { return execution.is_over(); });
  process->interrupts.ring_for_work();
}

int barrier(ompi_communicator_t*, mca_coll_base_module_t* module) noexcept {
  return guarded([module]() -> int {
    Communicator& communicator = communicator_of(module);
    Execution execution;
    {
      const Entry entry;
      const std::optional<PlanId> plan = prepare(communicator, blocking_radix());
      ++counters.barriers;
      execution.start();
      start(communicator, plan, execution);
    }
    wait_for(execution);
    return execution.error();
  });
}

int ibarrier(ompi_communicator_t*, ompi_request_t** handle,
             mca_coll_base_module_t* module) noexcept {
  return guarded([&]() -> int {
    Communicator& communicator = communicator_of(module);
    const LeavingEntry entry(process->interrupts);
    const std::optional<PlanId> plan = prepare(communicator, nonblocking_radix(communicator));
    Request& request = Request::make(communicator, false);
    request.execution.buffers.clear();
    ++counters.nonblocking;
    request.activate();
    *handle = &request.ompi();
    start(communicator, plan, request.execution);
    return OMPI_SUCCESS;
  });
}

int start_persistent(std::size_t count, ompi_request_t** handles) noexcept {
  return guarded([&]() -> int {
    const LeavingEntry entry(process->interrupts);
    for (std::size_t i = 0; i < count; ++i) {
      auto& request = *reinterpret_cast<Request*>(handles[i]);
      if (request.ompi().req_state == OMPI_REQUEST_ACTIVE) return MPI_ERR_REQUEST;
      ++counters.nonblocking;
      request.activate();
      request.stream->start(request.plan, request.execution);
    }
    return OMPI_SUCCESS;
  });
}

int barrier_init(ompi_communicator_t*, ompi_info_t*, ompi_request_t** handle,
                 mca_coll_base_module_t* module) noexcept {
  return guarded([&]() -> int {
    Communicator& communicator = communicator_of(module);
    const Entry entry;
    Request& request = Request::make(communicator, true);
    request.ompi().req_start = start_persistent;
    request.execution.buffers.clear();
    request.stream = &communicator.add_stream();
    request.plan = request.stream->add(make_plan(communicator, nonblocking_radix(communicator)));
    *handle = &request.ompi();
    return OMPI_SUCCESS;
  });
}

}  // namespace

void fill_barriers(mca_coll_base_module_t& table) noexcept {
  table.coll_barrier = barrier;
  table.coll_ibarrier = ibarrier;
  table.coll_barrier_init = barrier_init;
}

}  // namespace overlap::coll_mq
