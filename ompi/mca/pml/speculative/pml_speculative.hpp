// What the sources of the glue share: requests, and the one object per process with its parts.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "ompi/mca/common/overlap/completion_queue.hpp"
#include "ompi/mca/common/overlap/endpoint.hpp"
#include "ompi/mca/common/overlap/entry.hpp"
#include "ompi/mca/common/overlap/interrupt_thread.hpp"
#include "ompi/mca/common/overlap/process.hpp"
#include "ompi/mca/common/overlap/progress_driver.hpp"
#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/progress_lock.hpp"
#include "opal/mca/common/overlap/tunables.hpp"

#include "protocol/copy_ways.hpp"
#include "protocol/eager_reads.hpp"
#include "protocol/path_table.hpp"
#include "protocol/protocol.hpp"

namespace overlap::speculative {

#define OVERLAP_TUNABLES_FILE "ompi/mca/pml/speculative/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

/// BTL tags of this PML, out of the PML's range 0x40..0x5f.
inline constexpr mca_btl_base_tag_t tag_eager = 0x50;    ///< Kind::eager only: the fast path
inline constexpr mca_btl_base_tag_t tag_control = 0x51;  ///< everything else

struct SendRequest;
struct ReceiveRequest;

/// Endpoint of a peer of a communicator, made on first use.
/// @returns  nullptr when no BTL reaches it, or it runs another PML (reported once)
[[nodiscard]] Endpoint* make_endpoint(Peer& peer);
[[nodiscard]] inline Endpoint* known_endpoint(const Peer& peer) noexcept {
  return static_cast<Endpoint*>(peer.host_data);
}
[[nodiscard]] inline Endpoint* endpoint_of(Peer& peer) {
  Endpoint* known = known_endpoint(peer);
  return known != nullptr ? known : make_endpoint(peer);
}

/// The same, if the process has one: in the interrupt thread, which makes none.
[[nodiscard]] Endpoint* made_endpoint_of(Peer& peer) noexcept;

/// The same of a process. @returns  nullptr: as above
[[nodiscard]] Endpoint* endpoint_of_process(ompi_proc_t& proc);

/// May receives from this process offer their buffers? Where the sender's own processor would make
/// the copy, an offer only moves the copy into the sender's call.
[[nodiscard]] bool may_speculate(const Endpoint& endpoint) noexcept;

/// What that depends on, but for pml_speculative_speculation.
[[nodiscard]] RtrFacts rtr_facts(const Endpoint& endpoint) noexcept;
/// Smallest payload that this BTL may want to send from the user's buffer (P3.2); 0: none.
[[nodiscard]] inline std::uint64_t zero_copy_bytes(const Rail& rail) noexcept {
  return rail.capability != nullptr ? rail.capability->in_place_min_bytes : 0;
}
/// How data comes through shared memory while both callers are in MPI, where it could be read.
[[nodiscard]] BlockingCopies blocking_copies() noexcept;
/// May messages that could go eagerly be read by their receiver instead (EagerReads)? Not where
/// processes share cores: there a wait costs a change of them.
[[nodiscard]] bool may_be_read(Endpoint& endpoint) noexcept;
/// How they are, where they may be.
[[nodiscard]] BlockingCopies eager_reads() noexcept;
[[nodiscard]] inline EagerReads::Receiver receiver_of(Peer& peer, Endpoint& endpoint) noexcept {
  return {.pace = endpoint.read_pace, .run = endpoint.exchange_run, .replies = peer.replies};
}
/// Print which path messages to this process take (pml_speculative_explain).
void explain_paths(Endpoint& endpoint);
/// Processes of other jobs (spawned, connected) may end before this one does.
[[nodiscard]] inline bool is_of_my_job(const ompi_proc_t& proc) noexcept {
  return proc.super.proc_name.jobid == OPAL_PROC_MY_NAME.jobid;
}
/// "rank 3"; with its job where the other process is of another one (MPI_Comm_spawn).
[[nodiscard]] std::string rank_text(const opal_process_name_t& name,
                                    const opal_process_name_t& other);
/// Do RTRs to this process name memory? A receive may be cancelled while its RTR is out, and
/// MPI_Wait then needs no answer of the sender if it does not. Where this process itself writes the
/// bytes of a put as they come out of a socket, fragments do as well.
[[nodiscard]] bool offers_memory(const Endpoint& endpoint) noexcept;

/// Does what the protocol asks for.
///
/// @thread  progress lock held
class Actions {
 public:
  explicit Actions(Protocol& protocol) noexcept : protocol_(protocol) {}
  /// Send a control message, with the memory that it describes.
  void send_control(const Action& action);
  /// Perform the protocol's actions. Does nothing when called from inside itself.
  void run() {
    if (protocol_.actions().empty() || running_) [[likely]]
      return;
    run_queued();
  }

