// How this process reaches another one: rails, and what waits for room on them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ompi/mca/common/overlap/entry.hpp"
#include "ompi/mca/common/overlap/neighbours.hpp"
#include "ompi/mca/common/overlap/protocol/exchange_pace.hpp"
#include "ompi/mca/common/overlap/protocol/exchange_run.hpp"
#include "ompi/mca/common/overlap/protocol/read_pace.hpp"
#include "ompi/mca/common/overlap/protocol/work_fifo.hpp"
#include "opal/mca/common/overlap/capability.hpp"

namespace overlap {

/// A BTL on the way to one process.
struct Rail {
  mca_bml_base_btl_t* bml_btl = nullptr;
  const BtlCapability* capability = nullptr;  ///< what it can do beyond Open MPI's interface
  bool put_failed = false;                    ///< a put was refused for good: fragments instead
  bool get_failed = false;
  std::uint64_t queued_bytes = 0;  ///< of puts that the BTL has taken and not sent
  /// Do puts and gets through shared memory end inside the call?
  enum class Copies : std::uint8_t { unknown, at_once, later };
  Copies copies = Copies::unknown;
  /// What btl_sendi refuses it has no room for, whatever the message. Known of Open MPI's shared
  /// memory only: others refuse for its size or its datatype, too.
  bool refuses_for_room = false;

  [[nodiscard]] mca_btl_base_module_t& btl() const noexcept { return *bml_btl->btl; }
  /// Offer a message to btl_sendi, which takes it or refuses. Where it refuses_for_room the message
  /// waits with us: btl_send would take it and keep it, without a word, until this process
  /// progresses again, which may have left MPI by then.
  /// @param convertor  at the start of the payload; nullptr without
  [[nodiscard]] bool try_inject(mca_btl_base_tag_t tag, std::span<const std::byte> header,
                                opal_convertor_t* convertor, std::size_t payload_bytes,
                                std::uint32_t flags) const {
    return btl().btl_sendi != nullptr &&
           mca_bml_base_sendi(bml_btl, convertor, const_cast<std::byte*>(header.data()),
                              header.size(), payload_bytes, MCA_BTL_NO_ORDER, flags, tag,
                              nullptr) == OMPI_SUCCESS;
  }
  /// Is a put a message to the BTL (neither a key to check nor a copy by the caller), which sends
  /// in the order in which it was asked? An answer then waits behind all puts that it has taken.
  [[nodiscard]] bool queues_puts() const noexcept {
    return btl().btl_register_mem == nullptr && btl().btl_component->btl_progress == nullptr;
  }
};

/// Something that must not end before a message has left this process.
struct MessageHold {
  void* owner = nullptr;                           ///< nullptr: nothing depends on the message
  void (*left)(void* owner) = nullptr;             ///< progress lock held
  mca_btl_base_completion_fn_t on_sent = nullptr;  ///< the same as a BTL's callback

