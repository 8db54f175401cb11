// Payload of rendezvous messages: puts and gets in the pieces that a BTL takes, or fragments where there is no access to memory.
#include "pml_speculative.hpp"

namespace overlap::speculative {
namespace {

// No BTL is asked for more at once: some keep a length in 32 bits.
constexpr std::uint64_t piece_max_bytes = std::uint64_t{1} << 30U;

// A BTL that takes less than this at a time emulates memory access with copies; fragments do that better.
constexpr std::uint64_t piece_min_bytes = std::uint64_t{1} << 16U;

constexpr bool out_of_resources(int rc) noexcept {
  return rc == OMPI_ERR_OUT_OF_RESOURCE || rc == OMPI_ERR_TEMP_OUT_OF_RESOURCE ||
         rc == OMPI_ERR_RESOURCE_BUSY;
}

constexpr std::uint64_t piece_bytes(std::uint64_t limit_bytes) noexcept {
  return limit_bytes == 0 ? piece_max_bytes : std::min(limit_bytes, piece_max_bytes);
}

constexpr bool is_aligned(std::uint64_t address, std::uint64_t bytes,
                          std::uint64_t alignment) noexcept {
  return alignment <= 1 || ((address | bytes) & (alignment - 1)) == 0;
}

/// The rail that a description of memory came over, or the only one that can be meant.
mca_bml_base_btl_t* find_rail(PeerLink& link, const RemoteMemory& memory,
                              std::uint32_t flag) noexcept {
  mca_bml_base_btl_t* only = nullptr;
  std::size_t able = 0;
  for (mca_bml_base_btl_t* rail : link.rails) {
    if ((rail->btl_flags & flag) == 0) continue;
    if (rail->btl == memory.rail) return rail;
    only = rail;
    ++able;
  }
  return able == 1 || memory.key_bytes == 0 ? only : nullptr;
}

/// Registers local memory where the rail needs that. @returns false when it needs it and refuses
bool register_local(Registration& registration, mca_bml_base_btl_t* rail, void* base,
                    std::uint64_t bytes, std::size_t threshold_bytes, std::uint32_t access) {
  if (registration.bml_btl != nullptr) pml->deregister(registration);
  registration.bml_btl = rail;
  if (rail->btl->btl_register_mem == nullptr || bytes <= threshold_bytes) return true;
  mca_bml_base_register_mem(rail, base, bytes, access, &registration.handle);
  return registration.handle != nullptr;
}

void on_write(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*,
              mca_btl_base_registration_handle_t*, void* bytes, void* request,
              int status) noexcept {
  const CallbackEntry entry;
  pml->write_finished(*static_cast<SendRequest*>(request), reinterpret_cast<std::uintptr_t>(bytes),
                      status == OMPI_SUCCESS);
}

void on_read(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*,
             mca_btl_base_registration_handle_t*, void* bytes, void* request, int status) noexcept {
  const CallbackEntry entry;
  pml->read_finished(*static_cast<ReceiveRequest*>(request),
                     reinterpret_cast<std::uintptr_t>(bytes), status == OMPI_SUCCESS);
}

void on_fragment(mca_btl_base_module_t*, mca_btl_base_endpoint_t*,
                 mca_btl_base_descriptor_t* descriptor, int) noexcept {
  const CallbackEntry entry;
  pml->fragment_finished(*static_cast<SendRequest*>(descriptor->des_cbdata));
}

/// Post DONE right behind the puts or gets of a rail that keeps order. @returns  false: it goes out when they have ended
bool post_done_behind(const PeerLink& link, mca_bml_base_btl_t& rail, const DoneHeader& done,
                      Behind behind) noexcept {
  const BtlCapability* capability = link.capability_of(*rail.btl);
  if (capability == nullptr || capability->send_behind == nullptr ||
      capability->chained_max_bytes < sizeof done)
    return false;
  return capability->send_behind(rail.btl, rail.btl_endpoint, tag_control, &done, sizeof done,
                                 behind) == OPAL_SUCCESS;
}

/// Outcome of posting the pieces of one transfer.
enum class Posted : std::uint8_t { everything, stalled, refused };

/// Post pieces until all are under way. @param post  (offset, bytes) -> Open MPI's code
template <class Post>
Posted post_pieces(Transfer& transfer, std::uint64_t total_bytes, std::uint64_t limit_bytes,
                   Post&& post) {
  transfer.posting = true;
  Posted result = Posted::everything;
  while (transfer.posted_bytes < total_bytes && !transfer.failed) {
    const std::uint64_t bytes = std::min(limit_bytes, total_bytes - transfer.posted_bytes);
    const std::uint64_t offset = transfer.posted_bytes;
    transfer.posted_bytes += bytes;  // before the call: it may end inside
    const int rc = post(offset, bytes);
    if (rc >= 0) continue;
    transfer.posted_bytes -= bytes;
    result = out_of_resources(rc) ? Posted::stalled : Posted::refused;
    break;
  }
  transfer.posting = false;
  return transfer.failed ? Posted::refused : result;
}

}  // namespace

/// Post the write of a send whose receiver has given an address, or go on posting it.
void Pml::start_write(SendRequest& request) {
  SendOp& op = request.op;
  PeerLink& to = *link(*op.peer);
  Transfer& transfer = request.transfer;
  const auto refused = [&](bool for_good) {
    if (for_good) {
      to.memory_access = false;
      tell_fallback(to, "A write");
    }
    transfer = {};
    protocol.write_refused(op);
  };
  void* const base = data_start(request);
  if (transfer.posted_bytes == 0) {
    mca_bml_base_btl_t* rail = to.memory_access && data_contiguous(request, to)
                                   ? find_rail(to, op.target, MCA_BTL_FLAGS_PUT)
                                   : nullptr;
    if (rail == nullptr || piece_bytes(rail->btl->btl_put_limit) < piece_min_bytes ||
        !is_aligned(op.target.address | reinterpret_cast<std::uintptr_t>(base), op.take_bytes,
                    rail->btl->btl_put_alignment) ||
        !register_local(request.registration, rail, base, op.length_bytes,
                        rail->btl->btl_put_local_registration_threshold,
                        MCA_BTL_REG_FLAG_LOCAL_WRITE)) {
      return refused(false);
    }
  }
  mca_bml_base_btl_t* rail = request.registration.bml_btl;
  auto* remote_key =
      op.target.key_bytes == 0
          ? nullptr
          : reinterpret_cast<mca_btl_base_registration_handle_t*>(op.target.key.data());
  const Posted posted =
      post_pieces(transfer, op.take_bytes, piece_bytes(rail->btl->btl_put_limit),
                  [&](std::uint64_t offset, std::uint64_t bytes) {
                    mca_btl_base_module_t* btl = rail->btl;
                    return btl->btl_put(btl, rail->btl_endpoint, static_cast<char*>(base) + offset,
                                        op.target.address + offset, request.registration.handle,
                                        remote_key, bytes, 0, MCA_BTL_NO_ORDER, on_write,
                                        reinterpret_cast<void*>(bytes), &request);
                  });
  if (posted == Posted::refused) {
    // Pieces under way still refer to the request; it is pushed when the last of them has ended.
    transfer.failed = true;
    if (transfer.finished_bytes == transfer.posted_bytes) refused(true);
    return;
  }
  if (transfer.finished_bytes == op.take_bytes) {
    protocol.write_done(op);
    return;
  }
  if (posted == Posted::stalled) {
    transfer.waiting = true;
    more_to_poll_ = true;
    stalled_sends_.push_back(&request);
    protocol.write_posted(op);
    return;
  }
  transfer.posting = true;
  const bool chained = post_done_behind(to, *rail, Protocol::done_behind(op), Behind::puts);
  transfer.posting = false;
  chained ? protocol.write_chained(op) : protocol.write_posted(op);
  settle_write(request);
}

/// Once nothing of a write is under way: tell the protocol how it went.
void Pml::settle_write(SendRequest& request) {
  Transfer& transfer = request.transfer;
  // One that waits for room is told about when posting goes on.
  if (transfer.posting || transfer.waiting || transfer.finished_bytes != transfer.posted_bytes)
    return;
  if (transfer.failed) {
    transfer = {};
    protocol.write_refused(request.op);
  } else if (transfer.finished_bytes == request.op.take_bytes) {
    protocol.write_done(request.op);
  }
}

void Pml::write_finished(SendRequest& request, std::uint64_t bytes, bool ok) {
  ++events;
  Transfer& transfer = request.transfer;
  transfer.finished_bytes += bytes;
  if (ok) {
    process_counters().put_bytes += bytes;
  } else {
    transfer.failed = true;
  }
  settle_write(request);
  run_actions();
}

/// Post the read of a receive that has matched an RTS, or go on posting it.
void Pml::start_read(ReceiveRequest& request) {
  ReceiveOp& op = request.op;
  PeerLink* reached = link(*op.peer);
  if (reached == nullptr) refuse("no way to answer it", {});
  PeerLink& from = *reached;
  Transfer& transfer = request.transfer;
  const auto refused = [&](bool for_good) {
    if (for_good) {
      from.memory_access = false;
      tell_fallback(from, "A read");
    }
    transfer = {};
    protocol.read_refused(op);
  };
  void* const base = data_start(request);
  if (transfer.posted_bytes == 0) {
    const bool possible =
        from.memory_access && op.source_memory.accessible && request.contiguous && from.plain_bytes;
    mca_bml_base_btl_t* rail =
        possible ? find_rail(from, op.source_memory, MCA_BTL_FLAGS_GET) : nullptr;
    if (rail == nullptr || piece_bytes(rail->btl->btl_get_limit) < piece_min_bytes ||
        !is_aligned(op.source_memory.address | reinterpret_cast<std::uintptr_t>(base),
                    op.take_bytes(), rail->btl->btl_get_alignment) ||
        !register_local(request.registration, rail, base, op.take_bytes(),
                        rail->btl->btl_get_local_registration_threshold,
                        MCA_BTL_REG_FLAG_LOCAL_WRITE)) {
      return refused(false);
    }
  }
  mca_bml_base_btl_t* rail = request.registration.bml_btl;
  auto* remote_key =
      op.source_memory.key_bytes == 0
          ? nullptr
          : reinterpret_cast<mca_btl_base_registration_handle_t*>(op.source_memory.key.data());
  const Posted posted = post_pieces(
      transfer, op.take_bytes(), piece_bytes(rail->btl->btl_get_limit),
      [&](std::uint64_t offset, std::uint64_t bytes) {
        mca_btl_base_module_t* btl = rail->btl;
        return btl->btl_get(btl, rail->btl_endpoint, static_cast<char*>(base) + offset,
                            op.source_memory.address + offset, request.registration.handle,
                            remote_key, bytes, 0, MCA_BTL_NO_ORDER, on_read,
                            reinterpret_cast<void*>(bytes), &request);
      });
  if (posted == Posted::refused) {
    transfer.failed = true;
    if (transfer.finished_bytes == transfer.posted_bytes) refused(true);
    return;
  }
  if (transfer.finished_bytes == op.take_bytes()) {
    protocol.read_done(op);
    return;
  }
  if (posted == Posted::stalled) {
    transfer.waiting = true;
    more_to_poll_ = true;
    stalled_receives_.push_back(&request);
    return;
  }
  transfer.posting = true;
  const bool chained = post_done_behind(from, *rail, Protocol::done_behind(op), Behind::gets);
  transfer.posting = false;
  if (chained) protocol.read_chained(op);
  settle_read(request);
}

/// Once nothing of a read is under way: tell the protocol how it went.
void Pml::settle_read(ReceiveRequest& request) {
  Transfer& transfer = request.transfer;
  if (transfer.posting || transfer.waiting || transfer.finished_bytes != transfer.posted_bytes)
    return;
  if (transfer.failed) {
    transfer = {};
    protocol.read_refused(request.op);
  } else if (transfer.finished_bytes == request.op.take_bytes()) {
    protocol.read_done(request.op);
  }
}

void Pml::read_finished(ReceiveRequest& request, std::uint64_t bytes, bool ok) {
  ++events;
  Transfer& transfer = request.transfer;
  transfer.finished_bytes += bytes;
  if (ok) {
    process_counters().get_bytes += bytes;
  } else {
    transfer.failed = true;
  }
  settle_read(request);
  run_actions();
}

/// Send one more fragment. @returns false when the BTL has no room
bool Pml::send_fragment(SendRequest& request) {
  SendOp& op = request.op;
  PeerLink& to = *link(*op.peer);
  mca_bml_base_btl_t* rail = mca_bml_base_btl_array_get_next(&to.endpoint->btl_send);
  const std::uint64_t offset = request.transfer.posted_bytes;
  std::size_t bytes = std::min<std::uint64_t>(op.take_bytes - offset, tunables.fragment_size);
  bytes = std::min<std::size_t>(bytes, rail->btl->btl_max_send_size - sizeof(FragHeader));
  opal_convertor_t* convertor = &request.base.req_base.req_convertor;
  std::size_t position = offset;
  opal_convertor_set_position(convertor, &position);
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_prepare_src(rail, convertor, MCA_BTL_NO_ORDER, sizeof(FragHeader), &bytes,
                           MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK,
                           &descriptor);
  if (descriptor == nullptr) return false;
  if (bytes == 0) {
    mca_bml_base_free(rail, descriptor);
    return false;
  }
  FragHeader header{};
  header.head = {kind_version(Kind::frag), 0, 0, 0, op.receive};
  header.offset_bytes = offset;
  std::memcpy(descriptor->des_segments[0].seg_addr.pval, &header, sizeof header);
  descriptor->des_cbfunc = on_fragment;
  descriptor->des_cbdata = &request;
  request.transfer.posted_bytes += bytes;  // before the call: the callback may run inside
  ++request.fragments_out;
  if (mca_bml_base_send(rail, descriptor, tag_control) >= 0) {
    process_counters().pipelined_bytes += bytes;
    return true;
  }
  request.transfer.posted_bytes -= bytes;
  --request.fragments_out;
  mca_bml_base_free(rail, descriptor);
  return false;
}

/// Keep as many fragments under way as the tunables allow.
void Pml::push_fragments(SendRequest& request) {
  Transfer& transfer = request.transfer;
  if (transfer.posting) return;
  transfer.posting = true;
  bool room = true;
  while (room && transfer.posted_bytes < request.op.take_bytes &&
         request.fragments_out < tunables.fragment_depth) {
    room = send_fragment(request);
  }
  transfer.posting = false;
  if (transfer.posted_bytes == request.op.take_bytes && request.fragments_out == 0) {
    protocol.push_done(request.op);
    return;
  }
  // With fragments under way the next completion goes on; without any, progress has to.
  if (!room && request.fragments_out == 0 && !transfer.waiting) {
    transfer.waiting = true;
    more_to_poll_ = true;
    stalled_sends_.push_back(&request);
  }
}

void Pml::fragment_finished(SendRequest& request) {
  ++events;
  --request.fragments_out;
  push_fragments(request);
  run_actions();
}

}  // namespace overlap::speculative
