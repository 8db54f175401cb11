// Encoding of addresses and private data.
// SPDX-License-Identifier: BSD-3-Clause
#include "wire.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace overlap::fabric::verbs {
namespace {

// One byte each, so that byte order is no question; `port` is in network order.
struct WireAddress {
  std::array<char, 4> magic{'O', 'V', 'A', '2'};
  std::uint8_t family = 0;  // 4 or 6
  std::uint8_t transport = 0;
  std::array<std::uint8_t, 2> port{};
  std::array<std::uint8_t, 16> ip{};
  std::array<std::uint8_t, 8> subnet{};
  std::uint8_t name_bytes = 0;
  std::array<char, 63> name{};
};
static_assert(sizeof(WireAddress) == 96 && sizeof(WireAddress) <= address_max_bytes);

constexpr std::array<std::byte, 3> private_magic{std::byte{'O'}, std::byte{'V'}, std::byte{'1'}};

}  // namespace

std::array<std::uint8_t, 16> IpAddress::as_v6() const noexcept {
  std::array<std::uint8_t, 16> bytes{};
  if (is_v4()) {
    bytes[10] = bytes[11] = 0xff;
    std::memcpy(&bytes[12], &v4().sin_addr, 4);
  } else {
    std::memcpy(bytes.data(), &v6().sin6_addr, 16);
  }
  return bytes;
}

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> name{};
  const void* address = is_v4() ? static_cast<const void*>(&v4().sin_addr)
                                : static_cast<const void*>(&v6().sin6_addr);
  inet_ntop(storage.ss_family, address, name.data(), name.size());
  return name.data();
}

const char* text(Transport transport) noexcept {
  switch (transport) {
    case Transport::infiniband: return "InfiniBand";
    case Transport::roce: return "RoCE";
    case Transport::iwarp: return "iWARP";
  }
  return "unknown";
}

bool same_network(const PeerAddress& one, const PeerAddress& other) noexcept {
  return one.transport == other.transport && one.ip.is_v4() == other.ip.is_v4() &&
         (one.transport != Transport::infiniband || one.subnet_prefix == other.subnet_prefix);
}

Address encode(const PeerAddress& address) noexcept {
  WireAddress wire;
  wire.family = address.ip.is_v4() ? 4 : 6;
  wire.transport = static_cast<std::uint8_t>(address.transport);
  const in_port_t port = address.ip.port();
  std::memcpy(wire.port.data(), &port, sizeof port);
  wire.ip = address.ip.as_v6();
  std::memcpy(wire.subnet.data(), &address.subnet_prefix, sizeof address.subnet_prefix);
  wire.name_bytes = static_cast<std::uint8_t>(std::min(address.port_name.size(), wire.name.size()));
  std::memcpy(wire.name.data(), address.port_name.data(), wire.name_bytes);
  Address result;
  std::memcpy(result.bytes.data(), &wire, sizeof wire);
  result.size_bytes = sizeof wire;
  return result;
}

std::optional<PeerAddress> decode(const Address& address) {
  WireAddress wire;
  if (address.size_bytes != sizeof wire) return std::nullopt;
  const auto magic = wire.magic;
  std::memcpy(&wire, address.bytes.data(), sizeof wire);
  const bool known =
      wire.transport >= 1 && wire.transport <= 3 && (wire.family == 4 || wire.family == 6);
  if (wire.magic != magic || !known || wire.name_bytes > wire.name.size()) return std::nullopt;
  PeerAddress result;
  if (wire.family == 4) {
    result.ip.v4().sin_family = AF_INET;
    std::memcpy(&result.ip.v4().sin_addr, &wire.ip[12], 4);
  } else {
    result.ip.v6().sin6_family = AF_INET6;
    std::memcpy(&result.ip.v6().sin6_addr, wire.ip.data(), 16);
  }
  in_port_t port = 0;
  std::memcpy(&port, wire.port.data(), sizeof port);
  result.ip.set_port(port);
  result.transport = static_cast<Transport>(wire.transport);
  std::memcpy(&result.subnet_prefix, wire.subnet.data(), sizeof result.subnet_prefix);
  result.port_name.assign(wire.name.data(), wire.name_bytes);
  return result;
}

WireData encode(const PrivateData& data) noexcept {
  WireData wire;
  const auto size = std::min<std::size_t>(data.size_bytes, private_max_bytes);
  std::copy(private_magic.begin(), private_magic.end(), wire.bytes.begin());
  wire.bytes[3] = static_cast<std::byte>(size);
  std::copy_n(data.bytes.begin(), size, wire.bytes.begin() + 4);
  wire.size_bytes = static_cast<std::uint8_t>(4 + size);
  return wire;
}

std::optional<PrivateData> decode_private(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < 4 || !std::equal(private_magic.begin(), private_magic.end(), bytes.begin()))
    return std::nullopt;
  PrivateData data;
  data.size_bytes = static_cast<std::uint32_t>(bytes[3]);
  if (data.size_bytes > private_max_bytes || data.size_bytes > bytes.size() - 4)
    return std::nullopt;
  std::copy_n(bytes.begin() + 4, data.size_bytes, data.bytes.begin());
  return data;
}

}  // namespace overlap::fabric::verbs
