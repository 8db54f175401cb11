// One modelled MPI process around the real protocol code: requests with real buffers and the
// actions the protocol asks for.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "ompi/mca/pml/speculative/protocol/protocol.hpp"

namespace overlap::speculative::sim {

inline constexpr HazardPolicy both_policies[] = {HazardPolicy::envelope_sequence,
                                                 HazardPolicy::eager_flag};

/// Something happened that MPI or the protocol's own contract forbids.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A process has ended the job, because a transfer failed whose DONE was posted already.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the transport below can do with a large message.
struct Transport {
  enum class Write : std::uint8_t {
    at_once,       ///< the write has ended when it is posted (shared memory)
    later,         ///< posted now, ended later
    refused,       ///< refused when posted
    fails_later,   ///< posted, and refused when it should end
    fails_midway,  ///< the same, when half of it has been written
    none,          ///< no memory is ever named: push only
  };
  /// Is DONE posted behind the data (chained completion)? Concerns reads, and writes that are
  /// posted.
  enum class Chain : std::uint8_t {
    none,
    at_once,      ///< with the data
    after_stall,  ///< the last piece, and DONE behind it, are posted some time after the first
  };
  bool reads = true;
  Write write = Write::later;
  std::uint64_t fragment_bytes = 2;
  Chain chain = Chain::none;
  unsigned registers_every = 0;  ///< n: only every n-th registration of a receive's buffer
                                 ///< succeeds; 0: all do
  unsigned copies_every = 0;     ///< n: every n-th read that must end inside the call does, as in
                                 ///< shared memory; 0: none
};

enum class SendMode : std::uint8_t {
  eager,
  eager_sync,
  rendezvous,
  rendezvous_sync,
  eager_sized,       ///< rendezvous of what could have gone eagerly
  eager_sized_sync,  ///< the same of a synchronous send
};

struct Send : SendOp {
  int id = 0;     ///< unique in the world; seeds the payload
  int index = 0;  ///< in order of starting at its process
  int to = 0;
  int generation = 0;  ///< of its communicator, at its process
  SendMode mode = SendMode::eager;
  std::vector<std::byte> data;
  bool complete = false;
  std::uint64_t completed_ns = 0;
};

struct Receive : ReceiveOp {
  int index = 0;                  ///< in order of posting at its process
  int generation = 0;             ///< of its communicator, at its process
  std::vector<std::byte> buffer;  ///< [capacity_bytes + guard_bytes]
  bool complete = false;
  bool cancelled = false;
  bool owned_by_user = false;  ///< complete or cancelled: nobody may write to the buffer any more
  std::uint64_t completed_ns = 0;
};

inline constexpr std::size_t guard_bytes = 8;

/// Byte i of message `id`. Neighbouring ids differ in every byte.
[[nodiscard]] constexpr std::byte payload_byte(int id, std::size_t i) noexcept {
  return static_cast<std::byte>(static_cast<unsigned>(id) * 37U + static_cast<unsigned>(i) * 11U +
                                1U);
}

enum class Stream : std::uint8_t { forward, reverse, targeted };
[[nodiscard]] Stream stream_of(Kind kind) noexcept;

/// A header and the data behind it.
[[nodiscard]] std::vector<std::byte> joined(std::span<const std::byte> header,
                                            std::span<const std::byte> payload);

struct Message {
  int from = 0;
  int to = 0;
  int send_id = -1;          ///< forward messages that stand for a send: which one
  std::uint64_t number = 0;  ///< for the network's own use
  std::vector<std::byte> bytes;

