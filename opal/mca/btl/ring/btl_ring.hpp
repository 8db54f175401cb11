// What the sources of the glue share: the process's one transport, its peers, fragments and
// one-sided operations.
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

#include "protocol/completion_room.hpp"
#include "protocol/connect.hpp"
#include "protocol/introduction.hpp"
#include "protocol/peer_table.hpp"
#include "protocol/polling_set.hpp"
#include "protocol/receive_pool.hpp"
#include "protocol/receive_ring.hpp"
#include "protocol/ring_policy.hpp"
#include "protocol/send_queue.hpp"
#include "protocol/send_ring.hpp"
#include "protocol/stream.hpp"
#include "protocol/turn_queue.hpp"
#include "protocol/wire.hpp"

#include "btl_ring_fragments.hpp"
#include "btl_ring_frequent.hpp"
#include "btl_ring_registration.hpp"
#include "segment.hpp"

namespace overlap::ring {

#define OVERLAP_TUNABLES_FILE "opal/mca/btl/ring/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

extern Tunables tunables;

using Handle = mca_btl_base_endpoint_t;
struct Endpoint;

struct Counters {
  std::uint64_t ring_sent = 0;
  std::uint64_t ring_received = 0;
  std::uint64_t channel_sent = 0;
  std::uint64_t channel_received = 0;
  std::uint64_t ring_full = 0;
  std::uint64_t explicit_messages = 0;
  std::uint64_t held_messages = 0;
  std::uint64_t rings_opened = 0;
  std::uint64_t rings_closed = 0;
  std::uint64_t rings_declined = 0;
  std::uint64_t frequent_buffers = 0;
  std::uint64_t in_place_sent = 0;
  std::uint64_t registrations = 0;
  std::uint64_t table_stops = 0;
  std::uint64_t chained_sent = 0;
  std::uint64_t put_bytes = 0;
  std::uint64_t get_bytes = 0;
  std::uint64_t atomics = 0;
  std::uint64_t connections = 0;
  std::uint64_t memory_max_bytes = 0;
};
[[nodiscard]] Counters& counters() noexcept;
[[nodiscard]] std::span<const CounterRow> counter_rows();

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

/// A completion queue, and how much of it is promised to queue pairs.
struct CompletionGroup {
  std::unique_ptr<fabric::CompletionQueue> queue;
  CompletionRoom room;
};

/// Gives the room in its completion queue back behind a queue pair.
struct QueuePairDeleter {
  CompletionGroup* group = nullptr;
  std::uint32_t entries = 0;

  void operator()(fabric::QueuePair* queue_pair) const noexcept {
    delete queue_pair;
    group->room.give_back(entries);
  }
};
using QueuePairPointer = std::unique_ptr<fabric::QueuePair, QueuePairDeleter>;

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

using Sealed = SendRing::Sealed;
using Arrival = ReceiveRing::Arrival;

/// Receive buffers of the channel that were added together, and so registered.
struct ReceiveChunk {
  std::uint32_t end;  ///< index behind the last one
  fabric::MemoryRegion region;
};

/// A message of the send/receive channel that came before its turn, still in its receive buffer.
struct HeldMessage {
  std::uint32_t buffer;
  MessageHeader header;
};

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
  bool ring_refused = false;   ///< by us: its writes need not arrive in the order a ring needs
  bool ring_declined = false;  ///< by the peer: our half goes, another is offered after a review
  bool decline_due = false;    ///< the peer has still to learn that we do not take its ring
  bool said_goodbye = false;   ///< the end of its connections is no fault
  bool parting = false;        ///< we are ending the connections ourselves
  bool lost = false;           ///< no more use; its connections have failed
  bool reported = false;       ///< the upper layer knows
  bool listed = false;         ///< in Transport::busy_
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

namespace overlap::ring {

struct RingModule {
  mca_btl_base_module_t base;  // first: Open MPI's view
};
extern RingModule ring_module;

/// Bytes of a message in up to two pieces: the upper layer's header, then data.
struct Pieces {
  const void* first;
  std::uint32_t first_bytes;
  const void* second;  ///< nullptr: none
  std::uint32_t second_bytes;
  opal_convertor_t* convertor;  ///< not nullptr: packs second_bytes instead of `second`

