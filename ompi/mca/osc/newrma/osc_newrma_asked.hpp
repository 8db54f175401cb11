// Small operations on memory that this process does not map, asked of an owner who is at hand.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "protocol/message.hpp"
#include "protocol/request_slot.hpp"

namespace overlap::newrma {

struct ControlBlock;
struct OperationCall;

/// An operation in memory that the node's processes map. A process that waits in MPI looks for one
/// in each progress turn, and carries it out in less time than the kernel's copies take.
struct alignas(64) AskedOperation {
  static constexpr std::size_t bytes_max = 64;

  RequestSlot<> slot;
  Kind kind{};
  std::uint16_t op = 0;  ///< numbers as in MessageHead
  std::uint16_t element = 0;
  std::uint32_t bytes = 0;
  std::uint64_t start = 0;                      ///< in the owner's memory
  std::array<std::byte, 2 * bytes_max> data{};  ///< to the owner; a swap's `compare` first
  std::array<std::byte, bytes_max> result{};    ///< from it
};

/// @param call  a simple one (CopiedMemory::is_simple)
[[nodiscard]] bool can_ask(const OperationCall& call) noexcept;
/// Ask the owner of a control block, and wait for some microseconds at most for it to come. What
/// others ask of this process is carried out meanwhile: two that ask each other wait for nothing.
/// @returns  false: nothing has been done
[[nodiscard]] bool ask_owner(ControlBlock& owner, const OperationCall& call, AskingPace& pace);
/// Carry out what others have asked of this process. @param memory  its part of the window
void serve_asked(ControlBlock& own, std::byte* memory);

}  // namespace overlap::newrma
