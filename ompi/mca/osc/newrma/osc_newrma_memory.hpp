// The memory of a window: whose is where, and what of it this process maps.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "opal/mca/common/overlap/node/process_memory.hpp"
#include "opal/mca/common/overlap/progress_lock.hpp"

#include "osc_newrma_asked.hpp"
#include "protocol/attached_ranges.hpp"
#include "protocol/epochs.hpp"
#include "protocol/ticket_takers.hpp"

namespace overlap::newrma {

/// How MPI made the window.
enum class Flavor : std::uint8_t { create, allocate, shared, dynamic };

/// What the calls that make a window say at one rank.
struct WindowCall {
  Flavor flavor{};
  void* base = nullptr;     ///< create
  std::uint64_t bytes = 0;  ///< 0 in a dynamic one
  int displacement_unit = 1;
  bool noncontiguous = false;  ///< shared: each rank's part begins at a page
};

/// One rank's lock, the lock of accumulates into its memory, and what others ask of it. Zero bytes
/// are free ones.
struct alignas(64) ControlBlock {
  WindowLock lock;
  TicketTakers<> takers;  ///< of `lock`
  AskedRow asked;
  node::ProcessFacts process;  ///< its owner's, written before the window is made
  /// Held while an accumulate is applied: processors of all processes that map the memory do that.
  /// A cache line of its own: where others ask, its owner takes it, and they take the lock.
  alignas(64) std::atomic_flag accumulating;
};

/// Holds the accumulates of others up.
class AccumulateGuard {
 public:
  explicit AccumulateGuard(ControlBlock& block) noexcept : block_(block) {
    // Who has it is through in some microseconds, or has lost its processor. To yield costs a time
    // slice where others compute.
    constexpr unsigned looks_max = 2000;
    unsigned looks = 0;
    // A2, pairs with A1: what the last one has written.
    while (block_.accumulating.test_and_set(std::memory_order_acquire)) {
      while (++looks % looks_max != 0 && block_.accumulating.test(std::memory_order_relaxed))
        LinuxPlatform::pause();
      if (looks % looks_max == 0) sched_yield();
    }
  }
  ~AccumulateGuard() { block_.accumulating.clear(std::memory_order_release); }  // A1
  AccumulateGuard(const AccumulateGuard&) = delete;
  AccumulateGuard& operator=(const AccumulateGuard&) = delete;

 private:
  ControlBlock& block_;
};

/// A call ends whose operations are then at their targets: what this process has stored in memory
/// that others map is there before it loads anything. Processors keep stores back, and two ranks
/// that put, flush and get would both miss what the other one has put.
inline void await_stores() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

/// Memory of all ranks of one window.
///
/// Ranks of a node share a memory file without a name: their control blocks, in dynamic windows
/// what each has attached, what is known of all ranks of the window, and in windows that MPI
/// allocates their data. Where the kernel refuses it each has its own, and nobody maps others'.
class WindowMemory {
 public:
  /// Collective over `comm`, which has no other use meanwhile.
  /// @returns  OMPI_SUCCESS or, at all ranks alike, an error code
  [[nodiscard]] int make(ompi_communicator_t& comm, const WindowCall& call);
  WindowMemory() = default;
  ~WindowMemory();
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;

