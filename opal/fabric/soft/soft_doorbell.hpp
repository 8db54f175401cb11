// A client's side of the shared words by which it and the device process wake each other.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>

#include <cstdint>
#include <utility>

#include "layout.hpp"
#include "soft_link.hpp"

namespace overlap::fabric::soft {

/// Orders: see DevicePage and Doorbells in layout.hpp.
class SoftDoorbell {
 public:
  /// Takes the mappings out of `welcome`.
  explicit SoftDoorbell(Welcome& welcome) noexcept
      : page_(std::move(welcome.page)),
        doorbells_(std::move(welcome.doorbells)),
        descriptor_(std::move(welcome.doorbell)),
        arrivals_(std::move(welcome.arrivals)),
        device_pid_(welcome.device_pid),
        process_(static_cast<std::uint32_t>(::getpid())) {}

  /// Let the device look at a queue.
  void ring(std::uint32_t number) noexcept {
    put(number);
    ring();
  }
  /// Note a queue for the next ring().
  void put(std::uint32_t number) noexcept;
  /// Let the device look at the queues that were noted.
  void ring() noexcept;
  /// This client has polled in vain, again: let the device nap instead of sleep, and wake it when
  /// somebody has posted meanwhile.
  void wait_for_device() noexcept;
  /// Has somebody posted without waking the device?
  [[nodiscard]] bool has_note() const noexcept {
    return page_.as<DevicePage>()->noted.load(std::memory_order_relaxed) != 0;
  }
  /// Events that the device has ever sent to this client.
  [[nodiscard]] std::uint32_t events() const noexcept {
    return doorbells_.as<Doorbells>()->events.load(std::memory_order_acquire);  // D6, pairs with D5
  }

  /// What a thread of this client sleeps on.
  [[nodiscard]] int arrivals() const noexcept { return arrivals_.get(); }
  /// Empty it, and let the device write to it once more.
  /// @returns  false: it stays readable, its other end is closed
  [[nodiscard]] bool arm_arrivals() noexcept;
  /// The device has gone, whether or not its process has: wake a thread that sleeps.
  void end_arrivals() noexcept;
  /// Nothing will come any more: let the descriptor be unreadable for good.
  void silence_arrivals() noexcept;

 private:
  [[nodiscard]] static Descriptor make_silent() noexcept;
  void wake_device() noexcept;
  void move_device(bool here) const noexcept;

  Mapping page_;
  Mapping doorbells_;
  Descriptor descriptor_;
  Descriptor arrivals_;
  Descriptor silent_ =
      make_silent();  ///< made while there are descriptors: without one a sleeper would spin
  int device_pid_;
  std::uint32_t process_;  ///< its own number: one process may be several clients
  std::uint32_t tail_ = 0;
  bool overflow_ = false;
};

}  // namespace overlap::fabric::soft