  [[nodiscard]] std::uint32_t bytes() const noexcept { return first_bytes + second_bytes; }
  void copy_to(std::byte* out) const noexcept;
};
[[nodiscard]] Pieces pieces_of(const Fragment& fragment) noexcept;

/// What two processes must have in common to reach each other.
struct Network {
  fabric_choice fabric = fabric_choice::auto_;
  std::uint64_t domain = 0;  ///< soft: of which device process

  friend bool operator==(const Network&, const Network&) = default;
};

/// What a completion belongs to: the low three bits of a work request's id.
enum class IdKind : std::uint8_t { ring_write, channel_send, in_place, bulk, receive };

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
  [[nodiscard]] RegistrationCache& registrations() noexcept { return *registrations_; }

  [[nodiscard]] FrequentBuffers& frequent() noexcept { return *frequent_; }

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
  void count_memory(std::int64_t bytes) noexcept;

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
  [[nodiscard]] CompletionGroup& take_completion_room();
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
  [[nodiscard]] std::byte* send_buffer(std::uint32_t index) noexcept {
    return send_memory_.get() + std::size_t{index} * channel_bytes_;
  }
  [[nodiscard]] bool make_send_buffers();
  void post(Connection& connection, const fabric::WorkRequest& request);
  // receiving
  int poll_rings();
  int poll_completions();
  [[nodiscard]] std::size_t fill_batch() noexcept;
  void on_completion(const fabric::Completion& completion);
  void on_failure(const fabric::Completion& completion);
  void on_channel_message(Endpoint& endpoint, std::uint32_t buffer, std::uint32_t bytes);
  void accept_message(Endpoint& endpoint, const MessageHeader& header, Channel channel);
  void deliver(Endpoint& endpoint, const MessageHeader& header, const std::byte* payload);
  int take_from_ring(Endpoint& endpoint);
  void take_held(Endpoint& endpoint);
  void repost(std::uint32_t buffer);
  void grow_receive_buffers();
  [[nodiscard]] bool try_add_receive_buffers(std::uint32_t count);
  [[nodiscard]] std::uint32_t receive_buffers_max() const noexcept {
    // A completion queue reserves an entry for each, beside those of one queue pair's requests.
    const std::uint32_t entries = capabilities().completion_queue_max;
    const std::uint32_t room = entries > tunables.send_queue ? entries - tunables.send_queue : 1;
    return std::min({std::max(tunables.receive_buffers, tunables.receive_buffers_max),
                     std::max(capabilities().receive_queue_max, tunables.receive_buffers), room});
  }
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
  void make_scratch();

  std::unique_ptr<fabric::Device> device_;
  Network network_;
  Secret secret_;
  std::vector<std::unique_ptr<CompletionGroup>> completions_;
  std::size_t next_completions_ = 0;  ///< index of the one that is polled first
  std::unique_ptr<fabric::ReceiveQueue> receives_;
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<RegistrationCache> registrations_;
  std::unique_ptr<FrequentBuffers> frequent_;
  std::uint32_t slot_bytes_;
  std::uint32_t channel_bytes_;
  mca_btl_base_module_error_cb_fn_t error_callback_ = nullptr;
  bool finalizing_ = false;

