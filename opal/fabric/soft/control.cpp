// Messages over the control socket.
// SPDX-License-Identifier: BSD-3-Clause
#include "control.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "layout.hpp"

namespace overlap::fabric::soft {
namespace {

constexpr std::size_t attached_max = std::tuple_size_v<Attached>;

[[nodiscard]] socklen_t fill(sockaddr_un& address, const std::string& name) noexcept {
  address.sun_family = AF_UNIX;
  const std::size_t bytes = std::min(name.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, name.data(), bytes);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes);
}

union Ancillary {
  cmsghdr alignment;
  std::array<char, CMSG_SPACE(attached_max * sizeof(int))> room;
};

}  // namespace

std::string socket_name(const std::string& domain) {
  return std::string(1, '\0') + "overlap-softdevice." + std::to_string(::getuid()) + "." +
         std::to_string(layout_version) + "." + domain;
}

Descriptor listen_at(const std::string& name) noexcept {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  sockaddr_un address{};
  const socklen_t bytes = fill(address, name);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    const int saved = errno;
    socket.reset();
    errno = saved;
  }
  return socket;
}

Descriptor connect_to(const std::string& name) noexcept {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  sockaddr_un address{};
  const socklen_t bytes = fill(address, name);
  int outcome = 0;
  do {
    outcome = ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), bytes);
  } while (outcome != 0 && errno == EINTR);
  if (outcome != 0) {
    const int saved = errno;
    socket.reset();
    errno = saved;
  }
  return socket;
}

bool is_same_user(int socket, int& pid) noexcept {
  ucred credentials{};
  socklen_t bytes = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return false;
  pid = credentials.pid;
  return credentials.uid == ::getuid();
}

Transfer send_message(int socket, const Message& message, const int* descriptors, std::size_t count,
                      bool block) noexcept {
  iovec part{const_cast<Message*>(&message), sizeof(message)};
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
  for (;;) {
    if (::sendmsg(socket, &header, MSG_NOSIGNAL | (block ? 0 : MSG_DONTWAIT)) ==
        static_cast<ssize_t>(sizeof(message))) {
      return Transfer::done;
    }
    if (errno == EINTR) continue;
    return errno == EAGAIN ? Transfer::would_block : Transfer::ended;
  }
}

Transfer receive_message(int socket, Message& message, Attached* attached, bool block) noexcept {
  iovec part{&message, sizeof(message)};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Ancillary ancillary{};
  header.msg_control = ancillary.room.data();
  header.msg_controllen = ancillary.room.size();
  ssize_t received = 0;
  do {
    received = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | (block ? 0 : MSG_DONTWAIT));
  } while (received < 0 && errno == EINTR);
  if (received < 0 && errno == EAGAIN) return Transfer::would_block;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      Descriptor descriptor(number);  // closed here unless somebody wants it
      if (attached != nullptr && i < attached->size()) (*attached)[i] = std::move(descriptor);
    }
  }
  return received == static_cast<ssize_t>(sizeof(message)) ? Transfer::done : Transfer::ended;
}

}  // namespace overlap::fabric::soft
