// What a plan consists of: tasks that a management queue or the interpreter carries out.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::coll_mq {

/// The first six are the adapter's (P6.1); the last two are for software and for adapters that
/// calculate.
enum class TaskKind : std::uint8_t {
  send,             ///< payload `from` to the edge's peer
  receive,          ///< the edge's next message goes to `to`
  write_immediate,  ///< the same as send for 0 bytes, without reading the peer's receive entry
  wait,             ///< until `count` more messages than before have come in on the edge
  send_enable,      ///< the edge's next `count` posted sends may go
  receive_enable,   ///< the same for receives
  copy,             ///< `to` = `from`
  reduce,           ///< `to` = `from` op `to`: `from` is the left operand
};

enum class Buffer : std::uint8_t {
  none,
  input,    ///< what the caller sends; in place: the same memory as output
  output,   ///< what the caller receives
  scratch,  ///< of this one execution of the plan
};

/// Part of a buffer. What a block is, the collective says: a segment of a broadcast, the whole
/// vector of a reduction or a share of it, what one rank sends to another in an all-to-all. The
/// last ones of the program's buffers may be shorter.
struct Place {
  Buffer buffer = Buffer::none;
  std::uint32_t first = 0;
  std::uint32_t blocks = 0;
  std::uint32_t like = 0;  ///< of scratch: the block of the program's that it is as long as

  [[nodiscard]] constexpr bool operator==(const Place&) const noexcept = default;
};

struct Task {
  TaskKind kind{};
  std::uint16_t edge = 0;   ///< index in Plan::edges; not for copy and reduce
  std::uint16_t step = 0;   ///< send: its number on the edge. wait: messages waited for before
  std::uint16_t count = 1;  ///< wait: messages. Enables: entries
  Place from;
  Place to;

  [[nodiscard]] constexpr bool operator==(const Task&) const noexcept = default;
};

[[nodiscard]] constexpr bool is_send(TaskKind kind) noexcept {
  return kind == TaskKind::send || kind == TaskKind::write_immediate;
}

}  // namespace overlap::coll_mq
