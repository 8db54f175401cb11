// The RDMA interface that btl/ring is written against: what an MPI transport needs of a network, in
// the words of verbs.
//
// Providers: verbs/ (libibverbs and librdmacm), soft/ (a software RDMA device with a modelled
// wire). All keep the rules below; the contract test (contract_*test.cpp) holds each of them to the
// same cases. What some devices can do besides is in management_queue.hpp.
//
// Rules
//   Order       Work requests of one queue pair are executed in the order of posting, and a write's
//               bytes arrive before those of the next. Within one write the last byte arrives last
//               where QueuePair::write_order() says so.
//   Fence       A work request with `fenced` starts after every earlier read and atomic of its
//               queue pair has ended.
//   Signal      Only `signalled` work requests make a completion, in order; each also stands for
//               all unsignalled ones before it. A work request that fails makes one in any case,
//               and so do all that are posted behind it (flushed).
//   Queue       The poster counts: not more than send_queue_entries requests may be without
//               completion (or without a later one's). A provider that notices says
//               retry_queue_full; a real adapter may just lose them.
//   Completions The poster counts them, too: a completion queue must have an entry for every work
//               request without a polled completion, signalled or not, as each is reported when its
//               queue pair fails, and for every receive entry that may be reported through it. A
//               queue that overflows fails all its queue pairs (peer_lost) and loses entries.
//   Receive     Sends and writes with immediate take one entry of the receive queue of their queue
//               pair, in order. When there is none, the sender tries again (receiver not ready),
//               for ever by default.
//   Failure     A queue pair whose peer is gone reports Event::peer_lost once, with the reason in
//               words, and flushes its requests.
//   Teardown    When a queue pair has been destroyed, every signalled request of it stands in the
//               completion queue, exactly once: with its outcome, or flushed. Each receive entry
//               that an unfinished message had taken comes back flushed. Nothing comes later.
//   Arrivals    A solicited message, a work request that fails, or an event of a connection makes
//               the device's descriptor readable when the device was armed before it came. That
//               disarms it, for messages and requests; events may make it readable again. What came
//               before makes no difference: arm, then poll once more, then sleep. What comes while
//               the device is being armed may be polled and still wake. Soft-RoCE (rxe) leaves
//               failures out: who waits for one naps, or is told by the connection's event.
//   Threads     One thread at a time calls into a Device and everything made from it. Any thread
//               may sleep on the descriptor.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace overlap::fabric {

/// Outcome of a call on the data path. On anything but `done` nothing has changed.
enum class Status : std::uint8_t {
  done,
  retry_queue_full,  ///< the send or receive queue has no free entry
  bad_argument,      ///< a limit of Capabilities or a state of the queue pair was ignored
  refused,           ///< the system refused a registration; errno tells why
  broken,            ///< the queue pair or the device has failed
};

/// Failure of a call that makes something. what() is one sentence for users: what failed, why, what
/// to change.
class Error : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t { no_device, no_permission, memory_limit, bad_option, system };
  Error(Kind kind, const std::string& text) : std::runtime_error(text), kind(kind) {}
  Kind kind;
};

/// What may be done with registered memory. Local reads always may.
namespace access {
inline constexpr unsigned local_write = 1;
inline constexpr unsigned remote_read = 2;
inline constexpr unsigned remote_write = 4;
inline constexpr unsigned remote_atomic = 8;
inline constexpr unsigned any = 15;
}  // namespace access

/// Where registered memory is shared from, when it is a mapping of a file in memory; a hint that
/// only some providers use.
struct Backing {
  int descriptor = -1;
  std::uint64_t offset_bytes = 0;
};

struct MemoryRegion {
  void* address = nullptr;
  std::size_t bytes = 0;
  std::uint32_t local_key = 0;
  std::uint32_t remote_key = 0;
  void* provider = nullptr;  ///< the provider's own; nullptr: not registered
};

