// Headers: every way in which a message can be malformed is found, and nothing is read behind its
// end.
// SPDX-License-Identifier: BSD-3-Clause
#include "headers.hpp"

#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

constexpr Kind all_kinds[] = {Kind::eager,      Kind::eager_sync, Kind::rts,  Kind::rtr_ack,
                              Kind::revoke_ack, Kind::stream_end, Kind::rtr,  Kind::rts_ack,
                              Kind::revoke,     Kind::grant,      Kind::frag, Kind::done,
                              Kind::sync_ack};
using Bytes = std::vector<std::byte>;

template <class Header>
Bytes bytes_of(const Header& header, std::size_t behind_bytes = 0) {
  Bytes bytes(sizeof header + behind_bytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

SequencedHeader head(Kind kind) { return {kind_version(kind), 0, 7, 1, 5, 0, 0}; }
TargetedHeader target(Kind kind, Handle handle = 1) {
  return {kind_version(kind), 0, 0, 0, handle};
}

RtsHeader rts() {
  RtsHeader header{};
  header.head = head(Kind::rts);
  header.send = 1;
  return header;
}
RtrHeader rtr() {
  RtrHeader header{};
  header.head = head(Kind::rtr);
  header.receive = 1;
  return header;
}
GrantHeader grant() {
  GrantHeader header{};
  header.head = target(Kind::grant);
  header.receive = 2;
  return header;
}

/// One good message of each kind, without key.
Bytes good(Kind kind) {
  switch (kind) {
    case Kind::eager: return bytes_of(head(kind), 3);
    case Kind::eager_sync: return bytes_of(EagerSyncHeader{head(kind), 1}, 3);
    case Kind::rts: return bytes_of(rts());
    case Kind::rtr_ack: return bytes_of(RtrAckHeader{head(kind), 100, 1});
    case Kind::revoke_ack:
    case Kind::stream_end:
    case Kind::revoke: return bytes_of(RevokeHeader{head(kind)});
    case Kind::era: break;
    case Kind::rtr: return bytes_of(rtr());
    case Kind::rts_ack: {
      RtsAckHeader header{};
      header.head = head(kind);
      return bytes_of(header);
    }
    case Kind::grant: return bytes_of(grant());
    case Kind::frag: return bytes_of(FragHeader{target(kind), 0}, 3);
    case Kind::done:
    case Kind::sync_ack: return bytes_of(target(kind));
  }
  return {};
}

bool carries_payload(Kind kind) {
  return kind == Kind::eager || kind == Kind::eager_sync || kind == Kind::frag;
}

}  // namespace

TEST_CASE("Headers: a good message of each kind passes and is described by name") {
  for (const Kind kind : all_kinds) {
    const Bytes message = good(kind);
    CHECK(find_fault(message) == nullptr);
    CHECK(describe(message).find("unknown") == std::string::npos);
    CHECK(header_bytes(kind) <= header_max_bytes);
    CHECK(is_forward(kind) + is_reverse(kind) + is_targeted(kind) == 1);
  }
  CHECK(describe(good(Kind::rts))
            .find("RTS (kind 3, version 2, flags 0x00, 48 bytes) context 7 source 1 tag 5") == 0);
  CHECK(describe(good(Kind::done)).find("DONE") == 0);
  CHECK(describe(good(Kind::done)).find("target 0x1") != std::string::npos);
}

TEST_CASE(
    "Headers: every truncated message is refused, and describing it reads nothing behind its end") {
  for (const Kind kind : all_kinds) {
    const Bytes message = good(kind);
    for (std::size_t length = 0; length < header_bytes(kind); ++length) {
      const Bytes shorter(message.begin(),
                          message.begin() + static_cast<std::ptrdiff_t>(
                                                length));  // its own block: ASan sees its end
      CHECK(find_fault(shorter) != nullptr);
      CHECK_FALSE(describe(shorter).empty());
    }
  }
}

TEST_CASE("Headers: another version or an unknown kind is refused") {
  for (const Kind kind : all_kinds) {
    for (unsigned version = 0; version < 16; ++version) {
      Bytes message = good(kind);
      message[0] = static_cast<std::byte>(static_cast<unsigned>(kind) | version << 4U);
      CHECK((find_fault(message) == nullptr) == (version == wire_version));
    }
  }
  for (const unsigned kind : {0U, 15U}) {
    Bytes message(64);
    message[0] = static_cast<std::byte>(kind | unsigned{wire_version} << 4U);
    CHECK(find_fault(message) == std::string("a kind of message that does not exist"));
    CHECK(describe(message).find("unknown") == 0);
  }
}

TEST_CASE("Headers: each kind has its flags and no others") {
  const auto allowed = [](Kind kind) -> unsigned {
    switch (kind) {
      case Kind::rts:
        return flag::hazard_stop | flag::hazard_resume | flag::adapt_stop | flag::adapt_resume |
               flag::eager_sized | flag::no_memory | flag::sender_waits | flag::synchronous;
      case Kind::rtr_ack: return flag::data_done;
      case Kind::rts_ack: return flag::hazard_stop;
      case Kind::rtr: return flag::no_memory | flag::acknowledging;
      case Kind::grant: return flag::no_memory | flag::just_missed;
      case Kind::done: return flag::to_receiver | flag::just_missed;
      case Kind::eager:
      case Kind::eager_sync:
      case Kind::revoke_ack:
      case Kind::stream_end:
      case Kind::frag:
      case Kind::sync_ack:
      case Kind::era: return 0;
      case Kind::revoke: return flag::nobody_waits;
    }
    return 0;
  };
  for (const Kind kind : all_kinds) {
    for (unsigned bit = 1; bit < 256; bit <<= 1U) {
      Bytes message = good(kind);
      message[1] = static_cast<std::byte>(bit);
      CAPTURE(static_cast<int>(kind), bit);
      CHECK((find_fault(message) == nullptr) == ((allowed(kind) & bit) != 0));
    }
  }
}

TEST_CASE("Headers: a key must be as long as it says and no longer than there is room") {
  for (const std::size_t says :
       {std::size_t{0}, std::size_t{1}, key_max_bytes, key_max_bytes + 1, std::size_t{65535}}) {
    for (const std::size_t is :
         {std::size_t{0}, std::size_t{1}, key_max_bytes, key_max_bytes + 1, std::size_t{65535}}) {
      const bool fits = says == is && says <= key_max_bytes;
      RtsHeader a = rts();
      a.key_bytes = static_cast<std::uint16_t>(says);
      CHECK((find_fault(bytes_of(a, is)) == nullptr) == fits);
      RtrHeader b = rtr();
      b.key_bytes = static_cast<std::uint16_t>(says);
      CHECK((find_fault(bytes_of(b, is)) == nullptr) == fits);
      GrantHeader c = grant();
      c.head.key_bytes = static_cast<std::uint16_t>(says);
      CHECK((find_fault(bytes_of(c, is)) == nullptr) == fits);
    }
  }
}

TEST_CASE("Headers: nothing may follow a message that carries neither key nor payload") {
  for (const Kind kind : all_kinds) {
    Bytes message = good(kind);
    message.push_back(std::byte{});
    CHECK((find_fault(message) == nullptr) == carries_payload(kind));
  }
  CHECK(find_fault(bytes_of(FragHeader{target(Kind::frag), 0})) ==
        std::string("a fragment without payload"));
}

TEST_CASE("Headers: a message that must name a request names one, and a source is a rank") {
  RtsHeader no_send = rts();
  no_send.send = 0;
  RtrHeader no_receive = rtr();
  no_receive.receive = 0;
  GrantHeader no_target = grant();
  no_target.head.target = 0;
  GrantHeader grants_nothing = grant();
  grants_nothing.receive = 0;
  const Bytes nobody[] = {bytes_of(EagerSyncHeader{head(Kind::eager_sync), 0}),
                          bytes_of(no_send),
                          bytes_of(no_receive),
                          bytes_of(no_target),
                          bytes_of(grants_nothing),
                          bytes_of(RtrAckHeader{head(Kind::rtr_ack), 1, 0}),
                          bytes_of(FragHeader{target(Kind::frag, 0), 0}, 1),
                          bytes_of(target(Kind::done, 0)),
                          bytes_of(target(Kind::sync_ack, 0))};
  for (const Bytes& message : nobody) CHECK(find_fault(message) == std::string("no request named"));
  for (const Kind kind : all_kinds) {
    if (is_targeted(kind)) continue;
    Bytes message = good(kind);
    const std::int32_t negative = -1;
    std::memcpy(message.data() + offsetof(SequencedHeader, source), &negative, sizeof negative);
    CHECK(find_fault(message) == std::string("a negative source rank"));
  }
}

TEST_CASE("Headers: an era stands before a forward message, and before nothing else") {
  for (const Kind kind : all_kinds) {
    Bytes message = bytes_of(EraPrefix{kind_version(Kind::era), flag::speculation_off, 0, 77, 3});
    const Bytes inner = good(kind);
    message.insert(message.end(), inner.begin(), inner.end());
    CHECK((find_fault(message) == nullptr) == is_forward(kind));
    CHECK(Bytes(behind_prefix(message).begin(), behind_prefix(message).end()) == inner);
    CHECK(describe(message).find("era 77 before") != std::string::npos);
    message[1] = std::byte{2};
    CHECK(find_fault(message) != nullptr);
  }
  for (std::size_t length = 0; length < sizeof(EraPrefix) + sizeof(SequencedHeader); ++length) {
    Bytes message = bytes_of(EraPrefix{kind_version(Kind::era), 0, 0, 77, 3});
    const Bytes inner = good(Kind::eager);
    message.insert(message.end(), inner.begin(), inner.end());
    message.resize(length);
    CHECK(find_fault(message) != nullptr);
    CHECK_FALSE(describe(message).empty());
  }
}

TEST_CASE("Headers: the first message of a sender is known by its sequence", "[P4.3]") {
  for (const Kind kind : all_kinds) {
    Bytes message = good(kind);
    const std::size_t at = offsetof(SequencedHeader, sequence);
    message[at] = message[at + 1] = std::byte{0};
    CHECK(begins_stream(message) == is_forward(kind));
    Bytes prefixed = bytes_of(EraPrefix{kind_version(Kind::era), 0, 0, 77, 3});
    prefixed.insert(prefixed.end(), message.begin(), message.end());
    CHECK(begins_stream(prefixed) == is_forward(kind));
    message[at] = std::byte{1};
    CHECK_FALSE(begins_stream(message));
  }
}

TEST_CASE("Headers: a control message is encoded with its prefix and the memory it describes") {
  const auto encoded = [](const auto& header, const MemoryDescription* memory, bool prefixed) {
    ControlMessage control;
    control.header_bytes = sizeof header;
    std::memcpy(control.header.data(), &header, sizeof header);
    control.with_prefix = prefixed;
    control.prefix = {kind_version(Kind::era), 0, 0, 5, 1};
    std::array<std::byte, control_max_bytes> out;
    const std::size_t bytes = encode(control, memory, out);
    return Bytes(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes));
  };
  const Bytes key{std::byte{1}, std::byte{2}, std::byte{3}};
  const MemoryDescription memory{0x1234, key};
  for (const bool prefixed : {false, true}) {
    const Bytes out = encoded(rts(), &memory, prefixed);
    CHECK(out.size() == sizeof(RtsHeader) + 3 + (prefixed ? sizeof(EraPrefix) : 0));
    CHECK(find_fault(out) == nullptr);
    CHECK(load<RtsHeader>(behind_prefix(out)).address == 0x1234);
    CHECK(load<RtsHeader>(behind_prefix(out)).key_bytes == 3);
    CHECK(out.back() == std::byte{3});
  }
  CHECK(load<RtrHeader>(encoded(rtr(), &memory, false)).address == 0x1234);
  CHECK(load<GrantHeader>(encoded(grant(), &memory, false)).head.key_bytes == 3);
  const Bytes none = encoded(rtr(), nullptr, false);
  CHECK(none.size() == sizeof(RtrHeader));
  CHECK(load<RtrHeader>(none).head.flags == flag::no_memory);
  CHECK(encoded(target(Kind::done), &memory, false) == good(Kind::done));
}
