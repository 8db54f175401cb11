// Checks and prints the messages on the wire.
// SPDX-License-Identifier: BSD-3-Clause
#include "headers.hpp"

#include <cstdio>

namespace overlap::speculative {
namespace {

constexpr std::uint8_t flags_allowed(Kind kind) noexcept {
  switch (kind) {
    case Kind::rts:
      return flag::hazard_stop | flag::hazard_resume | flag::adapt_stop | flag::adapt_resume |
             flag::eager_sized | flag::no_memory | flag::sender_waits | flag::synchronous;
    case Kind::rtr_ack: return flag::data_done;
    case Kind::rts_ack: return flag::hazard_stop;
    case Kind::rtr: return flag::no_memory | flag::acknowledging;
    case Kind::grant: return flag::no_memory | flag::just_missed;
    case Kind::done: return flag::to_receiver | flag::just_missed;
    case Kind::era: return flag::speculation_off;
    case Kind::revoke: return flag::nobody_waits;
    case Kind::eager:
    case Kind::eager_sync:
    case Kind::revoke_ack:
    case Kind::stream_end:
    case Kind::frag:
    case Kind::sync_ack: return 0;
  }
  return 0;
}

const char* kind_name(Kind kind) noexcept {
  switch (kind) {
    case Kind::eager: return "EAGER";
    case Kind::eager_sync: return "EAGER_SYNC";
    case Kind::rts: return "RTS";
    case Kind::rtr_ack: return "RTR_ACK";
    case Kind::revoke_ack: return "REVOKE_ACK";
    case Kind::stream_end: return "STREAM_END";
    case Kind::era: return "ERA";
    case Kind::rtr: return "RTR";
    case Kind::rts_ack: return "RTS_ACK";
    case Kind::revoke: return "REVOKE";
    case Kind::grant: return "GRANT";
    case Kind::frag: return "FRAG";
    case Kind::done: return "DONE";
    case Kind::sync_ack: return "SYNC_ACK";
  }
  return "unknown";
}

std::size_t key_length(Kind kind, std::span<const std::byte> message) noexcept {
  switch (kind) {
    case Kind::rts: return load<RtsHeader>(message).key_bytes;
    case Kind::rtr: return load<RtrHeader>(message).key_bytes;
    case Kind::grant: return load<GrantHeader>(message).head.key_bytes;
    case Kind::eager:
    case Kind::eager_sync:
    case Kind::rtr_ack:
    case Kind::revoke_ack:
    case Kind::stream_end:
    case Kind::rts_ack:
    case Kind::revoke:
    case Kind::frag:
    case Kind::done:
    case Kind::sync_ack:
    case Kind::era: return 0;
  }
  return 0;
}

constexpr bool carries_payload(Kind kind) noexcept {
  return kind == Kind::eager || kind == Kind::eager_sync || kind == Kind::frag;
}

/// A message that names its request by 0 can never have been sent.
bool names_nobody(Kind kind, std::span<const std::byte> message) noexcept {
  switch (kind) {
    case Kind::eager_sync: return load<EagerSyncHeader>(message).send == 0;
    case Kind::rts: return load<RtsHeader>(message).send == 0;
    case Kind::rtr: return load<RtrHeader>(message).receive == 0;
    case Kind::rtr_ack: return load<RtrAckHeader>(message).receive == 0;
    case Kind::grant:
      return load<GrantHeader>(message).head.target == 0 || load<GrantHeader>(message).receive == 0;
    case Kind::frag:
    case Kind::done:
    case Kind::sync_ack: return load<TargetedHeader>(message).target == 0;
    case Kind::eager:
    case Kind::revoke_ack:
    case Kind::stream_end:
    case Kind::rts_ack:
    case Kind::revoke:
    case Kind::era: return false;
  }
  return true;
}

template <class Header>
void describe_in(std::span<std::byte> header, std::uint64_t address,
                 std::uint16_t key_bytes) noexcept {
  auto changed = load<Header>(header);
  changed.address = address;
  if constexpr (requires { changed.key_bytes; }) {
    changed.key_bytes = key_bytes;
  } else {
    changed.head.key_bytes = key_bytes;
  }
  std::memcpy(header.data(), &changed, sizeof changed);
}

void describe_in(Kind kind, std::span<std::byte> header, const MemoryDescription& memory) noexcept {
  const auto key_bytes = static_cast<std::uint16_t>(memory.key.size());
  if (kind == Kind::rts) describe_in<RtsHeader>(header, memory.address, key_bytes);
  if (kind == Kind::rtr) describe_in<RtrHeader>(header, memory.address, key_bytes);
  if (kind == Kind::grant) describe_in<GrantHeader>(header, memory.address, key_bytes);
}

}  // namespace

std::size_t encode(const ControlMessage& control, const MemoryDescription* memory,
                   std::span<std::byte, control_max_bytes> out) noexcept {
  std::size_t bytes = 0;
  if (control.with_prefix) {
    std::memcpy(out.data(), &control.prefix, sizeof control.prefix);
    bytes = sizeof control.prefix;
  }
  const std::span<std::byte> header = out.subspan(bytes, control.header_bytes);
  std::memcpy(header.data(), control.header.data(), header.size());
  bytes += header.size();
  if (!control.describes_memory()) return bytes;
  if (memory == nullptr) {
    header[1] |= std::byte{flag::no_memory};
    return bytes;
  }
  describe_in(control.kind(), header, *memory);
  if (!memory->key.empty()) std::memcpy(out.data() + bytes, memory->key.data(), memory->key.size());
  return bytes + memory->key.size();
}

const char* find_fault(std::span<const std::byte> message) noexcept {
  if (message.size() < 2) return "shorter than any header";
  const auto first = std::to_integer<std::uint8_t>(message[0]);
  if (first >> 4U != wire_version) return "another version of the wire layout";
  const Kind kind = kind_of(first);
  const std::size_t fixed = header_bytes(kind);
  if (fixed == 0) return "a kind of message that does not exist";
  if (message.size() < fixed) return "shorter than its header";
  const auto flags = std::to_integer<std::uint8_t>(message[1]);
  if ((flags & ~flags_allowed(kind)) != 0) return "flags that this kind cannot have";
  if (kind == Kind::era) {
    const auto behind = message.subspan(fixed);
    if (behind.size() < 2 || !is_forward(kind_of(std::to_integer<std::uint8_t>(behind[0]))))
      return "an era before something that is no forward message";
    return find_fault(behind);
  }
  if (names_nobody(kind, message)) return "no request named";
  if (kind == Kind::frag && message.size() == fixed) return "a fragment without payload";
  if (!is_targeted(kind) && load<SequencedHeader>(message).source < 0)
    return "a negative source rank";
  if (carries_payload(kind)) return nullptr;
  const std::size_t key = key_length(kind, message);
  if (key > key_max_bytes) return "a key that is too long";
  if (message.size() != fixed + key) return "a length that does not fit its kind";
  return nullptr;
}

std::string describe(std::span<const std::byte> message) {
  if (message.size() < 2) return "message of " + std::to_string(message.size()) + " bytes";
  const auto first = std::to_integer<std::uint8_t>(message[0]);
  const Kind kind = kind_of(first);
  char text[256];
  int n = std::snprintf(text, sizeof text, "%s (kind %u, version %u, flags 0x%02x, %zu bytes)",
                        kind_name(kind), first & 0x0fU, first >> 4U,
                        std::to_integer<unsigned>(message[1]), message.size());
  std::string out(text, static_cast<std::size_t>(n));
  if (kind == Kind::era && message.size() >= sizeof(EraPrefix)) {
    out += " era " + std::to_string(load<EraPrefix>(message).era) + " before ";
    return out + describe(message.subspan(sizeof(EraPrefix)));
  }
  if (header_bytes(kind) == 0 || message.size() < sizeof(SequencedHeader)) return out;
  if (is_targeted(kind)) {
    const auto head = load<TargetedHeader>(message);
    n = std::snprintf(text, sizeof text, " target 0x%llx key_bytes %u",
                      static_cast<unsigned long long>(head.target),
                      static_cast<unsigned>(head.key_bytes));
  } else {
    const auto head = load<SequencedHeader>(message);
    n = std::snprintf(text, sizeof text, " context %u source %d tag %d sequence %u incarnation %u",
                      static_cast<unsigned>(head.context), head.source, head.tag,
                      static_cast<unsigned>(head.sequence),
                      static_cast<unsigned>(head.incarnation));
  }
  out.append(text, static_cast<std::size_t>(n));
  return out;
}

}  // namespace overlap::speculative
