// What the sources of the glue share: the process's one PML object, requests, links to peers.
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <deque>

#include "opal/mca/common/overlap/capability.hpp"
#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/progress_lock.hpp"
#include "opal/mca/common/overlap/tunables.hpp"

#include "protocol/protocol.hpp"

namespace overlap::speculative {

#define OVERLAP_TUNABLES_FILE "ompi/mca/pml/speculative/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

/// BTL tags of this PML, out of the PML's range 0x40..0x5f.
inline constexpr mca_btl_base_tag_t tag_eager = 0x50;    ///< Kind::eager only: the fast path
inline constexpr mca_btl_base_tag_t tag_control = 0x51;  ///< everything else

/// Bytes that wait for a BTL that had no room.
struct PendingBytes {
  mca_bml_base_btl_t* bml_btl;
  mca_btl_base_tag_t tag;
  std::vector<std::byte> bytes;
};

/// Messages that a BTL has taken and not sent yet, because a connection is being made or a socket is full. Outlives its link.
struct Unsent {
  std::size_t messages = 0;
  bool orphaned = false;  ///< the link is gone, the last callback deletes this
};

/// What a process must still answer for a communicator that it has freed: a REVOKE of a receive cancelled after that.
struct FreedStream {
  std::uint16_t context;
  std::uint16_t incarnation;
  std::int32_t my_rank;
  std::int32_t peer_rank;
  std::uint32_t next_sequence;
  mca_bml_base_endpoint_t* endpoint;
};

/// A BTL of a link that can do more than Open MPI's BTL interface says.
struct CapableBtl {
  const mca_btl_base_module_t* btl;
  const BtlCapability* capability;
};

/// How a communicator reaches one of its processes. Lives as long as the communicator's protocol object.
struct PeerLink {
  ompi_proc_t* proc = nullptr;
  mca_bml_base_endpoint_t* endpoint = nullptr;
  std::uint64_t eager_bytes = 0;  ///< largest payload that goes eagerly
  bool plain_bytes = false;  ///< same data representation: contiguous data is copied, not converted
  bool memory_access =
      true;  ///< until a put or get fails, for instance because the kernel refuses CMA
  bool is_self = false;
  bool may_keep =
      false;  ///< a BTL may take a message and send it only later (tcp): look at `unsent`
  std::uint64_t in_place_bytes =
      UINT64_MAX;  ///< an eager BTL may want to send as much or more from the user's buffer (P3.2)
  std::vector<mca_bml_base_btl_t*> rails;  ///< BTLs for puts and gets
  std::size_t next_rail = 0;               ///< they take turns
  std::vector<CapableBtl>
      capable;               ///< looked up once; empty where there are Open MPI's own BTLs only
  Unsent* unsent = nullptr;  ///< owned, see there
  std::deque<PendingBytes>
      pending;  ///< in the order of sending; not empty: the link is in Pml::waiting_links_

  /// @returns  nullptr when the BTL has left none
  [[nodiscard]] const BtlCapability* capability_of(
      const mca_btl_base_module_t& btl) const noexcept {
    for (const CapableBtl& each : capable) {
      if (each.btl == &btl) return each.capability;
    }
    return nullptr;
  }
  /// Does this BTL keep what it has taken until it is asked for progress? Those without a progress function do (tcp), and those that
  /// say so: they queue while they connect.
  [[nodiscard]] bool keeps_messages(const mca_btl_base_module_t& btl) const noexcept {
    if (is_self) return false;
    const BtlCapability* capability = capability_of(btl);
    return btl.btl_component->btl_progress == nullptr ||
           (capability != nullptr && capability->keeps_messages);
  }
};

/// A blocking send waits while more messages than this wait for room on its link: the receiver sets the pace.
inline constexpr std::size_t pending_max_messages = 64;

/// Memory of a request as a BTL knows it.
struct Registration {
  mca_bml_base_btl_t* bml_btl = nullptr;  ///< the rail that was chosen for this request's data
  mca_btl_base_registration_handle_t* handle = nullptr;
};

/// A put or get under way, in pieces no longer than the BTL takes.
struct Transfer {
  std::uint64_t posted_bytes = 0;
  std::uint64_t finished_bytes = 0;
  bool posting = false;  ///< something is being posted: completions are counted, not acted upon
  bool failed = false;
  bool waiting = false;  ///< out of resources, in Pml::stalled
};

// Requests. The first member makes each one a request of Open MPI's free lists, debuggers and MPI_Bsend.

struct SendRequest {
  mca_pml_base_send_request_t base;
  SendOp op;
  Registration registration;
  Transfer transfer;
  std::uint32_t fragments_out;  ///< pushed and not completed
  bool lent;                    ///< a BTL sends from the user's buffer (P3.2)
  bool ended;                   ///< complete but for that
  bool protocol_done;           ///< the PML is done; freed already or not
  bool freed;                   ///< by MPI_Request_free or by its last user