  [[nodiscard]] std::span<const std::byte> unprefixed() const noexcept {
    return behind_prefix(bytes);
  }
  [[nodiscard]] Kind kind() const noexcept {
    return kind_of(std::to_integer<std::uint8_t>(unprefixed()[0]));
  }
  [[nodiscard]] Stream stream() const noexcept { return stream_of(kind()); }
};

/// A transfer that a process has started and the network has not finished.
struct Job {
  enum class Kind : std::uint8_t { read, write, push };
  Kind kind = Kind::read;
  int rank = 0;  ///< who started it
  SendOp* send = nullptr;
  ReceiveOp* receive = nullptr;
  bool stalled = false;          ///< not everything is posted yet: go_on_posting comes first
  std::vector<Message> chained;  ///< DONE, or nothing: leaves by itself when the data has moved
};

class Process;

/// What connects the processes.
class Network {
 public:
  virtual ~Network() = default;
  /// @returns  false: there is no room; it stays with the network and goes later, which
  /// Process::transmitted says of a message that stands for a send
  virtual bool transmit(Message message) = 0;
  virtual void start(Job job) = 0;
  [[nodiscard]] virtual Process& process(int rank) = 0;
  /// What sends and receives are told the time is; 0: nothing.
  [[nodiscard]] virtual std::uint64_t now_ns() const noexcept { return 0; }
  virtual void completed(Send&) {}
  virtual void completed(Receive&) {}
  /// A receive is about to be posted. For reference matchers.
  virtual void posted(Process&, Receive&) {}
};

/// Faults that the tests plant to see whether they are noticed. All of them sit around the
/// product's code, none in it.
enum class Fault : std::uint8_t {
  none,
  no_rtr_ack,            ///< RTR-ACKs are lost (P1.6)
  no_rts_ack,            ///< RTS-ACKs are lost (P1.6)
  rtr_behind_wildcard,   ///< wildcards in front do not hold RTRs back (P1.7)
  eager_flag_never_set,  ///< eager sends tell the hazard control nothing (P1.8)
  revoke_not_awaited,  ///< a cancelled receive gets its buffer back before the sender has confirmed
  late_rtr_taken_for_new,  ///< an RTR counts from where the sender is, not from where the receiver
                           ///< was
  stop_rtr_lost,           ///< stop-RTR does not reach the receiver (P1.8)
  identity_not_checked,    ///< a message of a freed communicator is taken for one of the next
  era_not_carried,         ///< prefixes say nothing of what their senders have heard
  no_stream_end,           ///< a process that frees a communicator does not say so
  stream_end_ignored,      ///< RTRs stay in use after their sender has freed the communicator
  queue_dies_with_communicator,  ///< what waits for room is thrown away when its communicator is
                                 ///< freed
  ghost_dropped,                 ///< what uses the RTR of a cancelled receive is lost
  fragment_to_cancelled,  ///< a fragment goes to the receive whose RTR it uses, cancelled or not
  chained_ahead,  ///< the network does not hold a chained DONE back until the data has moved (P1.2,
                  ///< P1.3)
};

class Process final : public Host {
 public:
  /// @param world  its communicator is MPI_COMM_WORLD; false: one that its processes have agreed on
  /// @param communicators_before  how many it has made before that one, of itself alone
  Process(Network& network, int rank, int size, const Config& config, const Transport& transport,
          Fault fault, bool world = true, unsigned communicators_before = 0);
  ~Process() override;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Send& isend(int to, int tag, std::size_t length_bytes, SendMode mode, int id);
  /// @param found_by_look  the look at the network before this call has found its message
  Receive& irecv(int from, int tag, std::size_t capacity_bytes, bool speculate,
                 bool found_by_look = false);
  void cancel(Receive& receive);
  /// The time has gone on, as Network::now_ns says.
  void expire();
  /// A turn in a call that a receive is likely to follow; poll() brings messages in.
  template <class Poll>
  void expect_receive(Poll&& poll) {
    protocol_.expect_receive();
    poll();
    protocol_.expect_no_longer();
  }
  /// A probe that leaves what it finds. @returns  false: nothing is there
  bool iprobe(int from, int tag) {
    Arrived* const found = protocol_.probe(*comm_, from, tag);
    if (found != nullptr) protocol_.note_found(*found);
    perform_actions();
    return found != nullptr;
  }
  /// The end of a turn.
  void take_left() {
    protocol_.take_left();
    perform_actions();
  }
  /// Has the protocol asked for turns, to take what is left?
  [[nodiscard]] bool owes_turns() const noexcept { return owes_turns_; }
  /// Matched probe and, when it finds something, the receive of it. @returns  nullptr when nothing
  /// is there
  Receive* improbe_and_receive(int from, int tag, std::size_t capacity_bytes);
  /// The two halves of it: what lies between may be another call.
  Arrived* improbe(int from, int tag);
  Receive& imrecv(Arrived& message, std::size_t capacity_bytes);