  [[nodiscard]] Flavor flavor() const noexcept { return call_.flavor; }
  /// Is it memory that MPI has allocated?
  [[nodiscard]] bool allocates() const noexcept {
    return call_.flavor == Flavor::allocate || call_.flavor == Flavor::shared;
  }
  [[nodiscard]] std::byte* own() const noexcept { return own_; }
  [[nodiscard]] std::uint64_t own_bytes() const noexcept { return call_.bytes; }
  [[nodiscard]] int own_displacement_unit() const noexcept { return call_.displacement_unit; }
  [[nodiscard]] std::uint64_t bytes_of(Rank rank) const noexcept {
    return ranks_[static_cast<std::size_t>(rank)].bytes;
  }
  [[nodiscard]] std::uint64_t address_of(Rank rank) const noexcept {
    return ranks_[static_cast<std::size_t>(rank)].address;
  }
  [[nodiscard]] int displacement_unit_of(Rank rank) const noexcept {
    return ranks_[static_cast<std::size_t>(rank)].displacement_unit;
  }
  /// Start of a rank's memory here. @returns  nullptr: not mapped
  [[nodiscard]] std::byte* data_of(Rank rank) const noexcept;
  /// The same for the program, which sees no memory where a rank has none of its own.
  [[nodiscard]] std::byte* visible_data_of(Rank rank) const noexcept {
    return call_.noncontiguous && bytes_of(rank) == 0 ? nullptr : data_of(rank);
  }
  /// @returns  nullptr: not mapped. Its own always is.
  [[nodiscard]] ControlBlock* control_of(Rank rank) const noexcept;
  /// The kernel has refused to copy to or from a rank's memory: memory that may not be written, or
  /// not now. It is not asked again.
  void refuse_copies(Rank rank) { refused_.push_back(rank); }
  [[nodiscard]] bool refuses_copies(Rank rank) const noexcept {
    return std::ranges::find(refused_, rank) != refused_.end();
  }
  /// Are there ranks on other nodes?
  [[nodiscard]] bool spans_nodes() const noexcept { return spans_nodes_; }
  /// Do others of the node reach this rank's control block, and not its data?
  [[nodiscard]] bool is_asked() const noexcept {
    return call_.flavor == Flavor::create && mapped_controls_ > 1;
  }
  /// Ranks whose data is mapped, this one among them.
  [[nodiscard]] const std::vector<Rank>& mapped_ranks() const noexcept { return mapped_; }

  // Memory of a dynamic window; addresses are those of the process that owns it.

  /// @returns  OMPI_SUCCESS, or an MPI error class: overlaps what is attached, out of memory
  [[nodiscard]] int attach(void* base, std::uint64_t bytes);
  [[nodiscard]] int detach(const void* base);
  /// This process's memory at an address of a message. @returns  nullptr: not part of the window
  [[nodiscard]] std::byte* find(std::uint64_t address, std::uint64_t bytes) const noexcept;
  /// Has a rank attached all of this? Unknown at other nodes.
  [[nodiscard]] Attached knows_attached(Rank rank, std::uint64_t address,
                                        std::uint64_t bytes) const noexcept;

 private:
  /// One rank, as all ranks of this node know it.
  struct RankFacts {
    std::uint64_t bytes = 0;
    std::int32_t displacement_unit = 1;
    Rank node_first = 0;             ///< the first rank of its node
    std::int32_t mapped_index = -1;  ///< among the ranks of this node
    std::uint64_t address = 0;       ///< of its memory, at itself
  };
  using AllFacts = std::vector<RankFacts>;

  [[nodiscard]] int exchange_facts(ompi_communicator_t& comm, Rank node_first, AllFacts& all);
  [[nodiscard]] int exchange_addresses(ompi_communicator_t& comm, bool is_first);
  [[nodiscard]] bool share(ompi_communicator_t& node, AllFacts& all,
                           const std::vector<Rank>& locals);
  [[nodiscard]] bool keep_to_itself(AllFacts& all);
  void write_facts(AllFacts& all, const std::vector<Rank>& locals);
  void place(const std::vector<Rank>& locals, std::size_t ranks);
  [[nodiscard]] std::uint64_t place_data(const AllFacts& all, const std::vector<Rank>& locals);
  [[nodiscard]] std::size_t facts_offset() const noexcept;
  [[nodiscard]] PublishedRanges<>* published_of(Rank rank) const noexcept;

  WindowCall call_;
  Rank self_ = 0;
  std::byte* own_ = nullptr;
  std::span<RankFacts> ranks_;          ///< in the segment
  std::vector<std::uint64_t> offsets_;  ///< of the data of each rank of the node in the segment
  std::vector<Rank> mapped_;
  std::vector<Rank> refused_;        ///< refuse_copies(); mostly empty
  std::size_t mapped_controls_ = 0;  ///< ranks whose control blocks are mapped, its own included
  bool spans_nodes_ = false;
  void* segment_ = nullptr;
  std::uint64_t segment_bytes_ = 0;
  AttachedRanges attached_;
};

}  // namespace overlap::newrma