 private:
  void run_queued();
  void perform(Action& action);

  Protocol& protocol_;
  bool running_ = false;
};

[[nodiscard]] inline std::uint64_t steady_now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// What the protocol asks of its surroundings: payload into buffers, numbers of processes.
class Delivery final : public Host {
 public:
  void deliver(ReceiveOp& receive, std::uint64_t offset_bytes,
               std::span<const std::byte> payload) override;
  [[nodiscard]] bool copy(Peer& from, const RemoteMemory& memory,
                          std::span<std::byte> into) override;
  void note_left(Peer& from) override;
  void note_none_left() override;
  [[nodiscard]] std::uint64_t process_of(const Communicator& comm, std::int32_t rank) override;
  [[nodiscard]] std::uint64_t now_ns() const noexcept override { return steady_now_ns(); }
  [[nodiscard]] bool is_ending() const noexcept override { return is_finalizing(); }
};

/// Messages that the interrupt thread has received and only an MPI thread may look at: to answer
/// them takes a connection, which Open MPI makes in MPI threads.
///
/// @thread  progress lock held for every call
class LeftMessages {
 public:
  void add(const IncomingMessage& message) { messages_.emplace_back(message); }
  [[nodiscard]] bool empty() const noexcept { return messages_.empty(); }
  /// Handle them in the order in which they came. @returns  how many
  std::size_t handle_all();

 private:
  std::vector<KeptMessage> messages_;
};

/// Large messages that come through shared memory from senders that sit in MPI until they are here,
/// and calls of MPI_Send of this process that wait, during which they began. The last of these ends
/// behind them: a process that leaves MPI in the middle of a copy keeps its sender there.
///
/// @thread  progress lock held, but for keep_call()
class AwaitedCopies {
 public:
  void enter_send() noexcept { sends_.fetch_add(1, std::memory_order_relaxed); }
  void leave_send() noexcept { sends_.fetch_sub(1, std::memory_order_relaxed); }
  /// Does a call of MPI_Send wait?
  [[nodiscard]] bool in_send() const noexcept { return sends_.load(std::memory_order_relaxed) > 0; }
  void begin() noexcept { copies_.fetch_add(1, std::memory_order_relaxed); }
  void end() noexcept { copies_.fetch_sub(1, std::memory_order_relaxed); }
  /// Must a call of MPI_Send that has left stay, because nobody else is there?
  [[nodiscard]] bool keep_call() const noexcept {
    return copies_.load(std::memory_order_relaxed) > 0 && !in_send();
  }

 private:
  // They order nothing: who wants the data waits for its request.
  std::atomic<unsigned> sends_{0};
  std::atomic<unsigned> copies_{0};
};

/// Everything this component keeps per process: its parts, each the owner of one thing.
struct Pml {
  explicit Pml(const Tunables& tunables);
  ~Pml();
  Pml(const Pml&) = delete;
  Pml& operator=(const Pml&) = delete;

