// Windows of other processes of the node that this process does not map: the kernel copies.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ompi/mca/common/overlap/endpoint.hpp"

#include "osc_newrma_memory.hpp"
#include "osc_newrma_operation.hpp"

namespace overlap::newrma {

/// Where the data of a call begins in the target's memory.
[[nodiscard]] std::uint64_t target_address(const WindowMemory& memory,
                                           const OperationCall& call) noexcept;

/// Do puts and gets on the memory that a call names end inside the call? A refusal is remembered
/// for the window and the rank. @param endpoint  kernel_copies()
[[nodiscard]] bool are_copied_at_once(Endpoint& endpoint, WindowMemory& memory,
                                      const OperationCall& call);

/// Memory of one other rank, read and written by the shared-memory BTL's puts and gets (CMA), which
/// end inside the call. Accumulates are atomic by the lock in the rank's control block, as those of
/// everybody else: the target need not come.
///
/// @thread  progress lock held
class CopiedMemory {
 public:
  /// What a call waits for at once: longer puts and gets go piece by piece, as transfers.
  static constexpr std::uint64_t simple_max_bytes = std::uint64_t{1} << 16U;

  /// @returns  nothing: the kernel does not copy between these two, or has refused to
  [[nodiscard]] static std::optional<CopiedMemory> of(Endpoint& endpoint, WindowMemory& memory,
                                                      const OperationCall& call);

  /// Can it be carried out at all? Elements with gaps only their owner may write: the gaps are not
  /// part of the window's data.
  [[nodiscard]] static bool can_carry_out(const OperationCall& call) noexcept;
  /// Can it without packing, in few copies that one call may wait for?
  [[nodiscard]] static bool is_simple(const OperationCall& call) noexcept;
  /// @param call  a simple one
  /// @returns  false: the kernel has refused, nothing has been written
  [[nodiscard]] bool carry_out(const OperationCall& call);
  /// Carry the messages of an operation out instead of sending them.
  /// @param operation  whose messages are prepared
  /// @param asking     of one that brings nothing back: its owner is asked for each piece first;
  ///                   nullptr: nobody is
  /// @returns  false: the kernel has refused, what is left must be sent
  [[nodiscard]] bool carry_out(RmaOperation& operation, AskingPace* asking);

 private:
  CopiedMemory(Rail& rail, WindowMemory& memory, Rank target, ControlBlock& control) noexcept
      : rail_(rail),
        memory_(memory),
        target_(target),
        address_(memory.address_of(target)),
        control_(control) {}

  [[nodiscard]] bool read(std::uint64_t start, std::span<std::byte> to);
  [[nodiscard]] bool write(std::uint64_t start, std::span<const std::byte> from);
  [[nodiscard]] bool accumulate(const OperationCall& call);
  [[nodiscard]] bool compare_swap(const OperationCall& call, std::span<std::byte> old);
  [[nodiscard]] bool carry_out_message(RmaOperation& operation, std::span<const Block> blocks,
                                       std::span<const std::byte> payload, std::uint64_t position);
  [[nodiscard]] bool write_or_restore(std::span<const Block> blocks,
                                      std::span<const std::byte> payload,
                                      std::span<const std::byte> old, bool fetched);
  void set_places(std::span<const Block> blocks);
  template <class Take>
  [[nodiscard]] bool read_blocks(std::span<const Block> blocks, Take&& take);
  [[nodiscard]] bool write_blocks(std::span<const Block> blocks,
                                  std::span<const std::byte> payload);
  [[nodiscard]] bool accumulate_blocks(const OperationCall& call, std::span<const Block> blocks,
                                       std::span<const std::byte> payload);

  Rail& rail_;
  WindowMemory& memory_;
  Rank target_;
  std::uint64_t address_;
  ControlBlock& control_;
  bool has_written_ = false;  ///< a part of what is to be carried out
  bool scatters_ = true;      ///< the kernel has not refused to
  std::vector<node::Place> places_;
};

/// Give back the memory that long data has lain in.
void forget_buffers() noexcept;

}  // namespace overlap::newrma
