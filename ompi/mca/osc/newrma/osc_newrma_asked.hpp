// Operations on memory that this process does not map, asked of an owner who is at hand.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "opal/mca/common/overlap/node/process_memory.hpp"

#include "protocol/operation_row.hpp"
#include "protocol/request_slot.hpp"

namespace overlap::newrma {

struct ControlBlock;
struct OperationCall;

/// A row of operations in memory that the node's processes map. A process that waits in MPI looks
/// for one in each progress turn, and carries it out in less time than the kernel's copies take.
struct alignas(64) AskedRow {
  RequestSlot<> slot;
  RowHead head;
  bool is_fetched = false;  ///< the area holds a FetchedRow only
  bool is_refused = false;  ///< the owner cannot fetch it
  std::uint32_t count = 0;
  RowArea area;
};

/// Blocks and data that are too many for the area: where the owner fetches them, from the memory of
/// who asks.
struct FetchedRow {
  node::ProcessFacts from;
  node::Place blocks;
  node::Place data;
};
/// Of both together: what an owner carries out within one turn.
inline constexpr std::uint64_t fetched_max_bytes = std::uint64_t{1} << 16U;

/// An operation that may be asked for has at most so many bytes: more the kernel copies as fast.
inline constexpr std::uint64_t asked_max_bytes = 64;
/// A put or get alone: what lies in the cache line of the slot, beside its block.
inline constexpr std::uint64_t asked_alone_max_bytes = 32;

/// One more operation. @param call  a simple one (CopiedMemory::is_simple) of asked_max_bytes
[[nodiscard]] RowHead row_head_of(const OperationCall& call) noexcept;
void add_to_row(OperationRow& row, const RowHead& head, const OperationCall& call) noexcept;

/// What to do where others ask the same owner just now.
enum class Others : std::uint8_t {
  wait,  ///< for them, as long as for the owner
  pass,  ///< another way costs no more
};

/// Ask the owner of a control block, and wait for it to come no longer than the kernel's copies
/// take. What others ask of this process is carried out meanwhile: two that ask each other wait for
/// nothing.
/// @param data  of all blocks, as in OperationRow; answers take their place
/// @returns  false: nothing has been done
[[nodiscard]] bool ask_owner(ControlBlock& owner, AskingPace& pace, const RowHead& head,
                             std::span<const Block> blocks, std::span<std::byte> data,
                             Others others = Others::wait);
/// The same of blocks that bring nothing back and that the owner fetches. It is worth it only with
/// one that has answered before: it is not awaited for as long as the kernel's copies would take.
/// @param may_fetch  becomes false if the owner was there and could not
/// @returns  false: nothing has been done
[[nodiscard]] bool ask_to_fetch(ControlBlock& owner, AskingPace& pace, const RowHead& head,
                                std::span<const Block> blocks, std::span<const std::byte> data,
                                bool& may_fetch);
/// The same of a row. Results are where the program wants them.
[[nodiscard]] bool ask_owner(ControlBlock& owner, AskingPace& pace, OperationRow& row,
                             Others others = Others::wait);
/// Carry out what others have asked of this process. @param memory  its part of the window
void serve_asked(ControlBlock& own, std::byte* memory);

}  // namespace overlap::newrma