  [[nodiscard]] ompi_request_t& ompi() noexcept { return base.req_base.req_ompi; }
};

struct ReceiveRequest {
  mca_pml_base_recv_request_t base;
  ReceiveOp op;
  Registration registration;
  Transfer transfer;
  bool contiguous;
  bool converter_ready;
  bool protocol_done;
  bool freed;

  [[nodiscard]] ompi_request_t& ompi() noexcept { return base.req_base.req_ompi; }
};

extern "C" {
extern opal_class_t overlap_speculative_send_request_class;
extern opal_class_t overlap_speculative_receive_request_class;
}

[[nodiscard]] inline SendRequest& request_of(SendOp& op) noexcept {
  return *reinterpret_cast<SendRequest*>(reinterpret_cast<char*>(&op) - offsetof(SendRequest, op));
}
[[nodiscard]] inline ReceiveRequest& request_of(ReceiveOp& op) noexcept {
  return *reinterpret_cast<ReceiveRequest*>(reinterpret_cast<char*>(&op) -
                                            offsetof(ReceiveRequest, op));
}

/// Everything this component keeps per process.
///
/// @thread  progress lock held, except where a member says otherwise
class Pml final : public Host {
 public:
  explicit Pml(const Tunables& tunables);
  ~Pml() override;
  void deliver(ReceiveOp& receive, std::uint64_t offset_bytes,
               std::span<const std::byte> payload) override;

  // Peers (pml_speculative_link.cpp)
  /// The link of a peer, made on first use. @returns nullptr when no BTL reaches it, or it runs another PML (reported once)
  [[nodiscard]] PeerLink* link(Peer& peer) {
    auto* known = static_cast<PeerLink*>(peer.host_data);
    return known != nullptr ? known : make_link(peer);
  }
  void drop_links(Communicator& comm) noexcept;

  // Communicators (pml_speculative_comm.cpp)
  void add_communicator(ompi_communicator_t& comm);
  void remove_communicator(ompi_communicator_t& comm) noexcept;
  [[nodiscard]] Communicator* communicator(std::uint16_t context) const noexcept {
    return context < communicators_.size() ? communicators_[context] : nullptr;
  }
  void keep_early(std::span<const std::byte> message);
  /// Answer a REVOKE for a communicator that this process has freed already.
  void answer_for_freed(const SequencedHeader& revoke);

  // The network (pml_speculative_transport.cpp, pml_speculative_rdma.cpp)
  /// Do what the protocol has asked for. Does nothing when called from inside itself.
  void run_actions() {
    if (protocol.actions().empty() || running_) [[likely]]
      return;
    run_queued_actions();
  }
  /// Send header and payload-less control bytes; queues them when the BTL has no room.
  void send_bytes(PeerLink& link, mca_bml_base_btl_t* bml_btl, mca_btl_base_tag_t tag,
                  std::span<const std::byte> bytes);
  void retry_pending();
  /// Does any link wait for room?
  [[nodiscard]] bool links_wait() const noexcept { return !waiting_links_.empty(); }
  [[nodiscard]] bool has_pending() const noexcept {
    return links_wait() || !unsent_requests_.empty() || !stalled_sends_.empty() ||
           !stalled_receives_.empty();
  }
  void write_finished(SendRequest& request, std::uint64_t bytes, bool ok);
  void read_finished(ReceiveRequest& request, std::uint64_t bytes, bool ok);
  void fragment_finished(SendRequest& request);
  /// A BTL has sent a message from the user's buffer, and needs it no more.
  void buffer_returned(SendRequest& request);
  void deregister(Registration& registration) noexcept;

