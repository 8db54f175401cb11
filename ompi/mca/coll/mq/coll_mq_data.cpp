// Collectives with data that do not block: small ones; all others go to the modules before.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/process.hpp"

#include "coll_mq_communicator.hpp"
#include "coll_mq_module.hpp"
#include "protocol/bcast_plan.hpp"
#include "protocol/plan_choice.hpp"

namespace overlap::coll_mq {
namespace {

/// Ranks that send to each other at once.
Rank few() noexcept { return static_cast<Rank>(tunables.straight_max); }

/// Is a collective whose largest buffer has so many bytes, at each rank, one of ours?
bool is_small(std::uint64_t bytes) noexcept { return bytes <= tunables.payload_max; }

/// Have it made by whom Open MPI would have asked otherwise.
template <class Function, class... Arguments>
int fall_back(const Previous<Function>& previous, Arguments... arguments) noexcept {
  {
    const Entry entry;
    ++counters.fallbacks;
  }
  return previous.function(arguments..., previous.module);
}

/// Begin a collective with a request. @param set  gives it its buffers
template <class Set>
int start(Communicator& communicator, PlanId plan, ompi_request_t** handle, Set&& set) {
  Request& request = Request::make(communicator, false);
  set(request.execution.buffers, communicator.stream().plan(plan).scratch_blocks);
  ++counters.nonblocking;
  request.activate();
  *handle = &request.ompi();
  communicator.stream().start(plan, request.execution);
  return OMPI_SUCCESS;
}

int ibcast(void* buffer, int count, ompi_datatype_t* type, int root, ompi_communicator_t* comm,
           ompi_request_t** handle, mca_coll_base_module_t* base) noexcept {
  const TypedBuffer data{buffer, static_cast<std::size_t>(count), type};
  Communicator& communicator = communicator_of(base);
  const auto segments = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, (data.bytes() + tunables.segment - 1) / tunables.segment));
  const Rank radix = choose_tree_radix(communicator.size(), few(), data.bytes());
  const PlanKey key{.kind = PlanKind::bcast,
                    .root = root,
                    .shape = static_cast<std::uint32_t>(radix),
                    .segments = segments};
  if (!is_small(data.bytes()) || !communicator.may_plan(key))
    return fall_back(module_of(base).before.ibcast, buffer, count, type, root, comm, handle);
  return guarded([&]() -> int {
    const LeavingEntry entry(process->interrupts);
    const PlanId plan = communicator.plan(key, [&] {
      return bcast_plan(communicator.self(), communicator.size(), root,
                        {.radix = radix, .segments = segments});
    });
    return start(communicator, plan, handle, [&](Buffers& buffers, std::uint32_t scratch_blocks) {
      buffers.set_block(tunables.segment, scratch_blocks);
      const bool is_root = root == communicator.self();
      buffers.set_output(data, is_root, !is_root);
    });
  });
}

/// Has it elements that processors combine, in one plan for all ranks?
bool is_ours(const ompi_op_t* op, const TypedBuffer& elements) noexcept {
  return ompi_op_is_intrinsic(const_cast<ompi_op_t*>(op)) &&
         ompi_op_is_commute(const_cast<ompi_op_t*>(op)) &&
         ompi_datatype_is_predefined(elements.type) && is_small(Buffers::vector_bytes(elements));
}

Plan make_allreduce(const Communicator& communicator, AllreduceShape shape, bool in_place) {
  const Rank rank = communicator.self(), size = communicator.size();
  switch (shape) {
    case AllreduceShape::straight: return straight_allreduce_plan(rank, size, in_place);
    case AllreduceShape::shares: return shared_allreduce_plan(rank, size, in_place);
    case AllreduceShape::doubling: break;
  }
  // max(a, b) is not max(b, a) where one is not a number, and all ranks get the same result.
  return allreduce_plan(rank, size, {.order = Order::by_rank, .in_place = in_place});
}

