// A window at one rank: its memory, epochs and messages.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <atomic>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ompi/mca/common/overlap/entry.hpp"
#include "ompi/mca/common/overlap/interrupt_thread.hpp"
#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/tunables.hpp"

#include "osc_newrma_channel.hpp"
#include "osc_newrma_copied.hpp"
#include "osc_newrma_gathered.hpp"
#include "osc_newrma_keys.hpp"
#include "osc_newrma_later.hpp"
#include "osc_newrma_memory.hpp"
#include "osc_newrma_operation.hpp"
#include "osc_newrma_request.hpp"
#include "osc_newrma_transfer.hpp"
#include "nonblocking.h"
#include "protocol/epochs.hpp"

namespace overlap::newrma {

#define OVERLAP_TUNABLES_FILE "ompi/mca/osc/newrma/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

extern Tunables tunables;

/// Counted for all windows together. @thread  progress lock held
struct Counters {
  std::uint64_t direct_operations = 0;
  std::uint64_t direct_bytes = 0;
  std::uint64_t sent_operations = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t transferred_operations = 0;
  std::uint64_t transferred_bytes = 0;
  std::uint64_t queued_operations = 0;
  std::uint64_t later_operations = 0;
  std::uint64_t thread_started = 0;
  std::uint64_t flushes_sent = 0;
  std::uint64_t asked_operations = 0;
  std::uint64_t windows_made = 0;
};
extern Counters counters;

/// BTL tag, out of the range 0x40..0x5f of PMLs, of which pml/speculative uses two others.
inline constexpr mca_btl_base_tag_t message_tag = 0x52;

/// One window.
///
/// @thread  progress lock held for every call, but where said otherwise
class Window final : private Host {
 public:
  /// @param comm   the window's own, freed with it
  /// @param memory of it, made
  Window(ompi_win_t& win, ompi_communicator_t& comm, std::unique_ptr<WindowMemory> memory,
         std::uint32_t incarnation, Reorder reorder);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  [[nodiscard]] ompi_win_t& win() const noexcept { return win_; }
  [[nodiscard]] ompi_communicator_t& comm() const noexcept { return comm_; }
  [[nodiscard]] Rank self() const noexcept { return comm_.c_my_rank; }
  [[nodiscard]] Rank count() const noexcept { return ompi_comm_size(&comm_); }
  [[nodiscard]] bool has_rank(Rank rank) const noexcept { return rank >= 0 && rank < count(); }
  [[nodiscard]] WindowMemory& memory() const noexcept { return *memory_; }
  [[nodiscard]] Epochs& epochs() noexcept { return epochs_; }
  [[nodiscard]] std::uint32_t incarnation() const noexcept { return incarnation_; }

  /// Carry an operation out now or as soon as its target is ready; one of no bytes is done.
  /// @param request  of a call that returns one; or nullptr
  /// @returns  OMPI_SUCCESS, or an MPI error class: no epoch
  [[nodiscard]] int operate(const OperationCall& call, ompi_request_t** request);

  /// Memory that this process maps, for a put or get that is carried out and counted at once.
  /// @returns  nullptr: it is none of those, or there is something wrong with it
  [[nodiscard]] std::byte* open_place(Rank target, std::ptrdiff_t displacement,
                                      std::uint64_t bytes) noexcept {
    if (mapped_.rank != target && !find_mapped(target)) return nullptr;
    std::ptrdiff_t start = 0;
    if (__builtin_mul_overflow(displacement, mapped_.displacement_unit, &start)) return nullptr;
    const auto begin = static_cast<std::uint64_t>(start);  // below the window: huge
    if (begin > mapped_.bytes || bytes > mapped_.bytes - begin) return nullptr;
    if (mapped_.copies_later && bytes >= tunables.later_min) return nullptr;
    // Not before: it records that the program accesses that rank.
    if (!has_open_access(target)) return nullptr;
    count_direct(bytes);
    return mapped_.data + begin;
  }
  /// A put or get of the program's `own` bytes that the kernel carries out at once: under a lock,
  /// on created memory that is known to be copied so, and behind nothing that waits.
  /// @returns  false: it is none of those, or there is something wrong with it
  [[nodiscard]] bool copy_by_kernel(Kind kind, Rank target, std::ptrdiff_t displacement,
                                    std::span<std::byte> own) noexcept;
  /// Of the rank whose place was opened.
  [[nodiscard]] ControlBlock& opened_control() const noexcept { return *mapped_.control; }

  /// What wakes a process that sleeps, for a message of this window (P4.8).
  [[nodiscard]] node::Envelope envelope(Rank source) const noexcept {
    return {.kind = node::WaitKind::epoch, .context = context_of(&comm_), .source = source};
  }

