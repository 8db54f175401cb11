// Headers: every way in which a message can be malformed is found, and nothing is read behind its end.
#include "headers.hpp"

#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

constexpr Kind all_kinds[] = {Kind::eager,      Kind::eager_sync, Kind::rts,     Kind::rtr_ack,
                              Kind::revoke_ack, Kind::rtr,        Kind::rts_ack, Kind::revoke,
                              Kind::grant,      Kind::frag,       Kind::done,    Kind::sync_ack};
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
    case Kind::revoke: return bytes_of(RevokeHeader{head(kind)});
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
            .find("RTS (kind 3, version 1, flags 0x00, 48 bytes) context 7 source 1 tag 5") == 0);
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
  for (const unsigned kind : {0U, 13U, 14U, 15U}) {
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
               flag::no_memory;
      case Kind::rtr_ack: return flag::data_done;
      case Kind::rts_ack: return flag::hazard_stop;
      case Kind::rtr: return flag::no_memory | flag::acknowledging;
      case Kind::grant: return flag::no_memory;
      case Kind::done: return flag::to_receiver;
      case Kind::eager:
      case Kind::eager_sync:
      case Kind::revoke_ack:
      case Kind::revoke:
      case Kind::frag:
      case Kind::sync_ack: return 0;
    }
    return 0;
  };
  for (const Kind kind : all_kinds) {
    for (unsigned bit = 1; bit < 256; bit <<= 1U) {
      Bytes message = good(kind);
      message[1] = static_cast<std::byte>(bit);
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
