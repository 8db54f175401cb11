// What the engine needs from the machine around it; tests put a model in its place.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "opal/fabric/fabric.hpp"
#include "timers.hpp"

namespace overlap::fabric::soft {

struct Client;
struct Completions;
struct Manager;
struct Receives;

/// A run of bytes in a client's memory.
struct Piece {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::byte* mapping = nullptr;  ///< where the device sees them itself; nullptr: through the kernel
};

/// One entry of a send queue as the client posted it.
struct Submission {
  WorkRequest request;
  Time posted = 0;
  std::uint32_t position = 0;              ///< counts the entries of its queue; wraps
  const std::byte* inline_data = nullptr;  ///< stays in place until the entry's completion
  std::uint32_t inline_bytes = 0;
  std::uint32_t wait_number = 0;  ///< Opcode::wait: the counting queue
  std::uint32_t wait_index = 0;   ///< absolute, 24 bits
};

/// One entry of a receive queue.
struct Receive {
  std::uint64_t id = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint32_t local_key = 0;
};

/// One entry of a management queue as the client posted it.
struct Command {
  enum class Kind : std::uint8_t { wait, send_enable, receive_enable, nothing };
  Kind kind = Kind::nothing;
  bool signalled = false;    ///< the last of its list
  std::uint64_t id = 0;      ///< of its list
  std::uint32_t number = 0;  ///< of the counting queue, or of the queue pair
  std::uint32_t index = 0;   ///< absolute: 24 bits of a wait, 16 bits of an enable
  Time posted = 0;
  std::uint32_t position = 0;  ///< counts the entries of its queue; wraps
};

enum class Copied : std::uint8_t {
  done,
  source_failed,
  target_failed,
  source_gone,  ///< its process has ended, which the engine will be told, too
  target_gone,
};

class Host {
 public:
  virtual ~Host() = default;

  /// Copy bytes between clients; both lists have the same sum, at most piece_bytes.
  /// @param last  the last byte of the target ends a message: it must become visible after all
  /// others
  [[nodiscard]] virtual Copied copy(const Client& to, std::span<const Piece> target,
                                    const Client& from, std::span<const Piece> source,
                                    bool last) noexcept = 0;
  /// Execute fetch_add or compare_swap on 8 aligned bytes. @returns  done | target_failed |
  /// target_gone
  [[nodiscard]] virtual Copied atomic(const Client& client, const Piece& target,
                                      const WorkRequest& request, std::uint64_t& old) noexcept = 0;

  /// Take the next entry of a send queue. @returns  false when there is none
  [[nodiscard]] virtual bool fetch(Pair& pair, Submission& out) = 0;
  /// Take the next entry of a management queue. @returns  false when there is none
  [[nodiscard]] virtual bool fetch(Manager& manager, Command& out) = 0;
  /// @returns  the client's counting queue of that number, nullptr: there is none
  [[nodiscard]] virtual Completions* find_counting(const Client& client,
                                                   std::uint32_t number) noexcept = 0;
  /// Take the next receive entry. @returns  false when there is none; then Engine::receives_posted
  /// is called when there is
  [[nodiscard]] virtual bool take_receive(Receives& receives, Receive& out) = 0;
  /// @param position  of the send queue entry; not for receives
  /// @returns  false: the completion queue is full, the completion is lost
  [[nodiscard]] virtual bool complete(Completions& completions, Pair& pair,
                                      const Completion& completion, std::uint32_t position) = 0;
  /// A counting queue has counted the completion of a send queue's entry (sent) or of a receive.
  virtual void count(Completions& completions, Pair& pair, bool sent,
                     std::uint32_t position) noexcept = 0;
  /// Report a list of a management queue. @returns  as complete()
  [[nodiscard]] virtual bool complete(Manager& manager, const Completion& completion,
                                      std::uint32_t position) = 0;
  /// A solicited message or a failed request was reported to the client: wake its thread that
  /// sleeps. Called after complete(), also where that entry was lost.
  virtual void notify(Client& client) noexcept = 0;
  /// Tell the pair's client; for connect_request `pair` is nullptr and `client` is asked.
  virtual void event(Client& client, Pair* pair, const Event& event) = 0;

  static constexpr std::uint64_t piece_bytes = 64U << 10U;
};

}  // namespace overlap::fabric::soft