  // For channels and transfers.
  [[nodiscard]] Channel& channel(Rank rank) {
    Channel* const last = last_channel_to(rank);
    return last != nullptr ? *last : find_channel(rank);
  }
  [[nodiscard]] MessageHead message_head() const noexcept;
  [[nodiscard]] ompi_proc_t& process_of(Rank rank) const noexcept {
    return *ompi_comm_peer_lookup(&comm_, rank);
  }
  /// The same where Open MPI need not make it, which only MPI threads may ask for.
  [[nodiscard]] const ompi_proc_t* known_process_of(Rank rank) const noexcept {
    return ompi_group_peer_lookup_existing(comm_.c_local_group, rank);
  }
  /// The key by which that process accesses this rank's memory; empty: there is none
  [[nodiscard]] std::span<const std::byte> key_for(Endpoint& endpoint) {
    return exposed_.key_for(endpoint, *memory_);
  }
  /// All messages of an operation have gone.
  void operation_sent(RmaOperation& operation);
  [[nodiscard]] const std::byte* memory_at(const Block& block) const noexcept {
    return memory_->find(block.address, block.bytes);
  }
  /// Transfers that BTLs have taken and not ended, and operations whose messages wait for room: as
  /// many as a program issues without a flush.
  void note_transfer() noexcept { ++transfers_in_flight_; }
  void note_waiting() noexcept { ++unsent_operations_; }
  void note_gone(std::size_t operations) noexcept { unsent_operations_ -= operations; }
  [[nodiscard]] bool is_crowded() const noexcept {
    return transfers_in_flight_ + unsent_operations_ > in_flight_max;
  }
  /// The BTL has carried an operation out. @param ok  false: it must go as messages
  /// @param was_taken  note_transfer() was called for it
  void transfer_ended(RmaOperation& operation, bool was_taken, bool ok);
  /// A channel needs an endpoint, which the interrupt thread must not make.
  void leave_to_mpi_thread();
  /// A channel lets operations wait for more: Channel::let_go() follows in each turn.
  void hold(Channel& channel);

  /// Calls that have waited for nobody. @thread  any: a hint
  [[nodiscard]] unsigned count_call() noexcept {
    const unsigned calls = calls_.load(std::memory_order_relaxed) + 1;
    calls_.store(calls, std::memory_order_relaxed);
    return calls;
  }
  /// The same behind what await_stores() does. On x86-64 a locked operation on any word is such a
  /// barrier; the fence is one on the word that the next pop or return reads, which then waits for
  /// it: 4 ns of a flush.
  [[nodiscard]] unsigned count_call_behind_stores() noexcept {
#if defined(__x86_64__)
    return calls_.fetch_add(1, std::memory_order_seq_cst) + 1;
#else
    await_stores();
    return count_call();
#endif
  }

  /// A call that synchronizes: operations need not wait for more of them.
  void let_go();
  /// Carry out what has been gathered for a rank, or for all: before a call that synchronizes does
  /// anything else, and in each turn.
  void deliver(Channel& to);
  void deliver_gathered();
  /// A call that synchronizes: the next operations are the first of a row again.
  void note_synchronized() noexcept { ++synchronized_; }

  /// A message of another rank, in any order.
  void receive(std::span<const std::byte> message);
  /// Carry out what others ask of this rank through shared memory.
  void serve() { serve_asked(*memory_->control_of(self()), memory_->own()); }
  /// Look at locks that are waited for, and at channels without an endpoint.
  void poll();
  [[nodiscard]] bool needs_poll() const noexcept {
    return epochs_.awaits_lock() || channels_left_ || !held_.empty() || !ended_in_thread_.empty() ||
           !later_.empty() || epochs_.has_unasked() || !leaving_.empty();
  }
  /// Does something wait for a turn that the interrupt thread can take?
  [[nodiscard]] bool has_left_work() const noexcept {
    return !held_.empty() || !later_.empty() || gathered_ != 0;
  }
  [[nodiscard]] bool is_behind_others() const noexcept { return epochs_.is_behind_others(); }
  /// Is nothing to do for a flush of that rank, nor for what waits for a call that synchronizes?
  [[nodiscard]] bool is_flushed(Rank target) const noexcept {
    return !has_left_work() && epochs_.is_flushed(target);
  }
  /// Be polled in each turn while that is needed; after whatever may change it.
  void update_polling();
  /// Has everything gone out, and has everybody who waits for that been told?
  [[nodiscard]] bool all_sent() const noexcept {
    return leaving_.empty() && channels_keep_nothing();
  }
  /// Have the messages gone out that it waits for?
  [[nodiscard]] bool has_gone(const WaitedEvent& event) const noexcept;
  /// The epoch machine is through with this one: it happens when its messages have gone.
  void end_when_gone(WaitedEvent& event);

