// The control socket between clients and the device process: its name and its messages.
//
// An abstract unix socket of type SOCK_SEQPACKET; every message is one Message, some carry
// descriptors. The client asks, the device replies to each in order; events come in between.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "opal/fabric/fabric.hpp"
#include "shared_memory.hpp"

namespace overlap::fabric::soft {

/// What a message wants. numbers[] and values[] as listed.
enum class Ask : std::uint32_t {
  hello,    ///< numbers: layout version, node, receive retries, task ns; values: bandwidth MB/s,
            ///< latency ns, message ns, receive retry ns, answer ns -> welcome
  welcome,  ///< numbers: client id; values: instance; descriptors: device page, doorbells, eventfd,
            ///< socket of arrivals
  probe,  ///< values: address of 8 bytes, what they hold -> status 0, or the errno with which their
          ///< memory refused
  register_memory,   ///< numbers: rights; values: address, bytes, offset in the descriptor if there
                     ///< is one -> numbers: key
  deregister,        ///< numbers: key
  make_completions,  ///< numbers: entries, 1 for a counting queue; descriptor: ring -> numbers: its
                     ///< number
  make_receives,     ///< numbers: entries; descriptor: ring -> numbers: its number
  make_pair,         ///< numbers: completions, receives (0: none), entries, cookie, remote rights;
                     ///< values: 1 for managed sends, 1 for managed receives, completions of
                     ///< receives (0: the same); descriptor: ring -> numbers: its number
  make_manager,      ///< numbers: entries, its completions; descriptor: ring -> numbers: its number
  drop_completions,  ///< numbers: its number
  drop_receives,
  drop_pair,
  drop_manager,
  connect,  ///< numbers: pair, client; values: instance; data
  accept,   ///< numbers: pair; values: request
  reject,   ///< values: request
  event,    ///< from the device. numbers: Event::Kind, pair; values: request; data, text
  // For testers: no hello is needed.
  list,  ///< numbers: index -> numbers: pair, peer's pair, client, peer's client, node; status
         ///< ENOENT behind the last
  end_client,      ///< numbers: client
  fail_next,       ///< numbers: pair, CompletionStatus
  stall,           ///< numbers: pair, 1 or 0
  delay,           ///< numbers: pair; values: ns
  link_down,       ///< numbers: node, 1 or 0
  tear,            ///< numbers: pair; values: ns
  lose_requests,   ///< numbers: client, how many; values: ns until their asker learns it
  delay_requests,  ///< numbers: client; values: ns
  limit_memory,    ///< numbers: client; values: bytes that it may register
  quit,            ///< end the device process
};

struct Message {
  Ask ask = Ask::hello;
  std::int32_t status = 0;  ///< replies: 0 or an errno
  std::array<std::uint32_t, 5> numbers{};
  std::uint32_t data_bytes = 0;
  std::array<std::uint64_t, 5> values{};
  std::array<std::byte, private_max_bytes> data{};
  std::array<char, 136> text{};
};
static_assert(std::is_trivially_copyable_v<Message> && sizeof(Message) == 256);

/// Descriptors that come with a message.
using Attached = std::array<Descriptor, 4>;

/// Name of the socket, with the leading 0: user, layout version and domain; other layouts do not
/// meet.
[[nodiscard]] std::string socket_name(const std::string& domain);

/// @returns  a listening socket, or empty with errno (EADDRINUSE: there is a device already)
[[nodiscard]] Descriptor listen_at(const std::string& name) noexcept;
/// @returns  a connected socket, or empty with errno (ECONNREFUSED: no device)
[[nodiscard]] Descriptor connect_to(const std::string& name) noexcept;

/// Is the other end a process of this user? @param pid  set to its process, as seen from here
[[nodiscard]] bool is_same_user(int socket, int& pid) noexcept;

enum class Transfer : std::uint8_t { done, would_block, ended };

/// Send one message with up to four descriptors.
[[nodiscard]] Transfer send_message(int socket, const Message& message,
                                    const int* descriptors = nullptr, std::size_t count = 0,
                                    bool block = true) noexcept;
[[nodiscard]] Transfer receive_message(int socket, Message& message, Attached* attached,
                                       bool block) noexcept;

}  // namespace overlap::fabric::soft
