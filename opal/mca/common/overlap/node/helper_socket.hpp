// The socket between clients and the helper of their node: its name, its messages, who is there.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "opal/mca/common/overlap/descriptor.hpp"
#include "opal/mca/common/overlap/node/helper_protocol.hpp"

namespace overlap::node {

/// Name of a user's helper, with the leading 0. An abstract name ends with its process, so that no
/// crash leaves one, only one process can have it, and network namespaces tell nodes apart.
/// @param which  empty, or the name of a helper beside the usual one (for tests)
/// @throws std::bad_alloc
[[nodiscard]] std::string helper_socket_name(uid_t user, const std::string& which = {});

/// @returns  a listening socket that does not block, or empty with errno (EADDRINUSE: taken)
[[nodiscard]] Descriptor listen_at(const std::string& name) noexcept;
/// @returns  a connected socket that does not block, or empty with errno (ECONNREFUSED: none there,
/// EAGAIN: it has no time)
[[nodiscard]] Descriptor connect_to(const std::string& name) noexcept;

/// The other end of a connection, as the kernel knows it.
struct Peer {
  uid_t user = 0;
  pid_t process = 0;
  /// @returns  user (uid_t)-1 when the kernel does not say
  [[nodiscard]] static Peer of(const Descriptor& socket) noexcept;
};

/// Descriptors that come with a message.
using Attached = std::array<Descriptor, 2>;

enum class Delivery : std::uint8_t {
  done,
  would_block,
  malformed,  ///< not of this size
  ended       ///< the other end has gone
};

namespace detail {
[[nodiscard]] Delivery send_bytes(const Descriptor& socket, const void* message, std::size_t bytes,
                                  const int* descriptors, std::size_t count) noexcept;
[[nodiscard]] Delivery receive_bytes(const Descriptor& socket, void* message, std::size_t bytes,
                                     Attached& attached) noexcept;
}  // namespace detail

/// Send one message; never blocks. @param descriptors  up to two, each open
template <class Message, std::size_t count = 0>
[[nodiscard]] Delivery send_message(const Descriptor& socket, const Message& message,
                                    const std::array<int, count>& descriptors = {}) noexcept {
  static_assert(std::is_trivially_copyable_v<Message> && count <= std::tuple_size_v<Attached>);
  return detail::send_bytes(socket, &message, sizeof message, descriptors.data(), count);
}
/// Receive one message; never blocks. Descriptors that nobody has asked for are closed.
template <class Message>
[[nodiscard]] Delivery receive_message(const Descriptor& socket, Message& message,
                                       Attached& attached) noexcept {
  static_assert(std::is_trivially_copyable_v<Message>);
  return detail::receive_bytes(socket, &message, sizeof message, attached);
}

}  // namespace overlap::node
