// The process's one transport: what it owns, and the order in which it is worked on.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <chrono>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "opal/fabric/fabric.hpp"
#include "opal/mca/common/overlap/capability.hpp"
#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/tunables.hpp"

#include "protocol/connect.hpp"
#include "protocol/introduction.hpp"
#include "protocol/peer_table.hpp"
#include "protocol/polling_set.hpp"
#include "protocol/receive_ring.hpp"
#include "protocol/ring_policy.hpp"
#include "protocol/send_queue.hpp"
#include "protocol/send_ring.hpp"
#include "protocol/stream.hpp"
#include "protocol/turn_queue.hpp"
#include "protocol/wire.hpp"

#include "btl_ring_endpoint.hpp"
#include "btl_ring_fault.hpp"
#include "btl_ring_fragments.hpp"
#include "btl_ring_frequent.hpp"
#include "btl_ring_module.hpp"
#include "btl_ring_pieces.hpp"
#include "btl_ring_registration.hpp"
#include "btl_ring_tunables.hpp"
#include "buffer_pool.hpp"
#include "completions.hpp"
#include "lines.hpp"
#include "receive_buffers.hpp"
#include "registered_memory.hpp"
#include "segment.hpp"
#include "work_id.hpp"

namespace overlap::ring {

using Sealed = SendRing::Sealed;
using Arrival = ReceiveRing::Arrival;

/// What two processes must have in common to reach each other.
struct Network {
  fabric_choice fabric = fabric_choice::auto_;
  std::uint64_t domain = 0;  ///< soft: of which device process

  friend bool operator==(const Network&, const Network&) = default;
};

/// Everything this component keeps per process.
///
/// @thread  Guard held
class Transport {
 public:
  /// @throws fabric::Error, std::runtime_error  one sentence for users
  Transport(std::unique_ptr<fabric::Device> device, const Network& network);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // Peers (btl_ring_peers.cpp)
  [[nodiscard]] Handle* handle(opal_proc_t& proc);
  /// What is needed to talk to a peer, made on first use.
  [[nodiscard]] Endpoint& endpoint(Handle& handle) {
    return handle.endpoint() != nullptr ? *handle.endpoint() : make_endpoint(handle);
  }
  void drop(std::span<Handle* const> peers) noexcept;  ///< entries may be null
  /// A process that was given up may be asked for again (MPI_Comm_connect).
  void welcome(const opal_proc_t& proc) noexcept { departed_.erase(name_of(proc)); }
  [[nodiscard]] std::vector<std::byte> address_bytes() const;

  // Connections (btl_ring_connect.cpp)
  void want(Connection& connection);
  int poll_events();
  void report_lost(Endpoint& endpoint, const std::string& why) noexcept;
  void part(std::span<Endpoint* const> peers) noexcept;

  // Messages out (btl_ring_send.cpp)
  /// @returns  false: no connection yet, or no room; nothing has changed
  [[nodiscard]] bool try_send(Endpoint& endpoint, mca_btl_base_tag_t tag, const Pieces& pieces);
  [[nodiscard]] bool try_send_in_place(Fragment& fragment);
  void flush_waiting(Endpoint& endpoint);
  void queue(Fragment& fragment);
  [[nodiscard]] bool try_send_control(Endpoint& endpoint, const ControlBody& body);
  void mark_busy(Endpoint& endpoint) {
    if (!endpoint.listed) {
      endpoint.listed = true;
      busy_.push(&endpoint);
    }
  }
  void finish(Fragment& fragment, int status) noexcept;
  /// The same at the next progress.
  void finish_later(Fragment& fragment) { done_.push(&fragment); }

  [[nodiscard]] FragmentPool& fragments() noexcept { return fragments_; }

  // Messages in (btl_ring_receive.cpp)
  int progress();

  // Rings and the polling set (btl_ring_rings.cpp)
  void note_traffic(Endpoint& endpoint, Channel channel);
  void handle_control(Endpoint& endpoint, const std::byte* payload, std::uint32_t bytes);
  void end_incoming(Endpoint& endpoint) noexcept;
  void close_incoming(Endpoint& endpoint) noexcept;
  void end_outgoing(Endpoint& endpoint) noexcept;
  void forget_retired(Endpoint& endpoint, bool all) noexcept;

  // One-sided (btl_ring_rdma.cpp)
  [[nodiscard]] int start(BulkOperation* operation);
  [[nodiscard]] int send_behind(Endpoint& endpoint, mca_btl_base_tag_t tag,
                                std::span<const std::byte> bytes, Behind behind);
  void bulk_completed(BulkOperation& operation, const fabric::Completion& completion);
  void flush_bulk(Endpoint& endpoint);
  void fail_bulk(Endpoint& endpoint) noexcept;
  [[nodiscard]] RegistrationCache& registrations() noexcept { return registrations_; }

  [[nodiscard]] FrequentBuffers& frequent() noexcept { return frequent_; }