  void release() const {
    if (owner != nullptr) left(owner);
  }
};

/// A hold whose end is left(owner); `sent(owner)` is called instead when a BTL that has kept the
/// message reports that it is sent. The caller counts the hold before the message is offered.
template <auto left, auto sent = left>
[[nodiscard]] MessageHold make_hold(void* owner) noexcept {
  return {owner, left,
          [](mca_btl_base_module_t*, mca_btl_base_endpoint_t*, mca_btl_base_descriptor_t* message,
             int) {
            in_callback([message] {
              if (message->des_cbdata != nullptr) sent(message->des_cbdata);
            });
          }};
}

class Endpoints;

/// One other process (or this one), whatever the number of communicators.
///
/// Messages that a BTL has no room for wait here in order; nothing overtakes them. Small control
/// messages are stored; data stays in its request, which is not complete before (see WorkFifo).
///
/// @thread  progress lock held for every call
class Endpoint {
 public:
  Endpoint(Endpoints& all, ompi_proc_t& proc, mca_bml_base_endpoint_t& bml);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] ompi_proc_t& proc() const noexcept { return proc_; }
  [[nodiscard]] bool is_self() const noexcept { return is_self_; }
  /// A put or get is a copy that this process makes itself (shared memory), so that it hides behind
  /// nothing of this process's own computation.
  [[nodiscard]] bool copies_itself() const noexcept { return copies_itself_; }
  /// Every put to this process is a message to its BTL, which writes the bytes (a socket's), so
  /// that nobody else ever writes to its memory.
  [[nodiscard]] bool puts_are_messages() const noexcept { return puts_are_messages_; }
  /// May the interrupt thread offer what waits to the BTLs again? Then no connection need be made,
  /// or the BTL makes it.
  [[nodiscard]] bool thread_may_retry() const noexcept;
  [[nodiscard]] bool works_by_events() const noexcept { return works_by_events_; }
  /// Largest message, header included, that every eager BTL sends at once; [0] what it prefers.
  [[nodiscard]] std::size_t eager_preferred_bytes() const noexcept { return eager_preferred_; }
  [[nodiscard]] std::size_t eager_most_bytes() const noexcept { return eager_most_; }
  /// Smallest payload that an eager BTL may want to send from the user's buffer (P3.2).
  [[nodiscard]] std::size_t in_place_bytes() const noexcept { return in_place_bytes_; }

  /// Largest payload that goes eagerly. Set by whoever makes the endpoint.
  std::uint64_t eager_bytes = 0;
  ReadPace read_pace;  ///< of messages up to that
  ExchangeRun exchange_run;
  ExchangePace exchange_pace;

  /// The BTL for the next message; they take turns.
  [[nodiscard]] Rail& next_eager() noexcept {
    Rail& rail = eager_[next_eager_];
    if (eager_.size() > 1) [[unlikely]]
      next_eager_ = (next_eager_ + 1) % eager_.size();
    return rail;
  }
  [[nodiscard]] std::span<const Rail> eager_rails() const noexcept { return eager_; }
  /// The same for fragments of large messages.
  [[nodiscard]] Rail& next_send() noexcept {
    Rail& rail = send_[next_send_];
    next_send_ = (next_send_ + 1) % send_.size();
    return rail;
  }
  /// BTLs for puts and gets.
  [[nodiscard]] std::span<Rail> memory_rails() noexcept { return memory_; }
  /// The next of them, by turns. @param count  of memory_rails(), not 0
  [[nodiscard]] Rail& next_memory() noexcept {
    Rail& rail = memory_[next_memory_];
    next_memory_ = (next_memory_ + 1) % memory_.size();
    return rail;
  }

  /// Must a new message wait, behind others or because BTLs keep enough of them already?
  [[nodiscard]] bool crowded() const noexcept { return !messages_.empty() || is_full(); }
  /// Do messages wait here for room?
  [[nodiscard]] bool has_waiting_messages() const noexcept { return !messages_.empty(); }
  /// Do BTLs keep as many messages as they may? A socket takes any number: back-pressure is ours.
  [[nodiscard]] bool is_full() const noexcept { return kept_messages_ >= kept_messages_max; }
  /// A message goes to a BTL that may keep it; and it has been sent.
  void note_kept() noexcept { ++kept_messages_; }
  void note_sent() noexcept { --kept_messages_; }