struct Capabilities {
  std::uint32_t inline_max_bytes = 0;      ///< of a queue pair as it will be made
  std::uint32_t gather_max = 3;            ///< entries of WorkRequest::gather that may be used
  std::uint64_t message_max_bytes = 0;     ///< of one work request
  std::uint32_t send_queue_max = 0;        ///< entries
  std::uint32_t receive_queue_max = 0;     ///< entries
  std::uint32_t completion_queue_max = 0;  ///< entries
  bool atomics = false;                    ///< fetch_add and compare_swap on 8 bytes
  bool atomics_global = false;             ///< atomic against the processor's own accesses too
  bool receive_not_ready = false;  ///< a missing receive entry delays the sender; otherwise it
                                   ///< breaks the queue pair (iWARP)
  bool management_queues = false;  ///< see management_queue.hpp
  std::uint32_t management_queue_max = 0;  ///< entries
  bool fork_safe = true;  ///< a forked child leaves the registered memory of its parent alone
  std::uint32_t packet_max_bytes = 0;    ///< that the port carries; 0: there are no packets
  std::uint32_t bandwidth_mbytes_s = 0;  ///< for ranking
  std::uint32_t latency_us = 0;          ///< for ranking
  std::string name;                      ///< device and port, for messages
};

enum class Opcode : std::uint8_t {
  send,
  send_with_immediate,
  write,
  write_with_immediate,
  read,
  fetch_add,     ///< 8 bytes, aligned; the old value goes to gather[0]
  compare_swap,  ///< the same
  receive,       ///< in completions only
  wait,          ///< in completions of management queues only
};

/// One piece of local memory (ibv_sge).
struct Gather {
  const void* address = nullptr;  ///< written to by read and atomics
  std::uint32_t bytes = 0;
  std::uint32_t local_key = 0;  ///< not looked at for inline data
};

inline constexpr std::size_t gather_limit = 3;  // header, payload, tail flag (P3.2)

/// One entry of a send queue (ibv_send_wr).
struct WorkRequest {
  std::uint64_t id = 0;  ///< comes back in the completion; several requests may have the same
  Opcode opcode = Opcode::send;
  std::uint8_t gather_count = 0;
  bool signalled = false;
  bool fenced = false;
  bool inline_data =
      false;  ///< the data is taken before post() returns; at most Capabilities::inline_max_bytes
  bool solicited = false;  ///< send, send_with_immediate: wakes who sleeps at the other side
  std::uint32_t immediate = 0;
  std::array<Gather, gather_limit> gather{};
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;
  std::uint64_t operand = 0;  ///< fetch_add: what to add; compare_swap: what to store
  std::uint64_t compare = 0;
};

/// Why a work request ended (ibv_wc_status).
enum class CompletionStatus : std::uint8_t {
  success,
  length_error,         ///< the receive entry was too small
  protection_error,     ///< a local key does not cover the bytes
  remote_access_error,  ///< the remote key does not cover the bytes or does not allow it
  remote_error,         ///< the other side failed
  retry_exceeded,       ///< no answer from the other side
  receive_not_ready_exceeded,
  flushed,  ///< an earlier one failed, or the queue pair was closed
  other_error,
};

/// In words, for messages.
[[nodiscard]] const char* text(CompletionStatus status) noexcept;

/// One entry of a completion queue (ibv_wc).
struct Completion {
  std::uint64_t id = 0;  ///< of the work request, or of the receive entry
  CompletionStatus status = CompletionStatus::success;
  Opcode opcode = Opcode::send;  ///< valid on success
  bool has_immediate = false;
  std::uint32_t bytes = 0;  ///< receive: of the message
  std::uint32_t immediate = 0;
  std::uint32_t queue_pair_number = 0;  ///< the local queue pair
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  /// Take what has completed. @returns  entries filled, 0 for none  @errors none: a failed device
  /// gives flushed completions
  [[nodiscard]] virtual std::size_t poll(std::span<Completion> out) noexcept = 0;
};

/// Buffers for incoming messages, shared by all queue pairs made with it (ibv_srq).
class ReceiveQueue {
 public:
  virtual ~ReceiveQueue() = default;
  /// @param id  in [0, 2^63)
  /// @errors  retry_queue_full | bad_argument | broken
  [[nodiscard]] virtual Status post(std::uint64_t id, void* address, std::uint32_t bytes,
                                    std::uint32_t local_key) noexcept = 0;
};

/// Does the last byte of a write into this process's memory become visible last?
enum class LastByte : std::uint8_t {
  last,          ///< guaranteed by the device
  assumed_last,  ///< not guaranteed, but known of this vendor's adapters within one packet
  unknown,
};

