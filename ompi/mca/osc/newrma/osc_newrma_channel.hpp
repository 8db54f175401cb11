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

#include "protocol/message.hpp"
#include "protocol/message_order.hpp"
#include "protocol/target_key.hpp"
#include "protocol/unseen_writes.hpp"

namespace overlap::newrma {

class RmaOperation;
class Window;

/// Notices, operations and answers go out in the order in which they were given to it. What finds
/// no room at the BTL waits: notices and small answers with their bytes, operations and large
/// answers without (the bytes are read when their message goes).
///
/// @thread  progress lock held
class Channel final : public Work {
 public:
  Channel(Window& window, Rank rank);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  void send_notice(const NoticeMessage& notice);
  /// @param operation  lives until Window::operation_sent()
  void send_operation(RmaOperation& operation);
  /// An answer with its bytes: at most what one message takes.
  void send_data(std::uint32_t id, std::uint64_t offset_bytes, std::vector<std::byte> data);
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
  /// Has everything gone to the BTL?
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  /// Offer what waits; an MPI thread makes the endpoint if there is none.
  void go_on();
  [[nodiscard]] bool try_again() override;

  MessageOrder order;  ///< of what comes in
  TargetKey target_key;
  /// Of access epochs, whose part at the target may last, and of what came behind.
  UnseenWrites unseen_writes;

  /// Most bytes of a message, head included.
  static constexpr std::uint64_t message_max_bytes = std::uint64_t{1} << 16U;

 private:
  struct Item;
  enum class Sent : std::uint8_t { whole, part, no_room };

  void push(std::unique_ptr<Item> item);
  [[nodiscard]] bool connect();
  [[nodiscard]] bool send_waiting();
  [[nodiscard]] Sent send_next(Item& item);
  [[nodiscard]] Sent send_operation_part(RmaOperation& operation);
  [[nodiscard]] Sent send_memory_part(Item& item);
  [[nodiscard]] MessageHead head_of(Kind kind) const noexcept;
  template <class Write>
  [[nodiscard]] bool try_message(MessageHead& head, std::span<const Block> blocks,
                                 std::uint64_t payload_bytes, Write&& write);
  [[nodiscard]] bool try_inject(std::span<const std::byte> message);
  [[nodiscard]] std::uint64_t room_bytes() const noexcept;

  Window& window_;
  const Rank rank_;
  Endpoint* endpoint_ = nullptr;
  std::uint32_t sent_ = 0;  ///< messages so far
  RingQueue<std::unique_ptr<Item>> items_;
  bool sending_ = false;
  bool key_sent_ = false;
};

}  // namespace overlap::newrma
