// The functions that Open MPI calls: peers, fragments, sends.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_module.hpp"

#include <algorithm>

#include "btl_ring.hpp"
#include "btl_ring_pieces.hpp"
#include "btl_ring_tunables.hpp"

namespace overlap::ring {

RingModule ring_module;
Transport* transport = nullptr;

// --- Fragments -------------------------------------------------------------------------

namespace {

/// May a fragment be made for this peer? Each one that waits keeps its buffer, where a request of
/// the caller takes less. The ends of those that wait let upper layers try again. It is said here
/// and not in send(): ob1 loses memory when a fragment that it has is refused. Control messages are
/// small, and ob1 registers a buffer anew for each refusal: very many of them may wait.
bool may_wait(const Handle& handle, std::size_t bytes) noexcept {
  constexpr std::size_t waiting_max = 32;
  constexpr std::size_t waiting_control_max = 8192;
  const std::size_t most = bytes <= FragmentPool::control_bytes ? waiting_control_max : waiting_max;
  return handle.endpoint() == nullptr || handle.endpoint()->waiting.size() < most;
}

}  // namespace

mca_btl_base_descriptor_t* alloc(mca_btl_base_module_t*, Handle* handle, std::uint8_t,
                                 std::size_t size, std::uint32_t flags) noexcept {
  const Guard guard;
  Fragment* fragment = size <= UINT32_MAX && may_wait(*handle, size)
                           ? transport->fragments().take(static_cast<std::uint32_t>(size), flags)
                           : nullptr;
  return fragment != nullptr ? &fragment->base : nullptr;
}

int free_descriptor(mca_btl_base_module_t*, mca_btl_base_descriptor_t* descriptor) noexcept {
  const Guard guard;
  auto& fragment = *reinterpret_cast<Fragment*>(descriptor);
  if (fragment.in_place != nullptr) transport->registrations().release(*fragment.in_place);
  fragment.in_place = nullptr;
  transport->fragments().give_back(fragment);
  return OPAL_SUCCESS;
}

/// Contiguous data stays where it is: it is copied once, into the slot, or, when its buffer is used
/// often, not at all.
mca_btl_base_descriptor_t* prepare_src(mca_btl_base_module_t*, Handle* handle,
                                       opal_convertor_t* convertor, std::uint8_t,
                                       std::size_t reserve, std::size_t* size,
                                       std::uint32_t flags) noexcept {
  const Guard guard;
  const std::uint32_t most = channel_payload_bytes();
  if (reserve >= most || !may_wait(*handle, reserve + *size)) return nullptr;
  *size = std::min<std::size_t>(*size, most - reserve);
  const bool contiguous = opal_convertor_need_buffers(convertor) == 0;
  Fragment* fragment = transport->fragments().take(
      static_cast<std::uint32_t>(contiguous ? reserve : reserve + *size), flags);
  if (fragment == nullptr) return nullptr;
  fragment->segments[0].seg_len = reserve;
  if (!contiguous) {
    iovec piece{fragment->storage() + reserve, *size};
    std::uint32_t pieces = 1;
    if (opal_convertor_pack(convertor, &piece, &pieces, size) < 0) {
      transport->fragments().give_back(*fragment);
      return nullptr;
    }
    fragment->segments[0].seg_len = reserve + *size;
    return &fragment->base;
  }
  void* data = nullptr;
  opal_convertor_get_current_pointer(convertor, &data);
  fragment->base.des_segment_count = 2;
  fragment->segments[1].seg_addr.pval = data;
  fragment->segments[1].seg_len = *size;
  const auto bytes = static_cast<std::uint32_t>(*size);
  if (reserve + *size <= slot_payload_bytes() && transport->frequent().note_use(data, bytes)) {
    guarded([&]() -> int {
      fragment->in_place = transport->frequent().take(data, bytes);
      return OPAL_SUCCESS;
    });
  }
  return &fragment->base;
}

// --- Sends -----------------------------------------------------------------------------

int send(mca_btl_base_module_t*, Handle* handle, mca_btl_base_descriptor_t* descriptor,
         mca_btl_base_tag_t tag) noexcept {
  const Guard guard;
  return guarded([&]() -> int {
    auto& fragment = *reinterpret_cast<Fragment*>(descriptor);
    Endpoint& endpoint = transport->peers().endpoint(*handle);
    fragment.endpoint = &endpoint;
    fragment.tag = tag;
    if (!endpoint.ending.usable()) return OPAL_ERR_UNREACH;
    if (endpoint.waiting.empty()) {
      if (fragment.in_place != nullptr && transport->sender().try_send_in_place(fragment))
        return OPAL_SUCCESS;
      if (transport->sender().try_send(endpoint, tag, pieces_of(fragment),
                                       fragment.base.des_flags)) {
        if ((fragment.base.des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK) != 0) {
          transport->sent().finish_later(
              fragment);  // not inside the call: the upper layer has not yet noted that it sent it
          return OPAL_SUCCESS;
        }
        transport->sent().discard(fragment);
        return 1;
      }
    }
    transport->sender().queue(fragment);
    return OPAL_SUCCESS;
  });
}

int sendi(mca_btl_base_module_t*, Handle* handle, opal_convertor_t* convertor, void* header,
          std::size_t header_size, std::size_t payload_size, std::uint8_t, std::uint32_t flags,
          mca_btl_base_tag_t tag, mca_btl_base_descriptor_t** descriptor) noexcept {
  const Guard guard;
  const auto bytes = static_cast<std::uint32_t>(payload_size);
  const int rc = guarded([&]() -> int {
    Endpoint& endpoint = transport->peers().endpoint(*handle);
    if (!endpoint.waiting.empty() || header_size + payload_size > channel_payload_bytes())
      return OPAL_ERR_OUT_OF_RESOURCE;
    Pieces pieces{header, static_cast<std::uint32_t>(header_size), nullptr, bytes, nullptr};
    if (payload_size > 0) {
      if (opal_convertor_need_buffers(convertor) != 0) {
        pieces.convertor = convertor;
      } else {
        void* data = nullptr;
        opal_convertor_get_current_pointer(convertor, &data);
        if (transport->frequent().note_use(data, bytes))
          return OPAL_ERR_OUT_OF_RESOURCE;  // prepare_src sends it from where it lies
        pieces.second = data;
      }
    }
    return transport->sender().try_send(endpoint, tag, pieces, flags) ? OPAL_SUCCESS
                                                                      : OPAL_ERR_OUT_OF_RESOURCE;
  });
  if (rc != OPAL_SUCCESS && descriptor != nullptr) {
    *descriptor =
        alloc(&ring_module.base, handle, MCA_BTL_NO_ORDER, header_size + payload_size, flags);
  }
  return rc;
}

// --- Peers -----------------------------------------------------------------------------

int add_procs(mca_btl_base_module_t*, std::size_t count, opal_proc_t** procs, Handle** endpoints,
              opal_bitmap_t* reachable) noexcept {
  // No Guard: see introduce().
  return guarded([&]() -> int {
    for (std::size_t i = 0; i < count; ++i) {
      // This process too: btl/self takes its messages, but osc/rdma wants one BTL that reaches
      // everybody.
      endpoints[i] = transport->peers().introduce(*procs[i]);
      if (endpoints[i] == nullptr) continue;
      if (reachable != nullptr) opal_bitmap_set_bit(reachable, static_cast<int>(i));
    }
    return OPAL_SUCCESS;
  });
}

void wake_now() noexcept {
  const Guard guard;
  static_cast<void>(guarded([]() -> int {
    transport->wake_now();
    return OPAL_SUCCESS;
  }));
}

int expect(mca_btl_base_module_t*, Handle* handle, std::uint32_t senders) noexcept {
  const Guard guard;
  return guarded([&]() -> int {
    transport->expect(*handle, senders);
    return OPAL_SUCCESS;
  });
}

int del_procs(mca_btl_base_module_t*, std::size_t count, opal_proc_t**,
              Handle** endpoints) noexcept {
  const Guard guard;
  transport->drop({endpoints, count});
  return OPAL_SUCCESS;
}

int finalize(mca_btl_base_module_t* btl) noexcept {
  withdraw_capability(btl);
  delete transport;
  transport = nullptr;
  return OPAL_SUCCESS;
}

namespace {

int register_error(mca_btl_base_module_t*, mca_btl_base_module_error_cb_fn_t callback) noexcept {
  const Guard guard;
  transport->upper().set_error_callback(callback);
  return OPAL_SUCCESS;
}

BtlCapability capability;

}  // namespace

void fill_module(mca_btl_base_module_t& table, Transport& made) {
  const fabric::Capabilities& able = made.capabilities();
  table.btl_eager_limit = std::min(slot_payload_bytes(), channel_payload_bytes());
  table.btl_rndv_eager_limit = table.btl_eager_limit;
  table.btl_max_send_size = channel_payload_bytes();
  table.btl_rdma_pipeline_send_length = table.btl_eager_limit;
  table.btl_rdma_pipeline_frag_size = std::size_t{4} << 20U;
  table.btl_min_rdma_pipeline_size = table.btl_eager_limit + table.btl_rdma_pipeline_frag_size;
  table.btl_exclusivity = tunables.exclusivity;
  table.btl_latency = able.latency_us;
  table.btl_bandwidth = able.bandwidth_mbytes_s;
  table.btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_SEND_INPLACE;
  table.btl_registration_handle_size = sizeof(mca_btl_base_registration_handle_t);
  table.btl_put_limit = table.btl_get_limit =
      std::min<std::uint64_t>(able.message_max_bytes, std::uint64_t{1} << 30U);
  table.btl_put_alignment = table.btl_get_alignment = 0;
  table.btl_get_local_registration_threshold = 0;
  table.btl_put_local_registration_threshold = able.inline_max_bytes;
  table.btl_add_procs = add_procs;
  table.btl_del_procs = del_procs;
  table.btl_finalize = finalize;
  table.btl_alloc = alloc;
  table.btl_free = free_descriptor;
  table.btl_prepare_src = prepare_src;
  table.btl_send = send;
  table.btl_sendi = sendi;
  table.btl_put = put;
  table.btl_get = get;
  table.btl_register_mem = register_memory;
  table.btl_deregister_mem = deregister_memory;
  table.btl_register_error = register_error;
  if (able.atomics) {
    table.btl_flags |= MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS;
    table.btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_CSWAP;
    if (able.atomics_global) table.btl_atomic_flags |= MCA_BTL_ATOMIC_SUPPORTS_GLOB;
    table.btl_atomic_op = atomic_op;
    table.btl_atomic_fop = atomic_fetch;
    table.btl_atomic_cswap = atomic_compare_swap;
  }
  table.btl_flags |= btl_flag_remote_completion;
  capability.send_behind = tunables.chained ? send_behind : nullptr;
  capability.chained_max_bytes = chained_max_bytes;
  capability.puts_end_at_peer = true;
  capability.lasting_flag = lasting_registration;
  capability.in_place_min_bytes = made.frequent().can_send_in_place() ? tunables.frequent_min : 0;
  capability.arrival_descriptor = made.arrival_descriptor();
  capability.arm = []() noexcept { transport->arm_arrivals(); };
  capability.is_waiting = []() noexcept { return transport->is_waiting(); };
  capability.progress_in_thread = progress_in_thread;
  capability.expect = expect;
  capability.wake_now = wake_now;
  offer_capability(&table, &capability);
}

}  // namespace overlap::ring