/// How the peer's writes through a connection arrive here.
struct WriteOrder {
  LastByte last_byte = LastByte::unknown;
  std::uint32_t packet_bytes = 0;  ///< of one packet on the wire
};

/// A reliable connection to one queue pair of a peer. Destroying it closes the connection (see
/// Teardown); the peer then sees peer_lost.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  /// Append one request to the send queue; legal once Event::established was reported.
  /// @errors  retry_queue_full | bad_argument | broken
  [[nodiscard]] virtual Status post(const WorkRequest& request) noexcept = 0;
  /// Of the established connection: the path and the peer matter, not the device alone. May be a
  /// system call.
  [[nodiscard]] virtual WriteOrder write_order() const noexcept = 0;
  /// Unique in this process for the life of the device, never 0.
  [[nodiscard]] virtual std::uint32_t number() const noexcept = 0;
};

struct QueuePairOptions {
  CompletionQueue* completions = nullptr;          ///< of sends and receives
  CompletionQueue* receive_completions = nullptr;  ///< of receives, where that is another one
  ReceiveQueue* receives = nullptr;
  std::uint32_t send_queue_entries = 128;
  unsigned remote_rights = access::any;  ///< what the peer may do at all; memory regions may allow
                                         ///< less
  // With management queues only (management_queue.hpp), as receive_completions.
  bool managed_sends = false;
  bool managed_receives = false;  ///< `receives` is for this queue pair alone
};

inline constexpr std::size_t address_max_bytes = 128;
inline constexpr std::size_t private_max_bytes = 48;

/// How a peer finds this device; passed to it by the job's own means.
struct Address {
  std::array<std::byte, address_max_bytes> bytes{};
  std::uint32_t size_bytes = 0;
};

/// A few bytes that travel with a connection request.
struct PrivateData {
  std::array<std::byte, private_max_bytes> bytes{};
  std::uint32_t size_bytes = 0;
};

/// Something that happened to a connection.
struct Event {
  enum class Kind : std::uint8_t {
    connect_request,  ///< `request` and `data` are set; answer with accept() or reject()
    established,      ///< work requests may be posted; on the accepting side too
    rejected,         ///< the peer called reject(); the queue pair is of no more use
    unreachable,      ///< nobody answered, or there is no way; `why`
    peer_lost,        ///< an established connection has ended without us; `why`
  };
  Kind kind = Kind::established;
  QueuePair* queue_pair = nullptr;  ///< nullptr for connect_request
  std::uint64_t request = 0;
  PrivateData data;
  std::string why;  ///< one clause in words, for instance "transport retry counter exceeded"
};

class ManagementQueue;

/// One opened RDMA device. Everything made from it is destroyed before it.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const Capabilities& capabilities() const noexcept = 0;
  [[nodiscard]] virtual Address address() const = 0;
  /// Can there be a way to a peer? What no connection request has to find out: other kinds of
  /// network, other InfiniBand subnets, other software devices.
  [[nodiscard]] virtual bool may_reach(const Address& peer) const noexcept = 0;

  /// Make memory known to the device; its pages stay in place until deregister().
  /// @param rights  access::* or'ed
  /// @errors  refused (errno: ENOMEM is the memlock limit or memory itself, EFAULT an address that
  /// is not mapped)
  [[nodiscard]] virtual Status register_memory(void* address, std::size_t bytes, unsigned rights,
                                               const Backing& backing,
                                               MemoryRegion& region) noexcept = 0;
  virtual void deregister_memory(MemoryRegion& region) noexcept = 0;

  // These throw Error.
  [[nodiscard]] virtual std::unique_ptr<CompletionQueue> make_completion_queue(
      std::uint32_t entries) = 0;
  [[nodiscard]] virtual std::unique_ptr<ReceiveQueue> make_receive_queue(std::uint32_t entries) = 0;
  [[nodiscard]] virtual std::unique_ptr<QueuePair> make_queue_pair(
      const QueuePairOptions& options) = 0;
  /// A completion queue that only waits read: poll() finds nothing. @throws Error(bad_option): this
  /// device has no management queues
  [[nodiscard]] virtual std::unique_ptr<CompletionQueue> make_counting_queue();
  /// @param entries  at most Capabilities::management_queue_max  @throws  the same
  [[nodiscard]] virtual std::unique_ptr<ManagementQueue> make_management_queue(
      std::uint32_t entries);

  /// Begin to connect a fresh queue pair; the outcome is an event. @errors broken | bad_argument
  [[nodiscard]] virtual Status connect(QueuePair& queue_pair, const Address& peer,
                                       const PrivateData& data) noexcept = 0;
  /// Answer a connect_request with a fresh queue pair; `established` follows. Each request is
  /// answered once. @errors the same
  [[nodiscard]] virtual Status accept(std::uint64_t request, QueuePair& queue_pair) noexcept = 0;
  virtual void reject(std::uint64_t request) noexcept = 0;

  /// Take the next event of a connection. A system call for some providers: not for every progress
  /// call.
  /// @returns  false when there is none
  [[nodiscard]] virtual bool poll_event(Event& event) = 0;

  /// What a thread sleeps on until something arrives (see Arrivals): to be polled, not read. The
  /// same for the life of the device, which owns it.
  /// @returns  -1: this device wakes nobody
  [[nodiscard]] virtual int arrival_descriptor() const noexcept = 0;
  /// Make the descriptor unreadable, until something arrives. A system call for some providers.
  virtual void arm_arrivals() noexcept = 0;
};

