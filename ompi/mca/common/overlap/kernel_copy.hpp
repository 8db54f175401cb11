// Copies between this process and another one of its node that end inside the call.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "ompi/mca/common/overlap/endpoint.hpp"

namespace overlap {

/// The rail over which puts and gets to a process go without a message for each: there is one, and
/// it also carries the messages, so that none overtakes a put. @returns  nullptr: there is none
[[nodiscard]] Rail* transfer_rail(Endpoint& endpoint) noexcept;
/// Does that rail want a key of the target (an adapter does, the kernel's copy does not)?
[[nodiscard]] inline bool needs_key(const Rail& rail) noexcept {
  return rail.btl().btl_register_mem != nullptr;
}
/// Does the kernel copy between these two processes of a node, without a key? Adapters that connect
/// processes of a node do not.
[[nodiscard]] bool kernel_copies(Endpoint& endpoint) noexcept;
/// Do puts and gets of any bytes over a rail of shared memory end inside the call? A BTL that
/// emulates them with messages needs the target's progress. Asked by a get of one byte, because
/// BTLs do not say so, until one has ended or is under way.
/// @param address  of some memory of the other process
[[nodiscard]] bool copies_at_once(Rail& rail, std::uint64_t address);

/// A BTL's put or get.
using CopyFunction = std::remove_pointer_t<mca_btl_base_module_put_fn_t>;
/// Copy between `own` and `address` of the other process. @param rail  copies_at_once()
/// @returns  false: the kernel refuses; a part may have been copied
[[nodiscard]] bool copy_at_once(Rail& rail, CopyFunction* by, std::uint64_t address,
                                std::span<std::byte> own);

}  // namespace overlap
