// Messages over the helper's socket.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/helper_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace overlap::node {
namespace {

constexpr std::size_t attached_max = std::tuple_size_v<Attached>;
constexpr int waiting_connections = 256;  // clients of a node start together

struct Address {
  explicit Address(const std::string& name) noexcept {
    address.sun_family = AF_UNIX;
    const std::size_t chars = std::min(name.size(), sizeof address.sun_path);
    std::memcpy(address.sun_path, name.data(), chars);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + chars);
  }
  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&address);
  }
  sockaddr_un address{};
  socklen_t bytes = 0;
};

/// The descriptor, or none with errno as it was.
Descriptor unless(bool failed, Descriptor socket) noexcept {
  if (!failed) return socket;
  const int saved = errno;
  socket = Descriptor();
  errno = saved;
  return {};
}

Descriptor make_socket() noexcept {
  return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

union Ancillary {
  cmsghdr alignment;
  std::array<char, CMSG_SPACE(attached_max * sizeof(int))> room;
};

/// Take the descriptors out. Each one is closed unless it is kept.
void take_descriptors(msghdr& header, Attached& attached) noexcept {
  std::size_t taken = 0;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      Descriptor descriptor(number);
      if (taken < attached.size()) attached[taken++] = std::move(descriptor);
    }
  }
}

}  // namespace

std::string helper_socket_name(uid_t user, const std::string& which) {
  return std::string(1, '\0') + "ompi-progressd." + std::to_string(user) + "." +
         std::to_string(helper_version) + (which.empty() ? "" : "." + which);
}

Descriptor listen_at(const std::string& name) noexcept {
  Descriptor socket = make_socket();
  const Address at(name);
  const bool failed = !socket || ::bind(socket.get(), at.get(), at.bytes) != 0 ||
                      ::listen(socket.get(), waiting_connections) != 0;
  return unless(failed, std::move(socket));
}

Descriptor connect_to(const std::string& name) noexcept {
  Descriptor socket = make_socket();
  const Address at(name);
  const bool failed = !socket || ::connect(socket.get(), at.get(), at.bytes) != 0;
  return unless(failed, std::move(socket));
}

Peer Peer::of(const Descriptor& socket) noexcept {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0)
    return {.user = static_cast<uid_t>(-1), .process = 0};
  return {.user = credentials.uid, .process = credentials.pid};
}

Delivery detail::send_bytes(const Descriptor& socket, const void* message, std::size_t bytes,
                            const int* descriptors, std::size_t count) noexcept {
  iovec part{const_cast<void*>(message), bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Ancillary ancillary{};
  if (count > 0) {
    header.msg_control = ancillary.room.data();
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(control), descriptors, count * sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(bytes)) return Delivery::done;
  return sent < 0 && errno == EAGAIN ? Delivery::would_block : Delivery::ended;
}

Delivery detail::receive_bytes(const Descriptor& socket, void* message, std::size_t bytes,
                               Attached& attached) noexcept {
  iovec part{message, bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Ancillary ancillary{};
  header.msg_control = ancillary.room.data();
  header.msg_controllen = ancillary.room.size();
  ssize_t received = 0;
  do {
    received = ::recvmsg(socket.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return errno == EAGAIN ? Delivery::would_block : Delivery::ended;
  take_descriptors(header, attached);
  // An empty message and the end look alike.
  if (received == 0) return Delivery::ended;
  const bool whole = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  return whole && received == static_cast<ssize_t>(bytes) ? Delivery::done : Delivery::malformed;
}

}  // namespace overlap::node