  // Communicators: two processes agree on one by messages, as Open MPI does.
  /// Free the communicator; nothing of this process's is open in it.
  void free_communicator();
  /// First half of making one: tell the other process, and wait for it.
  void agree();
  /// Second half: it exists here; tell the other process, and wait for it.
  void activate();
  /// Has the other process said what agree or activate waits for?
  [[nodiscard]] bool agreed() const noexcept {
    return agreement_ == nullptr || agreement_->complete;
  }
  /// Is a request open in the present communicator?
  [[nodiscard]] bool busy() const noexcept;
  [[nodiscard]] int generation() const noexcept { return generation_; }
  /// Has a receive been cancelled whose RTR may still be used?
  [[nodiscard]] bool has_ghosts() const noexcept { return !ghosts_.empty(); }

  /// A message that stands for a send, and for which there was no room, has left.
  void transmitted(int send_id);
  /// A message has arrived and the process is inside MPI.
  void deliver(const Message& message);
  /// The data of a transfer moves (no processor needed). Separate from the notice, which needs the
  /// process inside MPI.
  /// @returns  false when the transport refuses
  bool move_data(const Job& job);
  void notice(const Job& job, bool moved);
  /// A stalled job's last piece is posted.
  void go_on_posting(Job& job);

  [[nodiscard]] Protocol& protocol() noexcept { return protocol_; }
  /// The present communicator, if there is one.
  [[nodiscard]] Communicator& comm() noexcept { return *comm_; }
  [[nodiscard]] bool has_comm() const noexcept { return comm_ != nullptr; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] std::deque<Send>& sends() noexcept { return sends_; }
  [[nodiscard]] std::deque<Receive>& receives() noexcept { return receives_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] static Send& send_of(SendOp& op) noexcept { return static_cast<Send&>(op); }
  [[nodiscard]] static Receive& receive_of(ReceiveOp& op) noexcept {
    return static_cast<Receive&>(op);
  }

  void deliver(ReceiveOp& receive, std::uint64_t offset_bytes,
               std::span<const std::byte> payload) override;
  [[nodiscard]] bool copy(Peer& from, const RemoteMemory& memory,
                          std::span<std::byte> into) override;
  void note_left(Peer& /*from*/) override { owes_turns_ = true; }
  void note_none_left() override { owes_turns_ = false; }
  [[nodiscard]] std::uint64_t now_ns() const override { return network_.now_ns(); }
  [[nodiscard]] std::uint64_t process_of(const Communicator& comm, std::int32_t rank) override;

  /// A guard was overwritten or a buffer changed after its receive had ended.
  void check_buffers();

 private:
  void perform_actions();
  void add_communicator();
  void exchange();
  void take_for_present(std::vector<std::byte>& message);
  [[nodiscard]] bool registers() noexcept;
  void plant_in(std::vector<std::byte>& message);
  void perform(const Action& action);
  void control(const Action& action);
  void begin(Job job);
  void chain(Job& job);
  void take_eager(Arrived& message, Receive& receive);
  void complete(Receive& receive, bool cancelled);
  Receive& new_receive(int from, int tag, std::size_t capacity_bytes, bool speculate);
  void write_at(const RemoteMemory& target, std::span<const std::byte> payload);
  [[nodiscard]] bool planted(const Message& message);

  Network& network_;
  int rank_;
  Transport transport_;
  Fault fault_;
  Counters counters_;
  Protocol protocol_;
  int size_;
  Communicator* world_ = nullptr;
  Communicator* comm_ = nullptr;  ///< the present one, owned by the protocol
  int generation_ = 0;
  Receive* agreement_ = nullptr;  ///< what agree or activate waits for
  bool performing_ = false;
  std::uint32_t made_ = 0;  ///< communicators
  unsigned registrations_ = 0;
  unsigned copies_ = 0;
  struct Ghost {
    Handle handle;
    Receive* receive;
  };
  std::vector<Ghost> ghosts_;  ///< RTRs of receives that were cancelled alone
  bool owes_turns_ = false;
  std::deque<Send> sends_;
  std::deque<Receive> receives_;
};

}  // namespace overlap::speculative::sim