int iallreduce(const void* input, void* output, int count, ompi_datatype_t* type, ompi_op_t* op,
               ompi_communicator_t* comm, ompi_request_t** handle,
               mca_coll_base_module_t* base) noexcept {
  const TypedBuffer elements{output, static_cast<std::size_t>(count), type};
  Communicator& communicator = communicator_of(base);
  const bool in_place = input == MPI_IN_PLACE;
  const auto ranks = static_cast<std::uint32_t>(communicator.size());
  const AllreduceShape shape =
      choose_allreduce(communicator.size(), few(), Buffers::vector_bytes(elements),
                       Buffers::share_bytes(elements, ranks));
  const PlanKey key{.kind = PlanKind::allreduce,
                    .shape = static_cast<std::uint32_t>(shape),
                    .in_place = in_place};
  if (!is_ours(op, elements) || !communicator.may_plan(key))
    return fall_back(module_of(base).before.iallreduce, input, output, count, type, op, comm,
                     handle);
  return guarded([&]() -> int {
    const LeavingEntry entry(process->interrupts);
    const PlanId plan =
        communicator.plan(key, [&] { return make_allreduce(communicator, shape, in_place); });
    const std::uint32_t shares = shape == AllreduceShape::shares ? ranks : 1;
    return start(communicator, plan, handle, [&](Buffers& buffers, std::uint32_t scratch_blocks) {
      buffers.set_operation(*op, elements, scratch_blocks, shares);
      buffers.set_elements(in_place ? output : input, output);
    });
  });
}

int ireduce(const void* input, void* output, int count, ompi_datatype_t* type, ompi_op_t* op,
            int root, ompi_communicator_t* comm, ompi_request_t** handle,
            mca_coll_base_module_t* base) noexcept {
  const TypedBuffer elements{output, static_cast<std::size_t>(count), type};
  Communicator& communicator = communicator_of(base);
  const bool is_root = root == communicator.self();
  const bool in_place = is_root && input == MPI_IN_PLACE;
  const Rank radix = choose_tree_radix(communicator.size(), few(), Buffers::vector_bytes(elements));
  const PlanKey key{.kind = PlanKind::reduce,
                    .root = root,
                    .shape = static_cast<std::uint32_t>(radix),
                    .in_place = in_place};
  if (!is_ours(op, elements) || !communicator.may_plan(key))
    return fall_back(module_of(base).before.ireduce, input, output, count, type, op, root, comm,
                     handle);
  return guarded([&]() -> int {
    const LeavingEntry entry(process->interrupts);
    const PlanId plan = communicator.plan(key, [&] {
      return reduce_plan(communicator.self(), communicator.size(), root,
                         {.order = Order::any, .in_place = in_place, .radix = radix});
    });
    return start(communicator, plan, handle, [&](Buffers& buffers, std::uint32_t scratch_blocks) {
      buffers.set_operation(*op, elements, scratch_blocks);
      buffers.set_elements(in_place ? output : input, is_root ? output : nullptr);
    });
  });
}

/// Of n ranks, each with a block for each one.
std::size_t times(const Communicator& communicator, int count) noexcept {
  return static_cast<std::size_t>(communicator.size()) * static_cast<std::size_t>(count);
}

