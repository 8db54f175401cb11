// The words of verbs and those of fabric.hpp, in both directions. Nothing here needs a device.
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
/// Verbs wants local_write beside remote_write and remote_atomic. iWARP carries the answer to a read as a write, so local memory
/// that may be read into must be remotely writable there. A device without atomics refuses the flag: it is left out.
[[nodiscard]] unsigned access_flags(unsigned rights, bool atomics, bool iwarp) noexcept;

/// @param bytes  256, 512, 1024, 2048 or 4096  @returns  IBV_MTU_*; 0 for other sizes
[[nodiscard]] int mtu_code(std::uint32_t bytes) noexcept;

/// Data rate of a port, 10^6 bytes per second, from the codes that ibv_query_port gives; 0 for unknown codes.
[[nodiscard]] std::uint32_t rate_mbytes_s(std::uint8_t speed_code,
                                          std::uint8_t width_code) noexcept;

/// Is it known of this vendor's adapters that the last byte of a write is stored last?
///
/// Verbs does not promise it. Open MPI, MVAPICH and others have polled the last byte on these for years; the emulation (rxe) was
/// measured here. What is missing answers no.
[[nodiscard]] bool last_byte_known_last(std::uint32_t vendor_id) noexcept;

}  // namespace overlap::fabric::verbs
