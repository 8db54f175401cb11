// What this process keeps of a peer: its two connections, its rings, and what waits for it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "opal/fabric/fabric.hpp"

#include "protocol/connect.hpp"
#include "protocol/ending.hpp"
#include "protocol/introduction.hpp"
#include "protocol/receive_ring.hpp"
#include "protocol/ring_offer.hpp"
#include "protocol/send_queue.hpp"
#include "protocol/send_ring.hpp"
#include "protocol/stream.hpp"
#include "protocol/wake_ups.hpp"

#include "btl_ring_fragments.hpp"
#include "btl_ring_registration.hpp"
#include "completions.hpp"
#include "lines.hpp"

namespace overlap::ring {

using Handle = mca_btl_base_endpoint_t;
struct Endpoint;

/// A put, get, atomic or chained message that waits for its connection or for room, or is under
/// way.
struct BulkOperation {
  Endpoint* endpoint = nullptr;
  fabric::WorkRequest request;
  mca_btl_base_rdma_completion_fn_t done = nullptr;
  void* local_address = nullptr;
  mca_btl_base_registration_handle_t* local_handle = nullptr;
  void* context = nullptr;
  void* data = nullptr;
  CachedRegistration* target =
      nullptr;                     ///< of memory that is ours too, held while the operation lasts
  std::int32_t send_buffer = -1;   ///< chained message: index of the buffer that it is sent from
  std::int32_t scratch = -1;       ///< atomic without result: index of the eight bytes that take it
  std::vector<std::byte> message;  ///< chained message that has no buffer yet
};

/// Attempts to make one connection that have failed since it was last idle or established.
struct ConnectTrouble {
  std::uint32_t failures = 0;
  std::chrono::steady_clock::time_point since;  ///< the first
  std::chrono::steady_clock::time_point told;   ///< the user, the last time
  std::chrono::steady_clock::time_point due;    ///< of the next attempt
};

/// One of a peer's two queue pairs, made on first use (P2.7). Large transfers have their own, so
/// that a small message never waits behind one, nor behind a fence.
struct Connection {
  Connection(Endpoint& of, Purpose use, std::uint32_t entries)
      : endpoint(of), purpose(use), account(entries) {}

  Endpoint& endpoint;
  Purpose purpose;
  ConnectState state = ConnectState::idle;
  std::uint32_t attempt = 0;      ///< number of our last request
  std::uint32_t newest_seen = 0;  ///< number of the peer's newest request that has come
  ConnectTrouble trouble;
  std::uint32_t refusals = 0;  ///< of queue pairs, by our device, in a row
  SendQueueAccount account;
  std::uint64_t posted = 0;  ///< requests in all
  QueuePairPointer queue_pair;
  QueuePairPointer mirror;  ///< of a connection to ourselves: the other end, which only receives

  /// Of `posted`, how many have ended.
  [[nodiscard]] std::uint64_t ended() const noexcept { return posted - account.used(); }
  [[nodiscard]] bool established() const noexcept { return state == ConnectState::established; }
  [[nodiscard]] bool under_way() const noexcept {
    return state == ConnectState::connecting || state == ConnectState::accepting;
  }
};

/// The sender's half of a ring: buffers, and a work request for each that is made once (P2.1).
struct OutgoingRing {
  std::unique_ptr<std::byte[], void (*)(std::byte*)> memory;
  fabric::MemoryRegion region;
  SendRing ring;
  std::vector<fabric::WorkRequest> requests;  // [slots]
  std::uint64_t last_request =
      0;  ///< when retired: Connection::posted up to which the device may read it
};

/// The receiver's half, in the node's shared memory.
struct IncomingRing {
  std::uint32_t area;  ///< of the segment
  fabric::MemoryRegion region;
  ReceiveRing ring;
};

/// A message of the send/receive channel that came before its turn, still in its receive buffer.
struct HeldMessage {
  std::uint32_t buffer;
  MessageHeader header;
};

/// Of a clock that never goes back.
[[nodiscard]] inline std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
}

/// A process's name as one number, for messages and tables.
[[nodiscard]] inline std::uint64_t number_from(const opal_process_name_t& name) noexcept {
  return std::uint64_t{name.jobid} << 32U | name.vpid;
}
[[nodiscard]] inline opal_process_name_t name_from(std::uint64_t number) noexcept {
  opal_process_name_t name{};
  name.jobid = static_cast<opal_jobid_t>(number >> 32U);
  name.vpid = static_cast<opal_vpid_t>(number);
  return name;
}

/// Where a peer is reached, and the secret that it wants to see in a request.
struct PeerAddress {
  fabric::Address address;
  Secret secret;
};

/// Everything that a peer has which this process talks to: made on first use.
struct Endpoint {
  Endpoint(Handle& peer, opal_proc_t& proc, std::uint32_t number, std::uint32_t entries)
      : handle(peer),
        proc(proc),
        number(number),
        messages(*this, Purpose::messages, entries),
        bulk(*this, Purpose::bulk, entries) {}

  Handle& handle;  ///< Open MPI's name for it
  opal_proc_t& proc;
  std::uint32_t number;  ///< of the handle
  PeerAddress where;
  Connection messages;
  Connection bulk;
  Stream stream;
  std::unique_ptr<OutgoingRing> out;
  std::deque<std::unique_ptr<OutgoingRing>>
      retired;  ///< ended; their last writes may still be under way
  std::unique_ptr<IncomingRing> in;
  std::deque<Fragment*> waiting;  ///< for the connection or for room, in the order of sending
  std::deque<BulkOperation*> bulk_waiting;
  std::deque<HeldMessage> held;
  RingOffer offer;           ///< of `in`
  bool decline_due = false;  ///< the peer has still to learn that we do not take its ring
  Ending ending;
  bool sleeps = false;  ///< a thread of the peer may sleep on what its adapter reports
  WakeUp wake;
  bool listed = false;  ///< in BusyEndpoints
};

}  // namespace overlap::ring

/// A peer as Open MPI knows it. Most are never talked to: nothing else is kept of those.
struct mca_btl_base_endpoint_t {
  mca_btl_base_endpoint_t(opal_proc_t& proc, std::uint32_t number) noexcept
      : proc_(&proc), number_(number) {}

  [[nodiscard]] opal_proc_t* key() const noexcept { return proc_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// @returns  nullptr before its first use
  [[nodiscard]] overlap::ring::Endpoint* endpoint() const noexcept { return endpoint_.get(); }
  overlap::ring::Endpoint& set_endpoint(std::unique_ptr<overlap::ring::Endpoint> made) noexcept {
    endpoint_ = std::move(made);
    return *endpoint_;
  }

 private:
  opal_proc_t* proc_;
  std::uint32_t number_;
  std::unique_ptr<overlap::ring::Endpoint> endpoint_;
};
static_assert(sizeof(mca_btl_base_endpoint_t) == 24);  // peer_table_test counts with that