  // Completion (pml_speculative_request.cpp)
  /// Complete an eager send, at once or when its link has nothing unsent.
  void complete_when_sent(SendRequest& request, PeerLink& link);
  void complete(SendRequest& request);
  void complete(ReceiveRequest& request, bool cancelled);
  void finish_mpi(ompi_request_t& request);
  /// Hand the requests over whose completion runs somebody else's callback. @thread  lock NOT held
  void run_callbacks() noexcept;
  [[nodiscard]] bool has_callbacks() const noexcept { return !callbacks_.empty(); }

  /// Progress everything once. @returns events seen  @thread  lock held
  int poll() {
    int count = 0;
    for (unsigned i = 0; i < btl_progress_count_; ++i) count += btl_progress_[i]();
    if (more_to_poll_) [[unlikely]]
      count += poll_more();
    return count;
  }
  /// Take over the progress functions of BTLs that the BML has registered since.
  void own_btl_progress() noexcept;

  /// End the job: the connection to a process is lost.
  [[noreturn]] void lose(const char* btl, const std::string& peer, const char* details) noexcept;
  [[noreturn]] void refuse(const char* fault, std::span<const std::byte> message) noexcept;
  void tell_fallback(const PeerLink& link, const char* what) noexcept;

  const Tunables& tunables;
  Protocol protocol;
  std::uint64_t events =
      0;  ///< messages and completions seen, for opal_progress's idea of being busy
  SendRequest* spare_send = nullptr;  ///< of blocking calls, when there is one thread
  ReceiveRequest* spare_receive = nullptr;

 private:
  [[nodiscard]] PeerLink* make_link(Peer& peer);
  [[noreturn]] void break_off(const Action& action) noexcept;
  [[nodiscard]] bool try_send_bytes(PeerLink& link, mca_bml_base_btl_t* bml_btl,
                                    mca_btl_base_tag_t tag, std::span<const std::byte> bytes);
  void run_queued_actions();
  int poll_more();
  void execute(Action& action);
  void send_control(const Action& action);
  void start_write(SendRequest& request);
  void start_read(ReceiveRequest& request);
  void settle_write(SendRequest& request);
  void settle_read(ReceiveRequest& request);
  void push_fragments(SendRequest& request);
  [[nodiscard]] bool send_fragment(SendRequest& request);
  [[nodiscard]] bool register_memory(Registration& registration, PeerLink& link, void* base,
                                     std::uint64_t bytes, std::uint32_t flags);

  bool running_ = false;
  ompi_communicator_t* adding_ = nullptr;  ///< in add_comm: not to be found by its number yet
  bool fallback_told_ = false;
  bool event_driven_ = false;  ///< a BTL works through libevent (tcp): we turn the loop
  std::uint16_t last_incarnation_ = 0;
  std::vector<Communicator*> communicators_;        // [context]
  std::vector<std::vector<std::byte>> early_;       // for communicators that do not exist here yet
  static constexpr unsigned btl_progress_max = 16;  // components; Open MPI has about ten
  std::array<mca_btl_base_component_progress_fn_t, btl_progress_max> btl_progress_{};
  unsigned btl_progress_count_ = 0;
  bool more_to_poll_ = false;  // event_driven_, or something waits for room
  std::vector<PeerLink*> waiting_links_;
  struct UnsentRequest {
    SendRequest* request;
    const Unsent* unsent;
  };
  std::vector<UnsentRequest> unsent_requests_;
  std::deque<FreedStream> freed_streams_;         // the youngest at the end
  std::deque<SendRequest*> stalled_sends_;        // writes and pushes that ran out of resources
  std::deque<ReceiveRequest*> stalled_receives_;  // reads
  std::vector<ompi_request_t*> callbacks_;
};

extern Pml* pml;  ///< exists from enable to component close
extern Tunables tunables;

/// One entry into the PML by an MPI thread: lock, do, unlock, then run callbacks that must not run under the lock.
class Entry {
 public:
  Entry() noexcept { progress_lock.lock(); }
  ~Entry() {
    const bool callbacks = pml->has_callbacks();
    progress_lock.unlock();
    if (callbacks) [[unlikely]]
      pml->run_callbacks();
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
};

/// Entry from a BTL callback: the lock is ours already when our own progress function called the BTL.
class CallbackEntry {
 public:
  CallbackEntry() noexcept : outer_(progress_lock.held_by_me_hint()) {
    if (!outer_) [[unlikely]]
      progress_lock.lock();
  }
  ~CallbackEntry() {
    if (outer_) [[likely]]
      return;
    const bool callbacks = pml->has_callbacks();
    progress_lock.unlock();
    if (callbacks) pml->run_callbacks();
  }
  CallbackEntry(const CallbackEntry&) = delete;
  CallbackEntry& operator=(const CallbackEntry&) = delete;

