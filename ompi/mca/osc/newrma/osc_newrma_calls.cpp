// MPI's one-sided operations.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/process.hpp"
#include "ompi/mca/common/overlap/waiting.hpp"

#include "osc_newrma_window.hpp"

namespace overlap::newrma {
namespace {

TypedCount data_of(ompi_datatype_t* type, int count) noexcept {
  return {type, static_cast<std::size_t>(count)};
}

/// Is all that is attached?
bool is_attached(const WindowMemory& memory, const OperationCall& call) {
  return std::ranges::all_of(
      blocks_of(call.target_data, call.start, nullptr),
      [&memory](const Block& each) { return memory.find(each.address, each.bytes) != nullptr; });
}

/// Does the target's data lie in the window? Of attached memory only the target knows.
/// @param own  the target is this process
/// @thread  progress lock held
bool is_inside(const WindowMemory& memory, const OperationCall& call, bool own) {
  const Range range = range_of(call.target_data);
  if (range.begin == range.end) return true;
  if (memory.flavor() == Flavor::dynamic) return !own || is_attached(memory, call);
  std::int64_t begin = 0, end = 0;
  const auto start = static_cast<std::int64_t>(call.start);
  return !__builtin_add_overflow(start, range.begin, &begin) &&
         !__builtin_add_overflow(start, range.end, &end) && begin >= 0 &&
         end <= static_cast<std::int64_t>(memory.bytes_of(call.target));
}

bool can_compute(const ompi_op_t& op, const ompi_datatype_t& element) noexcept {
  const int index = ompi_op_ddt_map[element.id];
  return index != -1 && op.o_func.intrinsic.fns[index] != nullptr;
}

bool applies(const ompi_op_t& op, const ompi_datatype_t& element) noexcept {
  const bool moves = &op == &ompi_mpi_op_replace.op || &op == &ompi_mpi_op_no_op.op;
  return moves || can_compute(op, element);
}

/// Is it a type of integers, logical values or bytes?
bool can_compare(const ompi_datatype_t& element) noexcept {
  return can_compute(ompi_mpi_op_bor.op, element) || can_compute(ompi_mpi_op_lor.op, element);
}

/// What is wrong with the type and operation of an accumulate. @returns  an MPI error class
int fault_of(const OperationCall& call) noexcept {
  if (call.element == nullptr) return MPI_ERR_TYPE;
  if (call.kind == Kind::compare_swap) {
    const bool fits =
        ompi_datatype_is_predefined(call.target_data.type) && can_compare(*call.element);
    return fits ? MPI_SUCCESS : MPI_ERR_TYPE;
  }
  if (!ompi_op_is_intrinsic(call.op)) return MPI_ERR_OP;
  return applies(*call.op, *call.element) ? MPI_SUCCESS : MPI_ERR_OP;
}

/// Give BTLs time where a program issues faster than they transfer: what they have taken is memory.
/// Not for ever: a call returns where nothing moves because the target makes no call.
void make_room(const Window& window) {
  constexpr int turns_max = 1000;
  bool crowded = true;
  for (int turn = 0; turn < turns_max && crowded; ++turn) {
    take_turn(process->driver, process->completions);
    if (turn % 64 == 63) opal_progress();  // it yields where ranks share cores
    const Entry entry;
    crowded = window.is_crowded();
  }
}

/// Elements of one type without gaps that are as they are at both sides.
/// @returns  their bytes; not_dense: they are others
constexpr std::uint64_t not_dense = UINT64_MAX;
std::uint64_t dense_bytes_of(const ompi_datatype_t* own_type, int own_count,
                             const ompi_datatype_t* type, int count) noexcept {
  constexpr auto dense = OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS;
  if (own_type != type || own_count != count || (type->super.flags & dense) != dense ||
      type->super.true_lb != 0)
    return not_dense;
  return type->super.size * static_cast<std::uint64_t>(count);
}

/// The short way of operations of a few bytes on memory that this process maps. In each call, so
/// that nothing is stored for a function: an atomic operation waits until all stores are done.
/// @param bytes  of dense_bytes_of()
/// @param act    called with the window and the target's memory
/// @returns  false: it is none of those, or there is something wrong with it
template <class Act>
[[gnu::always_inline]] inline bool act_on_few(ompi_win_t* win, int target,
                                              std::ptrdiff_t displacement, std::uint64_t bytes,
                                              Act&& act) noexcept {
  constexpr std::uint64_t few_bytes = 4096;
  if (bytes > few_bytes) return false;
  Window& window = window_of(win);
  {
    const Entry entry;
    std::byte* const place = window.open_place(target, displacement, bytes);
    if (place == nullptr) return false;
    act(window, place);
  }
  progress_now_and_then(window.count_call());
  return true;
}

/// The short way of a put or get that the kernel carries out at once.
bool copy_by_kernel(ompi_win_t* win, Kind kind, void* own, int target, std::ptrdiff_t displacement,
                    std::uint64_t bytes) noexcept {
  if (bytes <= asked_alone_max_bytes || bytes > CopiedMemory::simple_max_bytes) return false;
  Window& window = window_of(win);
  {
    const Entry entry;
    if (!window.copy_by_kernel(kind, target, displacement, {static_cast<std::byte*>(own), bytes}))
      return false;
  }
  progress_now_and_then(window.count_call());
  return true;
}

/// The same of an accumulate. @param result  what was there before; nullptr: is not asked for
[[gnu::always_inline]] inline bool accumulate_few(const void* origin, void* result,
                                                  ompi_datatype_t* type, std::uint64_t bytes,
                                                  int target, std::ptrdiff_t displacement,
                                                  ompi_op_t* op, ompi_win_t* win) noexcept {
  if (!ompi_datatype_is_predefined(type) || !ompi_op_is_intrinsic(op) || !applies(*op, *type))
    return false;
  return act_on_few(win, target, displacement, bytes, [&](Window& window, std::byte* place) {
    const AccumulateGuard guard(window.opened_control());
    if (result != nullptr) copy_few(result, place, bytes);
    apply_elements(*op, *type, place, {static_cast<const std::byte*>(origin), bytes});
  });
}

/// Carry out what a call asks for. @param displacement  in the target's units
int operate(ompi_win_t* win, OperationCall& call, std::ptrdiff_t displacement,
            ompi_request_t** request) noexcept {
  return guarded([&]() -> int {
    Window& window = window_of(win);
    if (!window.has_rank(call.target)) return MPI_ERR_RANK;
    const WindowMemory& memory = window.memory();
    const std::ptrdiff_t unit =
        memory.flavor() == Flavor::dynamic ? 1 : memory.displacement_unit_of(call.target);
    std::ptrdiff_t start = 0;
    if (__builtin_mul_overflow(displacement, unit, &start)) return MPI_ERR_RMA_RANGE;
    call.start = static_cast<std::uint64_t>(start);
    if (call.accumulates()) {
      call.element = element_of(*call.target_data.type);
      if (const int fault = fault_of(call); fault != MPI_SUCCESS) return fault;
    }
    int rc = OMPI_SUCCESS;
    bool crowded = false;
    {
      const LeavingEntry entry(process->interrupts);
      if (!is_inside(memory, call, call.target == window.self())) return MPI_ERR_RMA_RANGE;
      rc = window.operate(call, request);
      crowded = window.is_crowded();
    }
    if (crowded) [[unlikely]]
      make_room(window);
    progress_now_and_then(window.count_call());
    return rc;
  });
}

int rput(const void* origin, int origin_count, ompi_datatype_t* origin_type, int target,
         std::ptrdiff_t displacement, int count, ompi_datatype_t* type, ompi_win_t* win,
         ompi_request_t** request) noexcept {
  OperationCall call;
  call.kind = Kind::put;
  call.origin = origin;
  call.origin_data = data_of(origin_type, origin_count);
  call.target = target;
  call.target_data = data_of(type, count);
  return operate(win, call, displacement, request);
}

int put(const void* origin, int origin_count, ompi_datatype_t* origin_type, int target,
        std::ptrdiff_t displacement, int count, ompi_datatype_t* type, ompi_win_t* win) noexcept {
  const std::uint64_t bytes = dense_bytes_of(origin_type, origin_count, type, count);
  if (act_on_few(win, target, displacement, bytes,
                 [=](Window&, std::byte* place) { copy_few(place, origin, bytes); }) ||
      copy_by_kernel(win, Kind::put, const_cast<void*>(origin), target, displacement, bytes))
    return OMPI_SUCCESS;
  return rput(origin, origin_count, origin_type, target, displacement, count, type, win, nullptr);
}

int rget(void* origin, int origin_count, ompi_datatype_t* origin_type, int target,
         std::ptrdiff_t displacement, int count, ompi_datatype_t* type, ompi_win_t* win,
         ompi_request_t** request) noexcept {
  OperationCall call;
  call.kind = Kind::get;
  call.result = origin;
  call.result_data = data_of(origin_type, origin_count);
  call.target = target;
  call.target_data = data_of(type, count);
  return operate(win, call, displacement, request);
}

int get(void* origin, int origin_count, ompi_datatype_t* origin_type, int target,
        std::ptrdiff_t displacement, int count, ompi_datatype_t* type, ompi_win_t* win) noexcept {
  const std::uint64_t bytes = dense_bytes_of(origin_type, origin_count, type, count);
  if (act_on_few(win, target, displacement, bytes,
                 [=](Window&, const std::byte* place) { copy_few(origin, place, bytes); }) ||
      copy_by_kernel(win, Kind::get, origin, target, displacement, bytes))
    return OMPI_SUCCESS;
  return rget(origin, origin_count, origin_type, target, displacement, count, type, win, nullptr);
}

int raccumulate(const void* origin, int origin_count, ompi_datatype_t* origin_type, int target,
                std::ptrdiff_t displacement, int count, ompi_datatype_t* type, ompi_op_t* op,
                ompi_win_t* win, ompi_request_t** request) noexcept {
  OperationCall call;
  call.kind = Kind::accumulate;
  call.origin = origin;
  call.origin_data = data_of(origin_type, origin_count);
  call.target = target;
  call.target_data = data_of(type, count);
  call.op = op;
  return operate(win, call, displacement, request);
}

int accumulate(const void* origin, int origin_count, ompi_datatype_t* origin_type, int target,
               std::ptrdiff_t displacement, int count, ompi_datatype_t* type, ompi_op_t* op,
               ompi_win_t* win) noexcept {
  if (accumulate_few(origin, nullptr, type, dense_bytes_of(origin_type, origin_count, type, count),
                     target, displacement, op, win))
    return OMPI_SUCCESS;
  return raccumulate(origin, origin_count, origin_type, target, displacement, count, type, op, win,
                     nullptr);
}

int rget_accumulate(const void* origin, int origin_count, ompi_datatype_t* origin_type,
                    void* result, int result_count, ompi_datatype_t* result_type, int target,
                    std::ptrdiff_t displacement, int count, ompi_datatype_t* type, ompi_op_t* op,
                    ompi_win_t* win, ompi_request_t** request) noexcept {
  OperationCall call;
  call.kind = Kind::get_accumulate;
  if (op != &ompi_mpi_op_no_op.op) {  // MPI ignores the origin's arguments otherwise
    call.origin = origin;
    call.origin_data = data_of(origin_type, origin_count);
  }
  call.result = result;
  call.result_data = data_of(result_type, result_count);
  call.target = target;
  call.target_data = data_of(type, count);
  call.op = op;
  return operate(win, call, displacement, request);
}

int get_accumulate(const void* origin, int origin_count, ompi_datatype_t* origin_type, void* result,
                   int result_count, ompi_datatype_t* result_type, int target,
                   std::ptrdiff_t displacement, int count, ompi_datatype_t* type, ompi_op_t* op,
                   ompi_win_t* win) noexcept {
  return rget_accumulate(origin, origin_count, origin_type, result, result_count, result_type,
                         target, displacement, count, type, op, win, nullptr);
}

int fetch_and_op(const void* origin, void* result, ompi_datatype_t* type, int target,
                 std::ptrdiff_t displacement, ompi_op_t* op, ompi_win_t* win) noexcept {
  if (!ompi_datatype_is_predefined(type)) return MPI_ERR_TYPE;
  if (accumulate_few(origin, result, type, dense_bytes_of(type, 1, type, 1), target, displacement,
                     op, win))
    return OMPI_SUCCESS;
  return get_accumulate(origin, 1, type, result, 1, type, target, displacement, 1, type, op, win);
}

int compare_and_swap(const void* origin, const void* compare, void* result, ompi_datatype_t* type,
                     int target, std::ptrdiff_t displacement, ompi_win_t* win) noexcept {
  if (ompi_datatype_is_predefined(type) && can_compare(*type)) {
    const std::uint64_t few = dense_bytes_of(type, 1, type, 1);
    const auto swap = [=](Window& window, std::byte* place) {
      const AccumulateGuard guard(window.opened_control());
      compare_and_swap_element(place, compare, origin, result, few);
    };
    if (act_on_few(win, target, displacement, few, swap)) return OMPI_SUCCESS;
  }
  OperationCall call;
  call.kind = Kind::compare_swap;
  call.origin = origin;
  call.origin_data = data_of(type, 1);
  call.compare = compare;
  call.result = result;
  call.result_data = data_of(type, 1);
  call.target = target;
  call.target_data = data_of(type, 1);
  return operate(win, call, displacement, nullptr);
}

}  // namespace

void fill_operations(ompi_osc_base_module_t& table) noexcept {
  table.osc_put = put;
  table.osc_get = get;
  table.osc_accumulate = accumulate;
  table.osc_compare_and_swap = compare_and_swap;
  table.osc_fetch_and_op = fetch_and_op;
  table.osc_get_accumulate = get_accumulate;
  table.osc_rput = rput;
  table.osc_rget = rget;
  table.osc_raccumulate = raccumulate;
  table.osc_rget_accumulate = rget_accumulate;
}

}  // namespace overlap::newrma