 private:
  // The host of the epochs.
  void send(Rank to, const NoticeMessage& notice) override;
  void start(Operation& operation) override;
  void happened(Event& event) override;
  [[noreturn]] void end_without_memory() override { overlap::end_without_memory(); }
  [[nodiscard]] WindowLock* lock_of(Rank rank) override;
  void took_ticket(Rank owner, WindowLock::Ticket ticket) override;
  void passed_turn(Rank owner) override;
  void let_guests_in(Rank owner) override;

  /// How an operation gets to its target.
  enum class Way : std::uint8_t { direct, transfer, copies, messages };

  [[nodiscard]] Channel& find_channel(Rank rank);
  [[nodiscard]] bool channels_keep_nothing() const noexcept;
  [[nodiscard]] bool has_channel_gone(Rank target) const noexcept;
  static void end(WaitedEvent& event);
  void wake(Rank rank);
  /// Does this process carry operations on that rank's memory out itself?
  [[nodiscard]] bool is_direct(Rank target) const noexcept {
    return target == self() || memory_->data_of(target) != nullptr;
  }
  /// Where the buffer of a call's target starts, if this process maps it.
  [[nodiscard]] std::byte* mapped_target(const OperationCall& call) const noexcept;
  /// Does a copy wait for what goes to other nodes?
  [[nodiscard]] bool comes_later(const OperationCall& call) const noexcept;
  void carry_out(const OperationCall& call);
  [[nodiscard]] bool can_ask(Rank target);
  [[nodiscard]] bool asks_owner(const OperationCall& call, const Access& access);
  [[nodiscard]] bool ask_for(const OperationCall& call, const Access& access);
  [[nodiscard]] bool asks_for_blocks(const RmaOperation& operation);
  [[nodiscard]] bool can_gather(const OperationCall& call, const Access& access);
  [[nodiscard]] bool stands_in_row(Channel& to) noexcept;
  [[nodiscard]] bool try_gather(const OperationCall& call, const Access& access);
  void carry_out_each(GatheredRow& gathered);
  [[nodiscard]] bool carry_out_there(const OperationCall& call, Access& access);
  void carry_out_far(const OperationCall& call, Access& access, ompi_request_t** request);
  [[nodiscard]] Attached is_attached(const OperationCall& call) const noexcept;
  [[nodiscard]] bool copies_are_dear(const OperationCall& call);
  [[nodiscard]] bool goes_as_message(const OperationCall& call, const Access& access);
  [[nodiscard]] std::optional<CopiedMemory> copied_memory(const OperationCall& call,
                                                          const Access& access);
  static void count_direct(std::uint64_t bytes) noexcept {
    ++counters.direct_operations;
    counters.direct_bytes += bytes;
  }
  [[nodiscard]] bool find_mapped(Rank rank) noexcept;
  [[nodiscard]] Channel* last_channel_to(Rank rank) const noexcept {
    return last_channel_ != nullptr && last_channel_->rank() == rank ? last_channel_ : nullptr;
  }
  [[nodiscard]] bool is_open_under_lock(Rank target) const noexcept;
  [[nodiscard]] const Access* find_access(Rank target) noexcept;
  [[nodiscard]] bool has_open_access(Rank target) noexcept {
    const Access* access = epochs_.last_access_to(target);
    if (access == nullptr) {
      if (epochs_.has_entered(target)) return true;
      access = find_access(target);
    }
    return access != nullptr && Epochs::is_open(*access);
  }
  [[nodiscard]] Way way_of(const OperationCall& call, const Access& access);
  [[nodiscard]] RmaOperation* make_operation(const OperationCall& call, Way way,
                                             ompi_request_t** request);
  void send_write(const OperationCall& call, Access& access);
  void start_by_copies(RmaOperation& operation);
  void end_operation(RmaOperation& operation);
  void give_up(RmaOperation& operation);
  void send_operation(RmaOperation& operation);
  void send_rest(RmaOperation& operation);
  void note_sent_operation(const OperationCall& call, const Access& access);
  void handle(std::span<const std::byte> message);
  void handle_request(const MessageHead& head, std::span<const Block> blocks,
                      std::span<const std::byte> payload);
  void put(std::span<const Block> blocks, std::span<const std::byte> payload);
  void accumulate(const MessageHead& head, std::span<const Block> blocks,
                  std::span<const std::byte> payload);
  void compare_swap(const MessageHead& head, const Block& block,
                    std::span<const std::byte> payload);
  void take_data(const MessageHead& head, std::span<const std::byte> payload);
  void check(const MessageHead& head, std::span<const Block> blocks) const;

