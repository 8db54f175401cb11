// Tests: addresses and private data as they travel.
// SPDX-License-Identifier: BSD-3-Clause
#include "wire.hpp"

#include <arpa/inet.h>

#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::verbs;

namespace {

PeerAddress v4(const char* ip, int port) {
  PeerAddress address;
  address.ip.v4().sin_family = AF_INET;
  inet_pton(AF_INET, ip, &address.ip.v4().sin_addr);
  address.ip.set_port(htons(static_cast<std::uint16_t>(port)));
  address.transport = Transport::roce;
  address.port_name = "rxe0:1";
  return address;
}

PeerAddress v6(const char* ip, int port) {
  PeerAddress address = v4("0.0.0.0", 0);
  address.ip = IpAddress{};
  address.ip.v6().sin6_family = AF_INET6;
  inet_pton(AF_INET6, ip, &address.ip.v6().sin6_addr);
  address.ip.set_port(htons(static_cast<std::uint16_t>(port)));
  return address;
}

}  // namespace

TEST_CASE("addresses come back as they went", "[verbs]") {
  for (const PeerAddress& address :
       {v4("10.0.0.1", 4711), v6("2001:db8::7", 65535), v6("fe80::5054:ff:fe00:1", 1)}) {
    const Address wire = encode(address);
    CHECK(wire.size_bytes <= address_max_bytes);
    const auto back = decode(wire);
    REQUIRE(back);
    CHECK(back->ip.text() == address.ip.text());
    CHECK(back->ip.port() == address.ip.port());
    CHECK(back->ip.is_v4() == address.ip.is_v4());
    CHECK(back->transport == address.transport);
    CHECK(back->port_name == address.port_name);
  }
  CHECK(v6("fe80::1", 1).ip.is_link_local());
  CHECK_FALSE(v6("2001:db8::7", 1).ip.is_link_local());
  CHECK_FALSE(v4("169.254.0.1", 1).ip.is_link_local());
}

TEST_CASE("RoCE's GID of an IPv4 address is the mapped one", "[verbs]") {
  const std::array<std::uint8_t, 16> gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  CHECK(v4("10.0.0.1", 1).ip.as_v6() == gid);
}

TEST_CASE("a long device name is shortened", "[verbs]") {
  PeerAddress address = v4("10.0.0.1", 1);
  address.port_name = std::string(300, 'x');
  const auto back = decode(encode(address));
  REQUIRE(back);
  CHECK(back->port_name.size() > 60);
  CHECK(address.port_name.starts_with(back->port_name));
}

TEST_CASE("what is no address of ours is noticed", "[verbs]") {
  const Address good = encode(v4("10.0.0.1", 1));
  CHECK_FALSE(decode(Address{}));
  Address bad = good;
  bad.size_bytes -= 1;
  CHECK_FALSE(decode(bad));
  // every byte of the header but port, IP address and subnet has values that do not exist
  for (const std::size_t idx : {0, 1, 2, 3, 4, 5, 32}) {
    INFO(idx);
    bad = good;
    bad.bytes[idx] = std::byte{0xee};
    CHECK_FALSE(decode(bad));
  }
}

TEST_CASE("private data keeps its size in a padded field", "[verbs]") {
  PrivateData data;
  for (std::uint32_t size : {0U, 1U, 47U, 48U}) {
    data.size_bytes = size;
    for (std::uint32_t i = 0; i < size; ++i) data.bytes[i] = static_cast<std::byte>(i + 1);
    const WireData wire = encode(data);
    std::array<std::byte, 56> padded{};
    std::copy_n(wire.bytes.begin(), wire.size_bytes, padded.begin());
    const auto back = decode_private(padded);
    REQUIRE(back);
    CHECK(back->size_bytes == size);
    CHECK(std::equal(data.bytes.begin(), data.bytes.begin() + size, back->bytes.begin()));
  }
}

TEST_CASE("private data of others is not ours", "[verbs]") {
  CHECK_FALSE(decode_private({}));
  std::array<std::byte, 56> bytes{};
  CHECK_FALSE(decode_private(bytes));
  const WireData wire = encode(PrivateData{});
  std::copy_n(wire.bytes.begin(), wire.size_bytes, bytes.begin());
  CHECK(decode_private(bytes));
  bytes[3] = std::byte{49};  // more than is possible
  CHECK_FALSE(decode_private(bytes));
  bytes[3] = std::byte{10};  // more than there is
  CHECK_FALSE(decode_private(std::span(bytes).first(8)));
}

TEST_CASE("Only ports of one kind, and of one InfiniBand subnet, can connect", "[verbs]") {
  PeerAddress address = v4("10.0.0.1", 1);
  address.transport = Transport::infiniband;
  address.subnet_prefix = 0x80fe;
  const auto there = decode(encode(address));
  REQUIRE(there.has_value());
  CHECK(there->subnet_prefix == 0x80fe);
  const auto own = [&there](Transport transport, std::uint64_t subnet_prefix) {
    PeerAddress made = *there;
    made.transport = transport;
    made.subnet_prefix = subnet_prefix;
    return made;
  };
  CHECK(same_network(*there, own(Transport::infiniband, 0x80fe)));
  CHECK_FALSE(same_network(*there, own(Transport::infiniband, 1)));
  CHECK_FALSE(same_network(*there, own(Transport::roce, 0x80fe)));
  address.transport = Transport::roce;
  CHECK(same_network(address, own(Transport::roce, 1)));  // routed
  // librdmacm binds to the one and is refused the other.
  PeerAddress v6_only = v6("2001:db8::1", 1);
  v6_only.transport = Transport::roce;
  CHECK_FALSE(same_network(v6_only, own(Transport::roce, 1)));
  CHECK_FALSE(same_network(own(Transport::roce, 1), v6_only));
}