 private:
  bool outer_;
};

/// Show a topic of help-mpi-pml-speculative.txt, with the host's name. Of the processes of a node only the first to say it says it.
template <class... Values>
void show_topic(const char* topic, Values... values) noexcept {
  char* text = opal_show_help_string("help-mpi-pml-speculative.txt", topic, false, values...);
  std::string_view lines = text != nullptr ? text : topic;
  while (!lines.empty() && lines.back() == '\n') lines.remove_suffix(1);
  show_message(std::string(lines));
  std::free(text);
}

/// Give a descriptor to its BTL. @returns false when it does not take it: the descriptor is freed
[[nodiscard]] bool send_descriptor(PeerLink& link, mca_bml_base_btl_t& bml_btl,
                                   mca_btl_base_descriptor_t* descriptor, mca_btl_base_tag_t tag);

/// Run `body` so that nothing is thrown into C. @returns its value, or OMPI_ERR_OUT_OF_RESOURCE when memory ran out
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OMPI_ERR_OUT_OF_RESOURCE;
  } catch (...) {
    return OMPI_ERROR;
  }
}

[[nodiscard]] inline Communicator& protocol_of(ompi_communicator_t* comm) noexcept {
  return *reinterpret_cast<Communicator*>(comm->c_pml_comm);
}

/// Where the bytes of a request begin, when they are contiguous.
[[nodiscard]] inline void* data_start(const SendRequest& request) noexcept {
  const mca_pml_base_send_request_t& base = request.base;
  // MPI_Bsend has packed the data elsewhere.
  if (base.req_addr != base.req_base.req_addr) return const_cast<void*>(base.req_addr);
  return static_cast<char*>(base.req_base.req_addr) + base.req_base.req_datatype->super.true_lb;
}
[[nodiscard]] inline void* data_start(const ReceiveRequest& request) noexcept {
  return static_cast<char*>(request.base.req_base.req_addr) +
         request.base.req_base.req_datatype->super.true_lb;
}
/// Can the other side take a send's bytes as they lie in memory?
[[nodiscard]] inline bool data_contiguous(const SendRequest& request,
                                          const PeerLink& link) noexcept {
  return link.plain_bytes && opal_convertor_need_buffers(&request.base.req_base.req_convertor) == 0;
}

int progress() noexcept;
/// Wait until a request is complete, with the lock free.
void wait_complete(ompi_request_t& request) noexcept;

// Functions of the module table.
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

// Requests (pml_speculative_request.cpp, _send.cpp, _recv.cpp)
[[nodiscard]] ReceiveRequest* make_receive(void* buffer, std::size_t count, ompi_datatype_t* type,
                                           int source, int tag, ompi_communicator_t* comm,
                                           bool persistent);
void start_receive(ReceiveRequest& request);
void release(SendRequest& request) noexcept;
void release(ReceiveRequest& request) noexcept;
[[nodiscard]] int start_send(SendRequest& request);

[[nodiscard]] std::span<const CounterRow> counter_rows();
[[nodiscard]] Counters& process_counters() noexcept;

}  // namespace overlap::speculative
