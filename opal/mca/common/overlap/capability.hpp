// What a BTL can do beyond Open MPI's BTL interface; a PML asks for it by the BTL's module.
//
// Open MPI's modules have no room for more functions, and components cannot see each other's names.
// This library exists once per process: the BTL leaves its table here, the PML finds it. Without
// one nothing changes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

struct mca_btl_base_module_t;
struct mca_btl_base_endpoint_t;

namespace overlap {

/// Which one-sided operations of the same endpoint a chained message must not overtake.
enum class Behind : std::uint8_t {
  puts,  ///< every put posted before: the peer gets the message after their bytes
  gets,  ///< every get posted before: the peer gets the message when their bytes have been read
};

struct BtlCapability {
  /// Chained completion: post a message right behind puts or gets, so that the peer learns of their
  /// end without this process. It reaches the peer's handler of `tag`, in no order to other
  /// messages. The bytes are copied before return.
  ///
  /// @param bytes   length in [1, chained_max_bytes]
  /// @returns  0 posted (or queued: it is sent, behind what it has to follow, when there is room),
  /// else an error code of Open MPI
  /// @source   P1.2, P1.3; architecture.md rule 5
  int (*send_behind)(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint,
                     std::uint8_t tag, const void* bytes, std::size_t length,
                     Behind behind) noexcept = nullptr;
  std::size_t chained_max_bytes = 0;
  /// The completion of a put means that its bytes are in the peer's memory.
  bool puts_end_at_peer = false;
  /// For btl_register_mem, beside the access: the program may free the memory while it is
  /// registered, whoever uses it then (a window's). The registration is kept out of the cache.
  std::uint32_t lasting_flag = 0;
  /// btl_prepare_src may send a contiguous buffer of at least this size from where it lies (P3.2);
  /// 0: never. The sender asks btl_sendi first, which refuses when it wants that.
  std::size_t in_place_min_bytes = 0;

  /// Can be read when a message with MCA_BTL_DES_FLAGS_SIGNAL has come since arm(); -1: the BTL
  /// wakes nobody. Who is about to sleep on it arms, polls once more, and sleeps.
  int arrival_descriptor = -1;
  void (*arm)() noexcept = nullptr;  ///< if arrival_descriptor is not -1
  /// btl_progress for a thread that is none of MPI's: failures, and connections with processes that
  /// were not expected, are left to the next call of btl_progress. If arrival_descriptor is not -1.
  ///
  /// @thread  arm() too: under the lock that keeps all other calls of the BTL out
  int (*progress_in_thread)() noexcept = nullptr;
  /// Does something wait for the end of what this process has posted, which no arrival tells? Then
  /// poll again after a while. If arrival_descriptor is not -1. @thread  as arm()
  bool (*is_waiting)() noexcept = nullptr;
  /// Who cannot call progress_in_thread: wake those who may sleep over a message that has been sent
  /// to them, before leaving MPI for some time. With expect. @thread  as arm()
  void (*wake_now)() noexcept = nullptr;
  /// Messages may come from this process. Also where arrival_descriptor is -1.
  /// @param senders  0: it never sleeps. Otherwise it may have a thread that sleeps on arrivals,
  ///                 messages to it that have MCA_BTL_DES_FLAGS_SIGNAL are to wake it, and so many
  ///                 processes send to it
  /// @returns  0, or an error code of Open MPI
  int (*expect)(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint,
                std::uint32_t senders) noexcept = nullptr;
};

/// Leave a BTL's table; `capability` stays valid until withdrawn. A second offer replaces the
/// first. @thread MPI_Init, MPI_Finalize only
void offer_capability(const mca_btl_base_module_t* btl, const BtlCapability* capability);
void withdraw_capability(const mca_btl_base_module_t* btl) noexcept;
/// @returns  nullptr when the BTL has none
[[nodiscard]] const BtlCapability* find_capability(const mca_btl_base_module_t* btl) noexcept;

}  // namespace overlap