  [[nodiscard]] fabric::Device& device() noexcept { return *device_; }
  [[nodiscard]] const fabric::Capabilities& capabilities() const noexcept {
    return device_->capabilities();
  }
  [[nodiscard]] std::uint32_t slot_payload_bytes() const noexcept {
    return payload_max_bytes(slot_bytes_);
  }
  [[nodiscard]] std::uint32_t channel_payload_bytes() const noexcept {
    return channel_bytes_ - static_cast<std::uint32_t>(sizeof(MessageHeader));
  }
  void set_error_callback(mca_btl_base_module_error_cb_fn_t callback) noexcept {
    error_callback_ = callback;
  }

 private:
  [[nodiscard]] std::optional<PeerAddress> find_address(opal_proc_t& proc) const;
  [[nodiscard]] Endpoint& make_endpoint(Handle& handle);
  void release_endpoint(Endpoint& endpoint) noexcept;
  [[nodiscard]] static std::uint64_t name_of(const opal_proc_t& proc) noexcept {
    return std::uint64_t{proc.proc_name.jobid} << 32U | proc.proc_name.vpid;
  }
  // connections
  void connection_step(Connection& connection, ConnectEvent event, std::uint64_t request,
                       const std::string& why);
  void act(Connection& connection, ConnectAction action, std::uint64_t request,
           const std::string& why);
  void made(Connection& connection);
  [[nodiscard]] QueuePairPointer make_queue_pair(Connection& connection);
  [[nodiscard]] bool try_open_queue_pair(Connection& connection, std::uint64_t request);
  void drop_queue_pairs(Connection& connection) noexcept;
  void ask_for(Connection& connection);
  void set_clock(Connection& connection, const std::string& why);
  void retry_due(std::chrono::steady_clock::time_point now);
  void accept_own(Connection& connection, std::uint64_t request);
  void on_request(const fabric::Event& event);
  [[nodiscard]] Endpoint* endpoint_of(const opal_process_name_t& name);
  void take_last_messages(Endpoint& endpoint);
  [[nodiscard]] Connection* connection_of(const fabric::QueuePair* queue_pair) noexcept;
  // sending
  void post_ring(Endpoint& endpoint, mca_btl_base_tag_t tag, const Pieces& pieces);
  [[nodiscard]] bool try_post_channel(Endpoint& endpoint, mca_btl_base_tag_t tag,
                                      const Pieces& pieces);
  [[nodiscard]] bool can_send(const Endpoint& endpoint) const noexcept {
    return endpoint.messages.established() && !endpoint.lost;
  }
  void post(Connection& connection, const fabric::WorkRequest& request);
  // receiving
  int poll_rings();
  int poll_completions();
  void on_completion(const fabric::Completion& completion);
  void on_failure(const fabric::Completion& completion);
  void on_channel_message(Endpoint& endpoint, std::uint32_t buffer, std::uint32_t bytes);
  void accept_message(Endpoint& endpoint, const MessageHeader& header, Channel channel);
  void deliver(Endpoint& endpoint, const MessageHeader& header, const std::byte* payload);
  int take_from_ring(Endpoint& endpoint);
  void take_held(Endpoint& endpoint);
  int serve_busy();
  int serve_done();
  void serve(Endpoint& endpoint);
  // rings
  [[nodiscard]] bool open_incoming(Endpoint& endpoint);
  [[nodiscard]] bool may_open_ring(Endpoint& endpoint) const;
  void open_outgoing(Endpoint& endpoint, const ControlBody& body);
  void decline(Endpoint& endpoint);
  // one-sided
  [[nodiscard]] bool try_post_bulk(BulkOperation& operation);

  std::unique_ptr<fabric::Device> device_;
  Network network_;
  Secret secret_;
  std::uint32_t slot_bytes_;
  std::uint32_t channel_bytes_;
  // What uses another one stands behind it, and goes before it.
  RegisteredMemory memory_;
  std::unique_ptr<Segment> segment_;
  Completions completions_;
  ReceiveBuffers receives_;
  BufferPool send_buffers_;  // [channel_bytes]
  BufferPool scratch_;       // results of atomics that nobody wants
  RegistrationCache registrations_;
  FrequentBuffers frequent_;
  mca_btl_base_module_error_cb_fn_t error_callback_ = nullptr;
  bool finalizing_ = false;

  PeerTable<Handle> peers_;
  std::unordered_map<std::uint32_t, Connection*> by_queue_pair_;  // [queue pair number]
  std::unordered_set<std::uint64_t>
      departed_;                          // names of processes that were given up: not connected to
  TurnQueue<Endpoint*> busy_;             // something waits: fragments, operations, control
  std::uint32_t connecting_ = 0;          // connections under way: look for events often
  std::vector<Connection*> backing_off_;  // attempts that are due some time
  std::uint32_t looks_ = 0;               ///< calls of progress(), wraps
  std::uint32_t calls_to_events_ = 0;
  std::chrono::steady_clock::time_point last_events_;

  FragmentPool fragments_;
  TurnQueue<Fragment*> done_;  // sent, callback due

  PollingSet polling_;
  std::uint32_t outgoing_rings_ = 0;
};

extern Transport* transport;  ///< from component init to module finalize

}  // namespace overlap::ring
