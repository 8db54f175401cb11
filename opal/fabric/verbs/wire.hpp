// What two processes tell each other outside their queue pairs: addresses and the private data of
// connection requests.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "opal/fabric/fabric.hpp"

namespace overlap::fabric::verbs {

/// An IPv4 or IPv6 address with a port.
struct IpAddress {
  sockaddr_storage storage{};

  [[nodiscard]] bool is_v4() const noexcept { return storage.ss_family == AF_INET; }
  [[nodiscard]] sockaddr* socket_address() noexcept {
    return reinterpret_cast<sockaddr*>(&storage);
  }
  [[nodiscard]] const sockaddr_in& v4() const noexcept {
    return reinterpret_cast<const sockaddr_in&>(storage);
  }
  [[nodiscard]] sockaddr_in& v4() noexcept { return reinterpret_cast<sockaddr_in&>(storage); }
  [[nodiscard]] const sockaddr_in6& v6() const noexcept {
    return reinterpret_cast<const sockaddr_in6&>(storage);
  }
  [[nodiscard]] sockaddr_in6& v6() noexcept { return reinterpret_cast<sockaddr_in6&>(storage); }
  [[nodiscard]] bool is_link_local() const noexcept {
    return !is_v4() && IN6_IS_ADDR_LINKLOCAL(&v6().sin6_addr);
  }
  /// Network byte order.
  [[nodiscard]] in_port_t port() const noexcept { return is_v4() ? v4().sin_port : v6().sin6_port; }
  void set_port(in_port_t port) noexcept { (is_v4() ? v4().sin_port : v6().sin6_port) = port; }
  /// The 16 bytes that RoCE uses as GID: IPv4 mapped into IPv6.
  [[nodiscard]] std::array<std::uint8_t, 16> as_v6() const noexcept;
  [[nodiscard]] std::string text() const;
};

/// What speaks on the other side; only equal ones can connect.
enum class Transport : std::uint8_t { infiniband = 1, roce = 2, iwarp = 3 };

[[nodiscard]] const char* text(Transport transport) noexcept;

/// The contents of an Address.
struct PeerAddress {
  IpAddress ip;
  Transport transport = Transport::infiniband;
  std::uint64_t subnet_prefix = 0;  ///< of the port's first GID, as it travels; InfiniBand
  std::string port_name;            ///< "mlx5_0:1", for messages; shortened to what fits
};

/// Can two ports connect? InfiniBand is not routed between subnets, RoCE and iWARP are; and no
/// address of IPv4 reaches one of IPv6.
[[nodiscard]] bool same_network(const PeerAddress& one, const PeerAddress& other) noexcept;

[[nodiscard]] Address encode(const PeerAddress& address) noexcept;
/// @returns  nothing when the bytes are not an address that encode() made
[[nodiscard]] std::optional<PeerAddress> decode(const Address& address);

/// A connection request's private data as it travels: InfiniBand pads it with zeros and other
/// programs connect too, so a header tells that it is ours and its size. InfiniBand leaves 56
/// bytes.
struct WireData {
  std::array<std::byte, private_max_bytes + 4> bytes{};
  std::uint8_t size_bytes = 0;
};
static_assert(sizeof(WireData::bytes) <= 56);

[[nodiscard]] WireData encode(const PrivateData& data) noexcept;
/// @returns  nothing when it is not ours
[[nodiscard]] std::optional<PrivateData> decode_private(std::span<const std::byte> bytes) noexcept;

}  // namespace overlap::fabric::verbs