  const Tunables& tunables;
  Endpoints endpoints;
  ProgressDriver driver;
  InterruptThread interrupts;
  CompletionQueue completions;
  LeftMessages left;        ///< for MPI threads
  LeftWork left_by_probes;  ///< what Protocol::has_left() says
  Delivery delivery;
  Protocol protocol;
  Actions actions;
  /// Of messages that come in MPI_Recv, and in MPI_Send: there each processor copies for both
  /// directions, and what is faster elsewhere may be slower.
  std::array<CopyWays, 2> copy_ways;  ///< progress lock
  EagerReads eager_reads;
  AwaitedCopies awaited_copies;
  SendRuns send_runs;
  Process shared;  ///< what of it other components use
  /// That of all processes in MPI_Finalize (unless async_mpi_finalize leaves it out): none waits
  /// for anything any more, some are gone.
  bool last_meeting_over = false;
};

extern Pml* pml;  ///< exists from enable to component close
extern Tunables tunables;

/// A topic of help-mpi-pml-speculative.txt, without line ends behind it.
template <class... Values>
[[nodiscard]] std::string topic_text(const char* topic, Values... values) {
  char* text = opal_show_help_string("help-mpi-pml-speculative.txt", topic, false, values...);
  std::string lines = text != nullptr ? text : topic;
  std::free(text);
  while (!lines.empty() && lines.back() == '\n') lines.pop_back();
  return lines;
}
/// Show a topic, with the host's name. Of the processes of a host only the first shows it.
template <class... Values>
void show_topic(const char* topic, Values... values) noexcept {
  show_message(topic_text(topic, values...));
}

/// Abort the job: the connection to a process is lost.
[[noreturn]] void abort_peer_failure(const char* btl, const std::string& peer,
                                     const char* details) noexcept;
/// Abort the job: a malformed message, or one that cannot be answered.
[[noreturn]] void abort_bad_message(const char* fault, std::span<const std::byte> message) noexcept;

[[nodiscard]] inline Communicator& protocol_of(ompi_communicator_t* comm) noexcept {
  return *reinterpret_cast<Communicator*>(comm->c_pml_comm);
}
[[nodiscard]] inline ompi_communicator_t* communicator_of(const Communicator& comm) noexcept {
  return static_cast<ompi_communicator_t*>(comm.host_data);
}

/// Is a send's or receive's data in one piece, so that bytes can be copied as they are?
[[nodiscard]] inline bool is_contiguous(const ompi_datatype_t& type, std::size_t count) noexcept {
  const auto most = static_cast<std::size_t>(INT32_MAX);
  return opal_datatype_is_contiguous_memory_layout(
             &type.super, static_cast<std::int32_t>(std::min(count, most))) != 0;
}

/// Keep what peers send before register_callbacks(); when the BML has been initialised.
[[nodiscard]] int keep_early() noexcept;
/// With the BTLs, after each bml_add_procs. @thread  progress lock held
[[nodiscard]] int register_error_callback();
/// The receive callbacks, this PML's and the added ones, once there is a communicator and after
/// each later bml_add_procs. @thread  progress lock held
[[nodiscard]] int register_callbacks();
/// Call retry_waiting in each turn while there is something to retry. @thread  progress lock held
void set_retries() noexcept;
/// What opal_progress calls.
int progress() noexcept;
/// In MPI_Finalize, which progresses no more: complete what has ended, tell nobody of anything.
void end_last_meeting() noexcept;
/// Wait until a request is complete.
/// @param ended  something has ended in this call already, perhaps this request
/// @thread  progress lock NOT held
void wait_complete(ompi_request_t& request, bool ended = false) noexcept;
/// The same in MPI_Send, which AwaitedCopies know of; leaves it.
void wait_in_send(ompi_request_t& request, bool ended) noexcept;
/// In front of that. @thread  progress lock held
void enter_send() noexcept;

[[nodiscard]] std::span<const CounterRow> counter_rows();
[[nodiscard]] Counters& process_counters() noexcept;

// Functions of the module table, one file per MPI verb.
int add_procs(ompi_proc_t** procs, std::size_t count) noexcept;
int del_procs(ompi_proc_t** procs, std::size_t count) noexcept;
int enable(bool on) noexcept;
int add_comm(ompi_communicator_t* comm) noexcept;
int del_comm(ompi_communicator_t* comm) noexcept;
int irecv_init(void* buffer, std::size_t count, ompi_datatype_t* type, int source, int tag,
               ompi_communicator_t* comm, ompi_request_t** request) noexcept;
int irecv(void* buffer, std::size_t count, ompi_datatype_t* type, int source, int tag,
          ompi_communicator_t* comm, ompi_request_t** request) noexcept;
int recv(void* buffer, std::size_t count, ompi_datatype_t* type, int source, int tag,
         ompi_communicator_t* comm, ompi_status_public_t* status) noexcept;
int isend_init(const void* buffer, std::size_t count, ompi_datatype_t* type, int destination,
               int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
               ompi_request_t** request) noexcept;
int isend(const void* buffer, std::size_t count, ompi_datatype_t* type, int destination, int tag,
          mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
          ompi_request_t** request) noexcept;
int send(const void* buffer, std::size_t count, ompi_datatype_t* type, int destination, int tag,
         mca_pml_base_send_mode_t mode, ompi_communicator_t* comm) noexcept;
int iprobe(int source, int tag, ompi_communicator_t* comm, int* matched,
           ompi_status_public_t* status) noexcept;
int probe(int source, int tag, ompi_communicator_t* comm, ompi_status_public_t* status) noexcept;
int improbe(int source, int tag, ompi_communicator_t* comm, int* matched, ompi_message_t** message,
            ompi_status_public_t* status) noexcept;
int mprobe(int source, int tag, ompi_communicator_t* comm, ompi_message_t** message,
           ompi_status_public_t* status) noexcept;
int imrecv(void* buffer, std::size_t count, ompi_datatype_t* type, ompi_message_t** message,
           ompi_request_t** request) noexcept;
int mrecv(void* buffer, std::size_t count, ompi_datatype_t* type, ompi_message_t** message,
          ompi_status_public_t* status) noexcept;
int start(std::size_t count, ompi_request_t** requests) noexcept;
int dump(ompi_communicator_t* comm, int verbose) noexcept;

}  // namespace overlap::speculative
