// Kinds of work requests, and events of queue pairs.
// SPDX-License-Identifier: BSD-3-Clause
#include "objects.hpp"

namespace overlap::fabric::soft {

bool Task::is_atomic() const noexcept {
  return request().opcode == Opcode::fetch_add || request().opcode == Opcode::compare_swap;
}

bool Task::is_read() const noexcept { return request().opcode == Opcode::read || is_atomic(); }

bool Task::is_plain_send() const noexcept {
  return request().opcode == Opcode::send || request().opcode == Opcode::send_with_immediate;
}

bool Task::takes_receive() const noexcept {
  return is_plain_send() || request().opcode == Opcode::write_with_immediate;
}

void tell(Host& host, Pair& pair, Event::Kind kind, const std::string& why) {
  Event event;
  event.kind = kind;
  event.why = why;
  host.event(*pair.client, &pair, event);
}

}  // namespace overlap::fabric::soft
