// What ranks of a window send each other.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "epochs.hpp"

namespace overlap::newrma {

/// Of what is declared here, in Bundle and in ControlBlock: processes of different ones make no
/// windows together.
inline constexpr std::uint32_t wire_version = 2;

enum class Kind : std::uint8_t {
  notice,          ///< of an epoch
  put,             ///< [blocks], data
  accumulate,      ///< [blocks], elements
  get_accumulate,  ///< [blocks], elements (none for MPI_NO_OP); answered with data
  compare_swap,    ///< [1 block], value to compare with, new value; answered with data
  get,             ///< [blocks]; answered with data
  data,            ///< for operation `id`, from byte `value` of its result on
  key_wanted,      ///< tell me the key of your memory
  key,             ///< its bytes; none: my memory cannot be registered
  bundle,          ///< several of the others (Bundle)
};

/// A piece of memory of the target.
struct Block {
  std::uint64_t address = 0;  ///< from the window's start; in a dynamic window the address itself
  std::uint64_t bytes = 0;
};

[[nodiscard]] inline std::uint64_t bytes_of(std::span<const Block> blocks) noexcept {
  std::uint64_t bytes = 0;
  for (const Block& each : blocks) bytes += each.bytes;
  return bytes;
}

/// In front of each message; behind it `block_count` blocks and the payload.
///
/// Messages of a window from one rank to another are numbered and handled in their order, whatever
/// order BTLs deliver them in.
struct MessageHead {
  std::uint32_t window = 0;       ///< number of its communicator
  std::uint32_t incarnation = 0;  ///< of the window: the number is used again
  Rank source = 0;
  std::uint32_t sequence = 0;  ///< not of one in a bundle
  Kind kind{};
  Notice notice{};
  LockType lock_type{};
  bool is_row = false;  ///< of puts or accumulates: behind each block its bytes, then the next one
  std::uint32_t block_count = 0;
  std::uint32_t id = 0;       ///< of a notice's access, or an operation that is answered
  std::uint16_t op = 0;       ///< number of a predefined operation, the same in all processes
  std::uint16_t element = 0;  ///< the same of a predefined type
  std::uint64_t value = 0;    ///< notice; data: offset_bytes; else offset_bytes of the answer
};
static_assert(sizeof(MessageHead) == 40 && std::is_trivially_copyable_v<MessageHead>);
static_assert(sizeof(Block) == 16);

}  // namespace overlap::newrma