// --- Providers -------------------------------------------------------------------------

struct VerbsOptions {
  std::string device;               ///< "" takes the fastest active port; "mlx5_0" or "mlx5_0:1"
  std::int32_t gid_index = -1;      ///< -1 lets librdmacm choose
  std::int32_t service_level = -1;  ///< 0 to 15, -1: as the subnet manager or the host says
  std::int32_t traffic_class = -1;  ///< 0 to 255 in the global header, -1: the host's
  std::uint32_t mtu_bytes = 0;      ///< 0 takes the port's; 256 to 4096
  std::uint32_t timeout_exponent = 18;  ///< local ACK timeout 4.096 us * 2^n
  std::uint32_t retry_count = 7;
  std::uint32_t rnr_retry_count = 7;  ///< 7 is for ever
  std::uint32_t rnr_timer = 12;       ///< InfiniBand's code of the delay, 12 is 0.64 ms
  std::uint32_t connect_timeout_ms =
      10000;  ///< to find address and route; the answer to a request may take as long as it takes
  std::uint32_t inline_bytes = 128;  ///< asked for; Capabilities tells what came
  std::uint32_t read_depth =
      16;  ///< reads and atomics under way per queue pair, lowered to the device's limit
};

struct SoftOptions {
  std::uint64_t bandwidth_mbytes_s = 1000;  ///< of one node's link, each direction, 10^6 bytes
  std::uint64_t latency_ns = 5000;          ///< one way
  std::uint64_t message_ns =
      200;                      ///< the link is busy this long for each message besides its bytes
  std::uint64_t task_ns = 100;  ///< each wait and enable of a management queue takes so long
  std::uint32_t inline_bytes = 128;  ///< 128 at most
  std::uint32_t node = 0;            ///< processes with the same number share one link
  std::uint64_t answer_timeout_ms =
      8590;  ///< transport retries end when nothing was answered for so long
  std::uint64_t receive_retry_ns =
      640'000;  ///< between two tries for one of this process's receive entries
  std::uint32_t receive_retry_count = 7;     ///< 7 is for ever
  std::uint32_t device_timeout_ms = 60'000;  ///< for the device process's answer to a call
  std::string
      domain;  ///< names the device process: processes with the same domain (and user) share one
  std::string program;  ///< path of the device's program; "" looks beside the library
};

/// Was the provider built in?
[[nodiscard]] bool have_verbs() noexcept;

/// Open the device that open_verbs would open. @returns  nullptr: there is none, `why` says why not
/// @throws Error: memory_limit, system, when there is one and it cannot be used
[[nodiscard]] std::unique_ptr<Device> try_open_verbs(const VerbsOptions& options, std::string& why);

/// @throws Error: no_device, no_permission, memory_limit, bad_option, system
[[nodiscard]] std::unique_ptr<Device> open_verbs(const VerbsOptions& options);

/// Connect to the device process of this user and domain; start it when there is none.
/// @throws Error: system, no_permission, bad_option
[[nodiscard]] std::unique_ptr<Device> open_soft(const SoftOptions& options);

}  // namespace overlap::fabric
