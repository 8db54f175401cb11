// One modelled MPI process around the real protocol code: requests with real buffers and the actions the protocol asks for.
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
    at_once,      ///< the write has ended when it is posted (shared memory)
    later,        ///< posted now, ended later
    refused,      ///< refused when posted
    fails_later,  ///< posted, and refused when it should end
    none,         ///< no memory is ever named: push only
  };
  /// Is DONE posted behind the data (chained completion)? Concerns reads, and writes that are posted.
  enum class Chain : std::uint8_t {
    none,
    at_once,      ///< with the data
    after_stall,  ///< the last piece, and DONE behind it, are posted some time after the first
  };
  bool reads = true;
  Write write = Write::later;
  std::uint64_t fragment_bytes = 2;
  Chain chain = Chain::none;
};

enum class SendMode : std::uint8_t { eager, eager_sync, rendezvous };

struct Send : SendOp {
  int id = 0;     ///< unique in the world; seeds the payload
  int index = 0;  ///< in order of starting at its process
  int to = 0;
  SendMode mode = SendMode::eager;
  std::vector<std::byte> data;
  bool complete = false;
  std::uint64_t completed_ns = 0;
};

struct Receive : ReceiveOp {
  int index = 0;                  ///< in order of posting at its process
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

struct Message {
  int from = 0;
  int to = 0;
  int send_id = -1;          ///< forward messages that stand for a send: which one
  std::uint64_t number = 0;  ///< for the network's own use
  std::vector<std::byte> bytes;

  [[nodiscard]] Kind kind() const noexcept {
    return kind_of(std::to_integer<std::uint8_t>(bytes[0]));
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
  virtual void transmit(Message message) = 0;
  virtual void start(Job job) = 0;
  [[nodiscard]] virtual Process& process(int rank) = 0;
  virtual void completed(Send&) {}
  virtual void completed(Receive&) {}
  /// A receive is about to be posted. For reference matchers.
  virtual void posted(Process&, Receive&) {}
};

/// Faults that the tests plant to see whether they are noticed. All of them sit around the product's code, none in it.
enum class Fault : std::uint8_t {
  none,
  no_rtr_ack,            ///< RTR-ACKs are lost (P1.6)
  no_rts_ack,            ///< RTS-ACKs are lost (P1.6)
  rtr_behind_wildcard,   ///< wildcards in front do not hold RTRs back (P1.7)
  eager_flag_never_set,  ///< eager sends tell the hazard control nothing (P1.8)
  revoke_not_awaited,  ///< a cancelled receive gets its buffer back before the sender has confirmed
  late_rtr_taken_for_new,  ///< an RTR counts from where the sender is, not from where the receiver was
  stop_rtr_lost,           ///< stop-RTR does not reach the receiver (P1.8)
  chained_ahead,  ///< the network does not hold a chained DONE back until the data has moved (P1.2, P1.3)
};

class Process final : public Host {
 public:
  Process(Network& network, int rank, int size, const Config& config, const Transport& transport,
          Fault fault, std::uint16_t incarnation = 0);
  ~Process() override;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Send& isend(int to, int tag, std::size_t length_bytes, SendMode mode, int id);
  Receive& irecv(int from, int tag, std::size_t capacity_bytes, bool speculate);
  void cancel(Receive& receive);
  /// Matched probe and, when it finds something, the receive of it. @returns  nullptr when nothing is there
  Receive* improbe_and_receive(int from, int tag, std::size_t capacity_bytes);
  /// The two halves of it: what lies between may be another call.
  Arrived* improbe(int from, int tag);
  Receive& imrecv(Arrived& message, std::size_t capacity_bytes);

  /// A message has arrived and the process is inside MPI.
  void deliver(const Message& message);
  /// The data of a transfer moves (no processor needed). Separate from the notice, which needs the process inside MPI.
  /// @returns  false when the transport refuses
  bool move_data(const Job& job);
  void notice(const Job& job, bool moved);
  /// A stalled job's last piece is posted.
  void go_on_posting(Job& job);

  [[nodiscard]] Protocol& protocol() noexcept { return protocol_; }
  [[nodiscard]] Communicator& comm() noexcept { return *comm_; }
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

  /// A guard was overwritten or a buffer changed after its receive had ended.
  void check_buffers();

 private:
  void perform_actions();
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
  std::unique_ptr<Communicator> comm_;
  std::deque<Send> sends_;
  std::deque<Receive> receives_;
};

}  // namespace overlap::speculative::sim
