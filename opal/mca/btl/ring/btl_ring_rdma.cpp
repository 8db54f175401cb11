// Put, get, atomics and chained messages, on a queue pair of their own.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring.hpp"

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

int Transport::start(BulkOperation* operation) {
  Endpoint& endpoint = *operation->endpoint;
  if (endpoint.lost) {
    if (operation->target != nullptr) registrations_.release(*operation->target);
    delete operation;
    // Callers repeat atomics without looking for events, which say that the peer is lost.
    if (!endpoint.reported) poll_events();
    return OPAL_ERR_UNREACH;
  }
  if (!endpoint.bulk_waiting.empty() || !try_post_bulk(*operation)) {
    endpoint.bulk_waiting.push_back(operation);
    mark_busy(endpoint);
  }
  return OPAL_SUCCESS;
}

/// Give an operation to the device. @returns false: no connection yet, or no room
bool Transport::try_post_bulk(BulkOperation& operation) {
  Connection& connection = operation.endpoint->bulk;
  if (!connection.established()) {
    want(connection);
    return false;
  }
  if (!connection.account.has_room()) return false;
  if (!operation.message.empty()) {
    const std::size_t bytes = operation.message.size();
    if (bytes <= capabilities().inline_max_bytes) {
      operation.request.inline_data = true;
      operation.request.gather[0] = {operation.message.data(), static_cast<std::uint32_t>(bytes),
                                     0};
    } else {
      const auto index = send_buffers_.try_take();
      if (!index) return false;
      operation.send_buffer = static_cast<std::int32_t>(*index);
      std::byte* const buffer = send_buffers_.at(*index);
      std::memcpy(buffer, operation.message.data(), bytes);
      operation.request.gather[0] = {buffer, static_cast<std::uint32_t>(bytes),
                                     send_buffers_.local_key()};
    }
  } else if (operation.local_address == nullptr && operation.done != nullptr) {
    const auto index = scratch_.try_take();
    if (!index) return false;
    operation.scratch = static_cast<std::int32_t>(*index);
    operation.request.gather[0] = {scratch_.at(*index), 8, scratch_.local_key()};
  }
  operation.request.id = make_id(IdKind::bulk, &operation);
  post(connection, operation.request);
  return true;
}

void Transport::bulk_completed(BulkOperation& operation, const fabric::Completion& completion) {
  const bool ok = completion.status == fabric::CompletionStatus::success;
  if (operation.send_buffer >= 0)
    send_buffers_.give_back(static_cast<std::uint32_t>(operation.send_buffer));
  if (operation.scratch >= 0) scratch_.give_back(static_cast<std::uint32_t>(operation.scratch));
  const std::unique_ptr<BulkOperation> owner(&operation);
  if (operation.target != nullptr) registrations_.release(*operation.target);
  if (operation.done == nullptr || finalizing_) return;
  operation.done(&ring_module.base, &operation.endpoint->handle, operation.local_address,
                 operation.local_handle, operation.context, operation.data,
                 ok ? OPAL_SUCCESS : OPAL_ERROR);
}

void Transport::flush_bulk(Endpoint& endpoint) {
  while (!endpoint.bulk_waiting.empty()) {
    BulkOperation* operation = endpoint.bulk_waiting.front();
    if (!try_post_bulk(*operation)) return;
    endpoint.bulk_waiting.pop_front();
  }
}

/// Operations that will never be posted: their owners are told.
void Transport::fail_bulk(Endpoint& endpoint) noexcept {
  std::deque<BulkOperation*> failed;
  failed.swap(endpoint.bulk_waiting);
  fabric::Completion completion;
  completion.status = fabric::CompletionStatus::flushed;
  for (BulkOperation* operation : failed) bulk_completed(*operation, completion);
}

/// Chained completion: behind puts by the order of the queue pair, behind gets by a fence
/// (architecture.md rule 5).
int Transport::send_behind(Endpoint& endpoint, mca_btl_base_tag_t tag,
                           std::span<const std::byte> bytes, Behind behind) {
  auto operation = std::make_unique<BulkOperation>();
  const MessageHeader header =
      endpoint.stream.unordered_header(tag, static_cast<std::uint32_t>(bytes.size()));
  operation->message.resize(sizeof header + bytes.size());
  std::memcpy(operation->message.data(), &header, sizeof header);
  std::memcpy(operation->message.data() + sizeof header, bytes.data(), bytes.size());
  operation->endpoint = &endpoint;
  operation->request.opcode = fabric::Opcode::send;
  operation->request.signalled = true;
  operation->request.gather_count = 1;
  operation->request.fenced = behind == Behind::gets;
  ++counters().chained_sent;
  return start(operation.release());
}

// --- Module functions ------------------------------------------------------------------

int put(mca_btl_base_module_t*, Handle* handle, void* local_address, std::uint64_t remote_address,
        mca_btl_base_registration_handle_t* local_handle,
        mca_btl_base_registration_handle_t* remote_handle, std::size_t size, int, int,
        mca_btl_base_rdma_completion_fn_t done, void* context, void* data) noexcept {
  const Guard guard;
  return guarded([&]() -> int {
    BulkOperation* operation = make_operation(&transport->endpoint(*handle), fabric::Opcode::write,
                                              remote_address, remote_handle, done, context, data);
    set_local(*operation, local_address, size, local_handle);
    operation->request.inline_data = local_handle == nullptr;
    counters().put_bytes += size;
    return transport->start(operation);
  });
}

int get(mca_btl_base_module_t*, Handle* handle, void* local_address, std::uint64_t remote_address,
        mca_btl_base_registration_handle_t* local_handle,
        mca_btl_base_registration_handle_t* remote_handle, std::size_t size, int, int,
        mca_btl_base_rdma_completion_fn_t done, void* context, void* data) noexcept {
  const Guard guard;
  return guarded([&]() -> int {
    BulkOperation* operation = make_operation(&transport->endpoint(*handle), fabric::Opcode::read,
                                              remote_address, remote_handle, done, context, data);
    set_local(*operation, local_address, size, local_handle);
    counters().get_bytes += size;
    return transport->start(operation);
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
        make_operation(&transport->endpoint(*handle), fabric::Opcode::fetch_add, remote_address,
                       remote_handle, done, context, data);
    operation->request.operand = operand;
    ++counters().atomics;
    return transport->start(operation);
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
        make_operation(&transport->endpoint(*handle), fabric::Opcode::fetch_add, remote_address,
                       remote_handle, done, context, data);
    set_local(*operation, local_address, 8, local_handle);
    operation->request.operand = operand;
    ++counters().atomics;
    return transport->start(operation);
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
      handle = transport->handle(*opal_proc_local_get());
    }
    BulkOperation* operation =
        make_operation(&transport->endpoint(*handle), fabric::Opcode::compare_swap, remote_address,
                       remote_handle, done, context, data);
    set_local(*operation, local_address, 8, local_handle);
    operation->target = target;
    operation->request.compare = compare;
    operation->request.operand = value;
    ++counters().atomics;
    return transport->start(operation);
  });
}

mca_btl_base_registration_handle_t* register_memory(mca_btl_base_module_t*, Handle*, void* base,
                                                    std::size_t size,
                                                    std::uint32_t flags) noexcept {
  const Guard guard;
  CachedRegistration* registration = nullptr;
  guarded([&]() -> int {
    registration = transport->registrations().take(base, size, flags & MCA_BTL_REG_FLAG_ACCESS_ANY);
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
    return transport->send_behind(transport->endpoint(*handle), tag,
                                  {static_cast<const std::byte*>(bytes), length}, behind);
  });
}

}  // namespace overlap::ring