  /// Send a message of a few bytes, now or when there is room; the bytes are copied. Its hold, if
  /// any, is released when the message needs this process no more. Throws std::bad_alloc.
  ///
  /// @param rail      of this endpoint
  /// @param announces what its process must be woken for if it waits for it; nullptr: the message
  ///                  can wait
  void send_control(Rail& rail, mca_btl_base_tag_t tag, std::span<const std::byte> bytes,
                    MessageHold hold = {}, const node::Envelope* announces = nullptr);
  /// A message that its process may wait for has been given to a BTL.
  void announce(const node::Envelope& arrival) noexcept;
  /// Give a filled descriptor to its BTL, which may keep it until its callback. What must not end
  /// before has a hold. @returns  false: no room, and the descriptor is freed
  [[nodiscard]] bool try_send(Rail& rail, mca_btl_base_descriptor_t* descriptor,
                              mca_btl_base_tag_t tag, MessageHold hold);
  /// Are puts posted piece by piece, one for each rail? By the interrupt thread, where the BTL
  /// queues them: what is posted delays the answers that the other side's transfers wait for. An
  /// MPI thread may compute next, and pieces cost bandwidth: it posts a put whole.
  [[nodiscard]] bool paces_puts() const noexcept;
  [[nodiscard]] bool has_waiting_transfer() const noexcept { return !transfers_.empty(); }
  /// Let work wait behind the messages; or beside them, for transfers of data, or for fragments:
  /// these need room of the BTL, and a copy, which needs none, must not wait for it.
  void wait_as_message(Work& work) noexcept;
  void wait_as_transfer(Work& work) noexcept;
  void wait_as_fragments(Work& work) noexcept;

  /// Look for the area of this process now: the interrupt thread, which may be the first to say
  /// something, cannot. @thread  MPI thread
  void look_for_neighbour() noexcept { neighbour_.look(proc_); }
  /// A fragment of this process for that one has been sent, and has been taken out.
  void note_fragment() noexcept;
  void note_fragment_end() noexcept;
  /// Is this copy left to a later turn, which the interrupt thread may take
  /// (Endpoints::leave_copies_min_bytes)?
  [[nodiscard]] bool leaves_copy(std::uint64_t bytes) const noexcept;
  /// Most bytes that this process copies in one pass under the lock.
  [[nodiscard]] std::uint64_t copy_pass_bytes() const noexcept;

  /// Communicators, windows and queues that use this endpoint.
  void add_user() noexcept { ++users_; }
  void drop_user() noexcept;

 private:
  friend class Endpoints;
  /// @returns  pieces of work that found room
  std::size_t retry();
  std::size_t retry_in_thread();
  /// Its process is gone, nothing refers to it. What still waits or is kept refers to it for ever:
  /// such an endpoint stays until the end.
  [[nodiscard]] bool is_unused() const noexcept {
    return retired_ && users_ == 0 && !has_work() && kept_messages_ == 0 && fragments_ == 0;
  }
  [[nodiscard]] bool has_work() const noexcept {
    return !messages_.empty() || !transfers_.empty() || !pushes_.empty() || announces_again();
  }
  /// May a thread of this process sleep until it is woken for a message?
  [[nodiscard]] bool wakes_neighbour() const noexcept;
  /// A BTL of shared memory that has no room for a fragment keeps it here, and puts it in front of
  /// the other process in a later turn: that one may be asleep by then. Nobody says when. So until
  /// they are back, each turn looks whether it must be woken.
  [[nodiscard]] bool announces_again() const noexcept {
    return fragments_ != 0 && !retired_ && wakes_neighbour();
  }
  /// Nothing wakes a thread when what was given to a BTL has been sent.
  [[nodiscard]] bool ends_in_silence() const noexcept {
    return copies_itself_ || reports_arrivals_;
  }
  /// Offer a control message to its BTL, and say so. @returns  false: no room
  [[nodiscard]] bool try_control(Rail& rail, mca_btl_base_tag_t tag,
                                 std::span<const std::byte> bytes, MessageHold hold,
                                 const node::Envelope* announces);
  [[nodiscard]] bool try_send_bytes(Rail& rail, mca_btl_base_tag_t tag,
                                    std::span<const std::byte> bytes, MessageHold hold,
                                    std::uint32_t flags);
  class StoredMessage;

