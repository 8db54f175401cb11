// The functions that Open MPI calls, and what each of them begins with.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <cstdint>
#include <new>

#include "btl_ring_guard.hpp"
#include "opal/mca/common/overlap/capability.hpp"

namespace overlap::ring {

using Handle = mca_btl_base_endpoint_t;
class Transport;

struct RingModule {
  mca_btl_base_module_t base;  // first: Open MPI's view
};
extern RingModule ring_module;

/// Run `body` so that nothing is thrown into C. @returns its value, or an error code of Open MPI
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OPAL_ERR_OUT_OF_RESOURCE;
  } catch (...) {
    return OPAL_ERROR;
  }
}

// Functions of the module table (btl_ring_module.cpp, btl_ring_rdma.cpp).
void fill_module(mca_btl_base_module_t& table, Transport& made);
int add_procs(mca_btl_base_module_t* btl, std::size_t count, opal_proc_t** procs,
              Handle** endpoints, opal_bitmap_t* reachable) noexcept;
int del_procs(mca_btl_base_module_t* btl, std::size_t count, opal_proc_t** procs,
              Handle** endpoints) noexcept;
int finalize(mca_btl_base_module_t* btl) noexcept;
mca_btl_base_descriptor_t* alloc(mca_btl_base_module_t* btl, Handle* endpoint, std::uint8_t order,
                                 std::size_t size, std::uint32_t flags) noexcept;
int free_descriptor(mca_btl_base_module_t* btl, mca_btl_base_descriptor_t* descriptor) noexcept;
mca_btl_base_descriptor_t* prepare_src(mca_btl_base_module_t* btl, Handle* endpoint,
                                       opal_convertor_t* convertor, std::uint8_t order,
                                       std::size_t reserve, std::size_t* size,
                                       std::uint32_t flags) noexcept;
int send(mca_btl_base_module_t* btl, Handle* endpoint, mca_btl_base_descriptor_t* descriptor,
         mca_btl_base_tag_t tag) noexcept;
int sendi(mca_btl_base_module_t* btl, Handle* endpoint, opal_convertor_t* convertor, void* header,
          std::size_t header_size, std::size_t payload_size, std::uint8_t order,
          std::uint32_t flags, mca_btl_base_tag_t tag,
          mca_btl_base_descriptor_t** descriptor) noexcept;
int put(mca_btl_base_module_t* btl, Handle* endpoint, void* local_address,
        std::uint64_t remote_address, mca_btl_base_registration_handle_t* local_handle,
        mca_btl_base_registration_handle_t* remote_handle, std::size_t size, int flags, int order,
        mca_btl_base_rdma_completion_fn_t done, void* context, void* data) noexcept;
int get(mca_btl_base_module_t* btl, Handle* endpoint, void* local_address,
        std::uint64_t remote_address, mca_btl_base_registration_handle_t* local_handle,
        mca_btl_base_registration_handle_t* remote_handle, std::size_t size, int flags, int order,
        mca_btl_base_rdma_completion_fn_t done, void* context, void* data) noexcept;
int atomic_op(mca_btl_base_module_t* btl, Handle* endpoint, std::uint64_t remote_address,
              mca_btl_base_registration_handle_t* remote_handle, mca_btl_base_atomic_op_t op,
              std::uint64_t operand, int flags, int order, mca_btl_base_rdma_completion_fn_t done,
              void* context, void* data) noexcept;
int atomic_fetch(mca_btl_base_module_t* btl, Handle* endpoint, void* local_address,
                 std::uint64_t remote_address, mca_btl_base_registration_handle_t* local_handle,
                 mca_btl_base_registration_handle_t* remote_handle, mca_btl_base_atomic_op_t op,
                 std::uint64_t operand, int flags, int order,
                 mca_btl_base_rdma_completion_fn_t done, void* context, void* data) noexcept;
int atomic_compare_swap(mca_btl_base_module_t* btl, Handle* endpoint, void* local_address,
                        std::uint64_t remote_address,
                        mca_btl_base_registration_handle_t* local_handle,
                        mca_btl_base_registration_handle_t* remote_handle, std::uint64_t compare,
                        std::uint64_t value, int flags, int order,
                        mca_btl_base_rdma_completion_fn_t done, void* context, void* data) noexcept;
mca_btl_base_registration_handle_t* register_memory(mca_btl_base_module_t* btl, Handle* endpoint,
                                                    void* base, std::size_t size,
                                                    std::uint32_t flags) noexcept;
int deregister_memory(mca_btl_base_module_t* btl,
                      mca_btl_base_registration_handle_t* handle) noexcept;
int progress() noexcept;
int progress_in_thread() noexcept;
int send_behind(mca_btl_base_module_t* btl, Handle* endpoint, std::uint8_t tag, const void* bytes,
                std::size_t length, Behind behind) noexcept;
inline constexpr std::size_t chained_max_bytes = 256;

}  // namespace overlap::ring
