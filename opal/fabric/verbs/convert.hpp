// The words of verbs and those of fabric.hpp, in both directions. Nothing here needs a device.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <infiniband/verbs.h>

#include "opal/fabric/fabric.hpp"

namespace overlap::fabric::verbs {

[[nodiscard]] CompletionStatus completion_status(ibv_wc_status status) noexcept;

/// Of a successful completion. Verbs does not tell a send or write with immediate from one without.
[[nodiscard]] Opcode completion_opcode(ibv_wc_opcode opcode) noexcept;

/// One successful or failed completion, but for queue_pair_number.
[[nodiscard]] Completion completion(const ibv_wc& entry) noexcept;

/// @param opcode  anything but Opcode::receive
[[nodiscard]] ibv_wr_opcode work_opcode(Opcode opcode) noexcept;

/// What a device must be asked for so that `rights` hold.
///
/// Verbs wants local_write beside remote_write and remote_atomic. iWARP carries the answer to a
/// read as a write, so local memory that may be read into must be remotely writable there. A device
/// without atomics refuses the flag: it is left out.
[[nodiscard]] unsigned access_flags(unsigned rights, bool atomics, bool iwarp) noexcept;

/// Change of a path what the options ask for: service level, and where packets carry a global
/// header (RoCE does) its traffic class and our address.
void set_path(ibv_ah_attr& path, const VerbsOptions& options) noexcept;

/// @param bytes  256, 512, 1024, 2048 or 4096  @returns  IBV_MTU_*; 0 for other sizes
[[nodiscard]] int mtu_code(std::uint32_t bytes) noexcept;

/// Data rate of a port, 10^6 bytes per second, from the codes that ibv_query_port gives; 0 for
/// unknown codes.
[[nodiscard]] std::uint32_t rate_mbytes_s(std::uint8_t speed_code,
                                          std::uint8_t width_code) noexcept;

/// Which of a device's interrupts tells a process of its arrivals: those of a node, whose numbers
/// mostly follow each other, share all of them.
[[nodiscard]] int completion_vector(int vectors, int process) noexcept;

/// @returns  bytes of a packet, 0 for an unknown code
[[nodiscard]] std::uint32_t mtu_bytes(int code) noexcept;

/// What is known of a vendor's adapters: is the last byte of a write stored last?
///
/// Verbs does not promise it. Open MPI, MVAPICH and others have polled the last byte on these for
/// years; within one packet none of them is known to reorder. The emulations (rxe, siw) copy the
/// packets in their order with the processor's stores; rxe was measured, too: 600 of 600.
[[nodiscard]] LastByte last_byte_of_vendor(std::uint32_t vendor_id) noexcept;

}  // namespace overlap::fabric::verbs
