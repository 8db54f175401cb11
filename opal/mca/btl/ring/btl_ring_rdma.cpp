// The functions that Open MPI calls: one-sided operations, registrations, chained messages.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring.hpp"
#include "btl_ring_module.hpp"
#include "btl_ring_tunables.hpp"

namespace overlap::ring {
namespace {

BulkOperation* make_operation(Endpoint* endpoint, fabric::Opcode opcode,
                              std::uint64_t remote_address,
                              const mca_btl_base_registration_handle_t* remote_handle,
                              mca_btl_base_rdma_completion_fn_t done, void* context, void* data) {
  auto* operation = new BulkOperation;
  operation->endpoint = endpoint;
  operation->request.opcode = opcode;
  operation->request.signalled = true;
  operation->request.gather_count = 1;
  operation->request.remote_address = remote_address;
  operation->request.remote_key = remote_handle->remote_key;
  operation->done = done;
  operation->context = context;
  operation->data = data;
  return operation;
}

void set_local(BulkOperation& operation, void* address, std::size_t bytes,
               mca_btl_base_registration_handle_t* handle) noexcept {
  operation.local_address = address;
  operation.local_handle = handle;
  operation.request.gather[0] = {address, static_cast<std::uint32_t>(bytes),
                                 handle != nullptr ? handle->local_key : 0};
}

/// Can an adapter work on it: eight bytes of an integer, aligned? Where it cannot, atomics answer
/// OPAL_ERR_NOT_SUPPORTED as btl/openib does, not OPAL_ERR_NOT_AVAILABLE as btl.h says: osc/rdma
/// takes another way for the former alone, and repeats the call for ever after any other error.
constexpr bool is_word(std::uint64_t remote_address, int flags) noexcept {
  return remote_address % 8 == 0 &&
         (flags & (MCA_BTL_ATOMIC_FLAG_32BIT | MCA_BTL_ATOMIC_FLAG_FLOAT)) == 0;
}

}  // namespace

int put(mca_btl_base_module_t*, Handle* handle, void* local_address, std::uint64_t remote_address,
        mca_btl_base_registration_handle_t* local_handle,
        mca_btl_base_registration_handle_t* remote_handle, std::size_t size, int, int,
        mca_btl_base_rdma_completion_fn_t done, void* context, void* data) noexcept {
  const Guard guard;
  return guarded([&]() -> int {
    BulkOperation* operation =
        make_operation(&transport->peers().endpoint(*handle), fabric::Opcode::write, remote_address,
                       remote_handle, done, context, data);
    set_local(*operation, local_address, size, local_handle);
    operation->request.inline_data = local_handle == nullptr;
    counters().put_bytes += size;
    return transport->bulk().start(operation);
  });
}

int get(mca_btl_base_module_t*, Handle* handle, void* local_address, std::uint64_t remote_address,
        mca_btl_base_registration_handle_t* local_handle,
        mca_btl_base_registration_handle_t* remote_handle, std::size_t size, int, int,
        mca_btl_base_rdma_completion_fn_t done, void* context, void* data) noexcept {
  const Guard guard;
  return guarded([&]() -> int {
    BulkOperation* operation =
        make_operation(&transport->peers().endpoint(*handle), fabric::Opcode::read, remote_address,
                       remote_handle, done, context, data);
    set_local(*operation, local_address, size, local_handle);
    counters().get_bytes += size;
    return transport->bulk().start(operation);
  });
}

int atomic_op(mca_btl_base_module_t*, Handle* handle, std::uint64_t remote_address,
              mca_btl_base_registration_handle_t* remote_handle, mca_btl_base_atomic_op_t op,
              std::uint64_t operand, int flags, int, mca_btl_base_rdma_completion_fn_t done,
              void* context, void* data) noexcept {
  if (op != MCA_BTL_ATOMIC_ADD || !is_word(remote_address, flags)) return OPAL_ERR_NOT_SUPPORTED;
  const Guard guard;
  return guarded([&]() -> int {
    BulkOperation* operation =
        make_operation(&transport->peers().endpoint(*handle), fabric::Opcode::fetch_add,
                       remote_address, remote_handle, done, context, data);
    operation->request.operand = operand;
    ++counters().atomics;
    return transport->bulk().start(operation);
  });
}

int atomic_fetch(mca_btl_base_module_t*, Handle* handle, void* local_address,
                 std::uint64_t remote_address, mca_btl_base_registration_handle_t* local_handle,
                 mca_btl_base_registration_handle_t* remote_handle, mca_btl_base_atomic_op_t op,
                 std::uint64_t operand, int flags, int, mca_btl_base_rdma_completion_fn_t done,
                 void* context, void* data) noexcept {
  if (op != MCA_BTL_ATOMIC_ADD || !is_word(remote_address, flags)) return OPAL_ERR_NOT_SUPPORTED;
  const Guard guard;
  return guarded([&]() -> int {
    BulkOperation* operation =
        make_operation(&transport->peers().endpoint(*handle), fabric::Opcode::fetch_add,
                       remote_address, remote_handle, done, context, data);
    set_local(*operation, local_address, 8, local_handle);
    operation->request.operand = operand;
    ++counters().atomics;
    return transport->bulk().start(operation);
  });
}

int atomic_compare_swap(mca_btl_base_module_t*, Handle* handle, void* local_address,
                        std::uint64_t remote_address,
                        mca_btl_base_registration_handle_t* local_handle,
                        mca_btl_base_registration_handle_t* remote_handle, std::uint64_t compare,
                        std::uint64_t value, int flags, int, mca_btl_base_rdma_completion_fn_t done,
                        void* context, void* data) noexcept {
  if (!is_word(remote_address, flags)) return OPAL_ERR_NOT_SUPPORTED;
  const Guard guard;
  return guarded([&]() -> int {
    // osc/rdma of 4.1 passes no handle for memory that it has mapped itself. The device does it
    // nevertheless: a processor's atomics and the device's need not be atomic to each other.
    CachedRegistration* target = nullptr;
    if (remote_handle == nullptr) {
      target = transport->registrations().take(reinterpret_cast<void*>(remote_address),
                                               sizeof value, MCA_BTL_REG_FLAG_ACCESS_ANY);
      if (target == nullptr) return OPAL_ERR_NOT_SUPPORTED;
      remote_handle = &target->handle;
      handle = transport->peers().handle(*opal_proc_local_get());
    }
    BulkOperation* operation =
        make_operation(&transport->peers().endpoint(*handle), fabric::Opcode::compare_swap,
                       remote_address, remote_handle, done, context, data);
    set_local(*operation, local_address, 8, local_handle);
    operation->target = target;
    operation->request.compare = compare;
    operation->request.operand = value;
    ++counters().atomics;
    return transport->bulk().start(operation);
  });
}

mca_btl_base_registration_handle_t* register_memory(mca_btl_base_module_t*, Handle*, void* base,
                                                    std::size_t size,
                                                    std::uint32_t flags) noexcept {
  const Guard guard;
  CachedRegistration* registration = nullptr;
  guarded([&]() -> int {
    registration = transport->registrations().take(
        base, size, flags & (MCA_BTL_REG_FLAG_ACCESS_ANY | lasting_registration));
    return OPAL_SUCCESS;
  });
  return registration != nullptr ? &registration->handle : nullptr;
}

int deregister_memory(mca_btl_base_module_t*, mca_btl_base_registration_handle_t* handle) noexcept {
  const Guard guard;
  transport->registrations().release(CachedRegistration::of(*handle));
  return OPAL_SUCCESS;
}

int send_behind(mca_btl_base_module_t*, Handle* handle, std::uint8_t tag, const void* bytes,
                std::size_t length, Behind behind) noexcept {
  const Guard guard;
  return guarded([&]() -> int {
    return transport->bulk().send_behind(transport->peers().endpoint(*handle), tag,
                                         {static_cast<const std::byte*>(bytes), length}, behind);
  });
}

}  // namespace overlap::ring