  PeerTable<Handle> peers_;
  std::unordered_map<std::uint32_t, Connection*> by_queue_pair_;  // [queue pair number]
  std::unordered_set<std::uint64_t>
      departed_;                          // names of processes that were given up: not connected to
  TurnQueue<Endpoint*> busy_;             // something waits: fragments, operations, control
  std::uint32_t connecting_ = 0;          // connections under way: look for events often
  std::vector<Connection*> backing_off_;  // attempts that are due some time
  std::array<fabric::Completion, 16> batch_;  // taken from the completion queue
  std::size_t batch_next_ = 0;
  std::size_t batch_count_ = 0;
  std::uint32_t looks_ = 0;  ///< calls of progress(), wraps
  std::uint32_t calls_to_events_ = 0;
  std::chrono::steady_clock::time_point last_events_;

  std::unique_ptr<std::byte[], void (*)(std::byte*)>
      send_memory_;  // [send_buffers][channel_bytes_]
  fabric::MemoryRegion send_region_;
  std::vector<std::uint32_t> free_send_buffers_;
  ReceivePool receive_pool_;
  std::vector<ReceiveChunk> receive_chunks_;  // in the order of their buffers
  std::unique_ptr<std::byte[], void (*)(std::byte*)>
      scratch_;  // results of atomics that nobody wants
  fabric::MemoryRegion scratch_region_;
  std::vector<std::uint32_t> free_scratch_;

  FragmentPool fragments_;
  TurnQueue<Fragment*> done_;  // sent, callback due

  PollingSet polling_;
  std::uint32_t outgoing_rings_ = 0;
  std::int64_t memory_bytes_ = 0;
};

extern Transport* transport;  ///< from component init to module finalize

/// Entry into the transport by any caller. With one thread, or below a PML that locks, it costs one
/// test.
class Guard {
 public:
  Guard() noexcept : locked_(opal_using_threads()) {
    if (locked_) mutex().lock();
  }
  ~Guard() {
    if (locked_) mutex().unlock();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  /// Recursive: receive callbacks of the upper layer send.
  static std::recursive_mutex& mutex() noexcept;
  bool locked_;
};

// What goes wrong (btl_ring_fault.cpp). Each says it once, in words for users.
void tell_lost(const Endpoint& endpoint, const std::string& why) noexcept;
/// @param seconds  since the first attempt has failed
void tell_connecting(const Endpoint& endpoint, const std::string& why,
                     std::int64_t seconds) noexcept;
void tell_registration_refused(std::size_t bytes) noexcept;
void tell_no_room(std::size_t bytes) noexcept;
[[noreturn]] void refuse_registration(const char* what, std::size_t bytes) noexcept;
[[noreturn]] void refuse_message(const Endpoint& endpoint, const char* fault) noexcept;
/// What was thrown where nobody can be told: in the catch clause.
[[noreturn]] void refuse_to_go_on() noexcept;

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

[[nodiscard]] constexpr std::uint64_t make_id(IdKind kind, const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer) | static_cast<std::uint64_t>(kind);
}
[[nodiscard]] constexpr std::uint64_t make_id(IdKind kind, std::uint32_t index) noexcept {
  return std::uint64_t{index} << 3U | static_cast<std::uint64_t>(kind);
}
[[nodiscard]] constexpr IdKind kind_of_id(std::uint64_t id) noexcept {
  return static_cast<IdKind>(id & 7U);
}
template <class Object>
[[nodiscard]] Object& object_of_id(std::uint64_t id) noexcept {
  return *reinterpret_cast<Object*>(id & ~std::uint64_t{7});
}
[[nodiscard]] constexpr std::uint32_t index_of_id(std::uint64_t id) noexcept {
  return static_cast<std::uint32_t>(id >> 3U);
}

/// Whole cache lines, zeroed; for memory that a device writes or reads.
[[nodiscard]] std::unique_ptr<std::byte[], void (*)(std::byte*)> allocate_lines(std::size_t bytes);

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
int send_behind(mca_btl_base_module_t* btl, Handle* endpoint, std::uint8_t tag, const void* bytes,
                std::size_t length, Behind behind) noexcept;
inline constexpr std::size_t chained_max_bytes = 256;

}  // namespace overlap::ring