int ialltoall(const void* input, int input_count, ompi_datatype_t* input_type, void* output,
              int output_count, ompi_datatype_t* output_type, ompi_communicator_t* comm,
              ompi_request_t** handle, mca_coll_base_module_t* base) noexcept {
  Communicator& communicator = communicator_of(base);
  const TypedBuffer out{output, times(communicator, output_count), output_type};
  const bool in_place = input == MPI_IN_PLACE;
  const std::uint64_t block_bytes = out.bytes() / static_cast<std::uint64_t>(communicator.size());
  const ExchangeShape shape = choose_exchange(communicator.size(), few(), block_bytes);
  const PlanKey key{
      .kind = PlanKind::alltoall, .shape = static_cast<std::uint32_t>(shape), .in_place = in_place};
  if (!is_small(out.bytes()) || !communicator.may_plan(key))
    return fall_back(module_of(base).before.ialltoall, input, input_count, input_type, output,
                     output_count, output_type, comm, handle);
  return guarded([&]() -> int {
    const LeavingEntry entry(process->interrupts);
    const PlanId plan = communicator.plan(key, [&] {
      return alltoall_plan(communicator.self(), communicator.size(), shape, in_place);
    });
    return start(communicator, plan, handle, [&](Buffers& buffers, std::uint32_t scratch_blocks) {
      buffers.set_block(block_bytes, scratch_blocks);
      buffers.set_output(out, in_place);
      if (in_place)
        buffers.read_output();
      else
        buffers.set_input({const_cast<void*>(input), times(communicator, input_count), input_type});
    });
  });
}

int iallgather(const void* input, int input_count, ompi_datatype_t* input_type, void* output,
               int output_count, ompi_datatype_t* output_type, ompi_communicator_t* comm,
               ompi_request_t** handle, mca_coll_base_module_t* base) noexcept {
  Communicator& communicator = communicator_of(base);
  const TypedBuffer out{output, times(communicator, output_count), output_type};
  const bool in_place = input == MPI_IN_PLACE;
  const std::uint64_t block_bytes = out.bytes() / static_cast<std::uint64_t>(communicator.size());
  const ExchangeShape shape = choose_exchange(communicator.size(), few(), block_bytes);
  const PlanKey key{.kind = PlanKind::allgather,
                    .shape = static_cast<std::uint32_t>(shape),
                    .in_place = in_place};
  if (!is_small(out.bytes()) || !communicator.may_plan(key))
    return fall_back(module_of(base).before.iallgather, input, input_count, input_type, output,
                     output_count, output_type, comm, handle);
  return guarded([&]() -> int {
    const LeavingEntry entry(process->interrupts);
    const PlanId plan = communicator.plan(key, [&] {
      return allgather_plan(communicator.self(), communicator.size(), shape, in_place);
    });
    return start(communicator, plan, handle, [&](Buffers& buffers, std::uint32_t scratch_blocks) {
      buffers.set_block(block_bytes, scratch_blocks);
      buffers.set_output(out, in_place);
      if (in_place)
        buffers.read_output();
      else
        buffers.set_input(
            {const_cast<void*>(input), static_cast<std::size_t>(input_count), input_type});
    });
  });
}

}  // namespace

void fill_data(Module& module, const mca_coll_base_comm_coll_t& before) noexcept {
  module.before.ibcast.save(before.coll_ibcast, before.coll_ibcast_module);
  module.before.iallreduce.save(before.coll_iallreduce, before.coll_iallreduce_module);
  module.before.ireduce.save(before.coll_ireduce, before.coll_ireduce_module);
  module.before.ialltoall.save(before.coll_ialltoall, before.coll_ialltoall_module);
  module.before.iallgather.save(before.coll_iallgather, before.coll_iallgather_module);
  // What nobody makes yet there is nothing to fall back to: somebody of higher priority makes it.
  if (module.before.ibcast.function != nullptr) module.super.coll_ibcast = ibcast;
  if (module.before.iallreduce.function != nullptr) module.super.coll_iallreduce = iallreduce;
  if (module.before.ireduce.function != nullptr) module.super.coll_ireduce = ireduce;
  if (module.before.ialltoall.function != nullptr) module.super.coll_ialltoall = ialltoall;
  if (module.before.iallgather.function != nullptr) module.super.coll_iallgather = iallgather;
}

void drop_before(Module& module) noexcept {
  module.before.ibcast.drop();
  module.before.iallreduce.drop();
  module.before.ireduce.drop();
  module.before.ialltoall.drop();
  module.before.iallgather.drop();
}

}  // namespace overlap::coll_mq
