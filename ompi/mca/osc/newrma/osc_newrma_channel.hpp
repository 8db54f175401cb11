// Messages of one window between this rank and another one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <memory>
#include <span>
#include <vector>

#include "ompi/mca/common/overlap/endpoint.hpp"
#include "ompi/mca/common/overlap/protocol/ring_queue.hpp"
#include "ompi/mca/common/overlap/protocol/work_fifo.hpp"

#include "protocol/bundle.hpp"
#include "protocol/message.hpp"
#include "protocol/message_order.hpp"
#include "protocol/request_slot.hpp"
#include "protocol/target_key.hpp"
#include "protocol/unseen_writes.hpp"

namespace overlap::newrma {

struct GatheredRow;
class RmaOperation;
class Window;

/// Notices, operations and answers go out in the order in which they were given to it. What finds
/// no room at the BTL waits: small ones with their bytes, large operations and answers without (the
/// bytes are read when their message goes). Small ones that wait share a message, and puts and
/// accumulates of one kind a head in it; where a message is a system call, operations of a long row
/// wait for each other (BurstPace).
///
/// @thread  progress lock held
class Channel final : public Work {
 public:
  Channel(Window& window, Rank rank);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  [[nodiscard]] Rank rank() const noexcept { return rank_; }

  void send_notice(const NoticeMessage& notice);
  /// @param operation  lives until Window::operation_sent(), which may be called inside
  void send_operation(RmaOperation& operation);
  /// Is that small, and known to fit a message?
  [[nodiscard]] bool takes_write(std::uint64_t bytes) const noexcept {
    return endpoint_ != nullptr && sizeof(Block) + bytes <= std::min(room_bytes(), small_max_bytes);
  }
  /// A put or accumulate with its bytes, that it takes. @param block  of them
  void send_write(const MessageHead& head, const Block& block, const void* from);
  /// An answer with its bytes: at most what one message takes.
  void send_data(std::uint32_t id, std::uint64_t offset_bytes, std::span<const std::byte> data);
  /// An answer that is read from this rank's memory.
  void send_memory(std::uint32_t id, std::uint64_t offset_bytes, std::vector<Block> blocks);

  /// Ask that rank for the key of its memory.
  void send_key_wanted();
  /// Answer with this rank's, or with none.
  void send_key();
  /// Tell that rank the key if it will need one and has not been told.
  void offer_key();

  /// The way to that rank; an MPI thread makes it if there is none. @returns  nullptr: it must
  [[nodiscard]] Endpoint* endpoint() { return connect() ? endpoint_ : nullptr; }
  /// By which the kernel copies to and from that rank. @returns  nullptr: it does not, or nobody
  /// has asked for the endpoint
  [[nodiscard]] Rail* copying_rail() const noexcept;
  /// Has everything gone to the BTL?
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  /// Has everything left this process? A BTL may still keep what is not in the queue any more.
  [[nodiscard]] bool keeps_nothing() const noexcept { return items_.empty() && kept_ == 0; }
  /// The same of this rank's operations and of the notices that end its epochs. Nobody's epoch here
  /// waits for answers: who has asked for them may compute, or ask again and again.
  [[nodiscard]] bool has_gone() const noexcept { return epoch_items_ == 0 && epoch_kept_ == 0; }
  /// Offer what waits; an MPI thread makes the endpoint if there is none.
  void go_on();
  /// A progress turn: has it brought no more operations since the last one?
  [[nodiscard]] bool has_row_ended() noexcept;
  /// Operations wait for more of them no longer. It is in no list of Window::hold() any more.
  void let_go();
  /// What is sent in between goes together when it ends.
  void begin_together() noexcept { together_ = true; }
  void end_together() {
    together_ = false;
    go_on();
  }
  [[nodiscard]] bool try_again() override;

  MessageOrder order;  ///< of what comes in
  TargetKey target_key;
  /// Of access epochs, whose part at the target may last, and of what came behind.
  UnseenWrites unseen_writes;
  AskingPace asking;                ///< that rank for operations on its memory
  GatheredRow* gathered = nullptr;  ///< operations that wait to be asked for, or none
  BurstPace gathering{4};           ///< which ones wait
  std::uint32_t gathers_since = 0;  ///< Window::synchronized() when the row began

  /// Most bytes of a message, head included.
  static constexpr std::uint64_t message_max_bytes = std::uint64_t{1} << 16U;
  /// Most bytes of an operation or answer that waits with its bytes.
  static constexpr std::uint64_t small_max_bytes = 1024;

 private:
  struct Item;
  enum class Sent : std::uint8_t { whole, part, no_room };

  void push(std::unique_ptr<Item> item);
  void pushed(bool may_wait);
  void note_of_epoch();
  [[nodiscard]] Bundle* newest_bundle();
  [[nodiscard]] std::span<std::byte> add_message(const MessageHead& head, std::uint64_t bytes);
  void count_operation();
  void copy_out(std::span<const Block> blocks, std::byte* to) const;
  [[nodiscard]] bool add_operation(RmaOperation& operation);
  [[nodiscard]] bool holds_operation();
  [[nodiscard]] bool connect();
  [[nodiscard]] bool send_waiting() noexcept;
  [[nodiscard]] bool send_first();
  [[nodiscard]] Sent send_next(Item& item);
  [[nodiscard]] Sent send_bundle(const Bundle& bundle);
  [[nodiscard]] Sent send_key_now(const MessageHead& head);
  [[nodiscard]] Sent send_operation_part(RmaOperation& operation);
  [[nodiscard]] Sent send_memory_part(Item& item);
  [[nodiscard]] MessageHead head_of(Kind kind) const noexcept;
  template <class Write>
  [[nodiscard]] bool try_message(MessageHead head, std::uint64_t behind_bytes, Write&& write);
  [[nodiscard]] bool try_inject(std::span<const std::byte> message);
  static void kept_message_sent(void* channel) noexcept;
  static void epoch_message_sent(void* channel) noexcept;
  template <class Fill>
  [[nodiscard]] bool try_inject_large(std::uint64_t bytes, Fill&& fill);
  [[nodiscard]] std::uint64_t room_bytes() const noexcept;

  Window& window_;
  const Rank rank_;
  Endpoint* endpoint_ = nullptr;
  std::uint32_t sent_ = 0;          ///< messages so far
  std::uint32_t kept_ = 0;          ///< of them, by a BTL
  std::uint32_t epoch_kept_ = 0;    ///< of these, the ones of has_gone()
  std::size_t epoch_items_ = 0;     ///< of those in `items_`
  std::vector<std::byte> refused_;  ///< the next one, while there is no room for it
  RingQueue<std::unique_ptr<Item>> items_;
  BurstPace pace_{2};
  bool sending_ = false;   ///< the first item: nothing is added to it
  bool held_ = false;      ///< `items_` wait for more of them
  bool listed_ = false;    ///< among those that Window::hold() keeps
  bool together_ = false;  ///< between begin_together() and end_together()
  bool key_sent_ = false;
};

}  // namespace overlap::newrma