  Endpoints& all_;
  ompi_proc_t& proc_;
  bool is_self_;
  bool copies_itself_ = false;
  bool puts_are_messages_ = false;
  bool works_by_events_ = false;
  bool reports_arrivals_ = false;  ///< its BTL wakes who sleeps (BtlCapability)
  bool listed_ = false;            ///< in Endpoints::waiting_
  bool retired_ = false;           ///< its process is gone; deleted with its last user
  static constexpr std::uint32_t kept_messages_max = 64;
  std::uint32_t kept_messages_ = 0;
  std::uint32_t fragments_ = 0;  ///< note_fragment(); not back yet
  std::uint32_t users_ = 0;
  std::size_t next_eager_ = 0;
  std::vector<Rail> eager_;
  WorkFifo messages_;
  WorkFifo transfers_;
  WorkFifo pushes_;  ///< wait_as_fragments()
  std::size_t eager_preferred_ = SIZE_MAX;
  std::size_t eager_most_ = SIZE_MAX;
  std::size_t in_place_bytes_ = SIZE_MAX;
  std::vector<Rail> send_;
  std::size_t next_send_ = 0;
  std::vector<Rail> memory_;
  std::size_t next_memory_ = 0;
  Neighbour neighbour_;
};

/// All endpoints of this process, and which of them have work that waits.
///
/// @thread  progress lock held for every call
class Endpoints {
 public:
  Endpoints() = default;
  ~Endpoints();
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

  /// @returns  the endpoint of a process, or nullptr when there is none yet
  [[nodiscard]] static Endpoint* find(const ompi_proc_t& proc) noexcept {
    return static_cast<Endpoint*>(proc.proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML]);
  }
  /// Make one. @returns  nullptr when no BTL reaches the process
  [[nodiscard]] Endpoint* make(ompi_proc_t& proc);
  /// The same of the process of this name, for who must not ask Open MPI which one that is.
  [[nodiscard]] Endpoint* find(const opal_process_name_t& name) const noexcept;
  /// The process leaves the job's reach (MPI_Comm_disconnect, MPI_Finalize).
  void retire(ompi_proc_t& proc) noexcept;

  [[nodiscard]] bool has_work() const noexcept { return !waiting_.empty(); }
  /// Does something wait that the interrupt thread may offer again?
  [[nodiscard]] bool has_thread_work() const noexcept;
  /// Offer what waits to the BTLs again; one round, an endpoint without room costs one try.
  /// @returns  pieces of work that found room
  std::size_t retry();
  /// The same for what needs no connection to be made by this call: puts that BTLs queue, and all
  /// that goes through shared memory or an adapter.
  std::size_t retry_in_thread();
  /// Called when the first endpoint gets, or the last one loses, work that waits.
  void (*on_work)(bool any) = nullptr;
  /// Smallest copy that a call that leaves MPI leaves to the interrupt thread; set while such a
  /// call runs and there is one.
  static constexpr std::uint64_t no_copy = UINT64_MAX;
  std::uint64_t leave_copies_min_bytes = no_copy;
  /// Do processes of this node have interrupt threads that serve shared memory? All decide alike.
  bool wakes_neighbours = false;
  /// Does the interrupt thread poll the BTL of an adapter? It has in this turn, then.
  bool serves_adapters = false;
  /// Through shared memory and adapters: no word comes when they have been taken out.
  std::uint32_t fragments_in_flight = 0;
  /// Is the interrupt thread inside?
  bool in_interrupt_thread = false;

 private:
  friend class Endpoint;
  std::size_t retry_each(std::size_t (Endpoint::*retry)());
  void list(Endpoint& endpoint) noexcept;
  void remove(Endpoint& endpoint) noexcept;

  std::vector<Endpoint*> all_;
  std::vector<Endpoint*> waiting_;
  bool retrying_ = false;
};

inline bool Endpoint::wakes_neighbour() const noexcept {
  return copies_itself_ && all_.wakes_neighbours;
}

inline bool Endpoint::thread_may_retry() const noexcept {
  return wakes_neighbour() || (reports_arrivals_ && all_.serves_adapters);
}

inline bool Endpoint::paces_puts() const noexcept {
  return puts_are_messages_ && all_.in_interrupt_thread;
}

}  // namespace overlap