  ompi_win_t& win_;
  ompi_communicator_t& comm_;
  std::unique_ptr<WindowMemory> memory_;
  const std::uint32_t incarnation_;
  Epochs epochs_;
  /// A rank's part that MPI has allocated and this process maps: of the last one looked for.
  struct {
    Rank rank = std::numeric_limits<Rank>::min();  ///< nothing that MPI names
    int displacement_unit = 1;
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    ControlBlock* control = nullptr;
    bool copies_later = false;  ///< long ones, see comes_later()
  } mapped_;
  std::unordered_map<Rank, std::unique_ptr<Channel>> channels_;  ///< made on first use
  Channel* last_channel_ = nullptr;                              ///< as channel() has found it
  ExposedMemory exposed_;  ///< goes before the channels, whose endpoints it refers to
  std::unordered_map<std::uint32_t, RmaOperation*> answered_;  ///< by id: their results come
  std::uint32_t next_id_ = 0;
  static constexpr std::size_t in_flight_max = 4096;
  std::size_t transfers_in_flight_ = 0;
  std::size_t unsent_operations_ = 0;
  std::size_t gathered_ = 0;        ///< rows of operations (Channel::gathered)
  std::uint32_t synchronized_ = 0;  ///< calls that synchronize; wraps
  bool delivers_ = false;           ///< what an owner has not come for
  bool is_served_ = false;          ///< see Windows::try_serve()
  std::atomic<unsigned> calls_{0};  ///< see count_call(): a barrier, or orders nothing
  bool channels_left_ = false;
  std::vector<Channel*> held_;         ///< see hold()
  std::vector<WaitedEvent*> leaving_;  ///< see end_when_gone()
  LeftWork left_work_;                 ///< has_left_work()
  bool polled_ = false;  ///< as needs_poll() was when it was counted (Windows::set_polled)
  std::vector<std::unique_ptr<RmaOperation>> ended_in_thread_;
  LaterCopies later_;
  Demand demand_;  ///< others may access this rank's memory at any time (P5.6)
};

/// What MPI calls through win->w_osc_module.
struct Module {
  ompi_osc_base_module_t super;
  const overlap_nonblocking_calls* calls;
  Window* window;
};

[[nodiscard]] inline Module& module_of(ompi_win_t* win) noexcept {
  return *reinterpret_cast<Module*>(win->w_osc_module);
}
[[nodiscard]] inline Window& window_of(ompi_win_t* win) noexcept { return *module_of(win).window; }

/// Windows of this process.
///
/// @thread  progress lock held
class Windows {
 public:
  void add(Window& window) { all_.emplace(key(window.message_head()), &window); }
  void remove(Window& window) noexcept { all_.erase(key(window.message_head())); }
  [[nodiscard]] Window* find(const MessageHead& head) const noexcept {
    const auto found = all_.find(key(head));
    return found == all_.end() ? nullptr : found->second;
  }
  /// It needs polling, or no longer.
  void set_polled(Window& window, bool needed);
  /// Look in each turn for what others ask of it. Of many windows some are left out: each costs a
  /// look, and who is not answered helps itself.
  [[nodiscard]] bool try_serve(Window& window);
  void serve_no_longer(Window& window);
  void serve() {
    for (Window* const each : served_) each->serve();
  }
  /// @returns  windows that need it no longer
  int poll();

  GatheredRows gathered;
  ProcessLocks locks;

 private:
  void update_pollable() noexcept;
  static std::uint64_t key(const MessageHead& head) noexcept {
    return std::uint64_t{head.window} << 32U | head.incarnation;
  }

  std::unordered_map<std::uint64_t, Window*> all_;
  std::vector<Window*> polled_;
  static constexpr std::size_t served_max = 8;
  std::vector<Window*> served_;
};
extern Windows& windows;

/// Register what takes messages in, once.
[[nodiscard]] int register_receiver_once();
/// Wait for an event. @thread  progress lock NOT held
void wait_for(const WaitedEvent& event);
/// Wait until the program is behind no other window's locks. @thread  the same
void wait_for_others_locks(const Window& window);
/// A turn of the progress after so many calls that have waited for nobody.
void take_turn_of_calls(unsigned calls) noexcept;
/// A call ends that has waited for nobody: programs wait in loops of such calls for what others do.
/// @thread  progress lock NOT held
/// @param calls  count_call() of the window
inline void progress_now_and_then(unsigned calls) noexcept {
  constexpr unsigned calls_per_turn = 64;
  if (calls % calls_per_turn == 0) [[unlikely]]
    take_turn_of_calls(calls);
}

/// The tables of functions.
[[nodiscard]] ompi_osc_base_module_t module_table() noexcept;
extern const overlap_nonblocking_calls nonblocking_table;

// Functions of the module table: operations (osc_newrma_calls.cpp) ...
void fill_operations(ompi_osc_base_module_t& table) noexcept;
/// ... and epochs (osc_newrma_epochs.cpp).
void fill_epochs(ompi_osc_base_module_t& table) noexcept;

}  // namespace overlap::newrma
