// Waking the device process, and letting it run where it hurts least.
// SPDX-License-Identifier: BSD-3-Clause
#include "soft_doorbell.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace overlap::fabric::soft {

void SoftDoorbell::put(std::uint32_t number) noexcept {
  Doorbells& doorbells = *doorbells_.as<Doorbells>();
  if (tail_ - doorbells.head.load(std::memory_order_acquire) <
      Doorbells::entries) {  // D4, pairs with D3
    doorbells.rings[tail_++ % Doorbells::entries] = number;
  } else {
    overflow_ = true;
  }
}

void SoftDoorbell::ring() noexcept {
  Doorbells& doorbells = *doorbells_.as<Doorbells>();
  doorbells.tail.store(tail_, std::memory_order_seq_cst);                 // D1, P of DevicePage
  if (overflow_) doorbells.overflow.store(1, std::memory_order_seq_cst);  // P
  overflow_ = false;
  DevicePage& page = *page_.as<DevicePage>();
  const std::uint32_t state = page.state.load(std::memory_order_seq_cst);  // L
  if (state == doze::awake) return;
  if (state == doze::napping) {
    page.noted.store(process_, std::memory_order_relaxed);
    return;
  }
  if (page.cpu.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(::sched_getcpu()))
    move_device(false);
  wake_device();
}

void SoftDoorbell::wake_device() noexcept {
  if (page_.as<DevicePage>()->state.exchange(doze::awake, std::memory_order_seq_cst) == doze::awake)
    return;  // somebody else wakes it
  const std::uint64_t one = 1;
  static_cast<void>(!::write(descriptor_.get(), &one, sizeof(one)));
}

void SoftDoorbell::wait_for_device() noexcept {
  DevicePage& page = *page_.as<DevicePage>();
  constexpr std::int64_t fresh_ns = 10'000;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ns = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  if (now_ns - page.waited_ns.load(std::memory_order_relaxed) > fresh_ns)
    page.waited_ns.store(now_ns, std::memory_order_relaxed);
  const std::uint32_t poster = page.noted.load(std::memory_order_relaxed);
  if (poster == 0 || page.state.load(std::memory_order_relaxed) != doze::napping) return;
  page.noted.store(0, std::memory_order_relaxed);
  // Another one that has posted computes. Who waits for its own message shall not keep the peer's
  // from being noticed: the device runs beside the peer.
  const bool here =
      page.cpu.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(::sched_getcpu());
  const bool wanted_here = poster != process_;
  if (here != wanted_here) move_device(wanted_here);
  wake_device();
}

bool SoftDoorbell::arm_arrivals() noexcept {
  // Empty before armed: the byte of what comes after this stays.
  char bytes[16];
  ssize_t count = 0;
  do {
    count = ::read(arrivals_.get(), bytes, sizeof bytes);
  } while (count == static_cast<ssize_t>(sizeof bytes) || (count < 0 && errno == EINTR));
  doorbells_.as<Doorbells>()->armed.exchange(1, std::memory_order_acq_rel);  // D8, pairs with D7
  return count != 0;
}

void SoftDoorbell::end_arrivals() noexcept {
  static_cast<void>(::shutdown(arrivals_.get(), SHUT_RDWR));
}

Descriptor SoftDoorbell::make_silent() noexcept {
  return Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void SoftDoorbell::silence_arrivals() noexcept {
  // The number stays the same: threads and event loops may hold it.
  if (silent_) static_cast<void>(::dup3(silent_.get(), arrivals_.get(), O_CLOEXEC));
}

/// Let the device wake up on another processor than this one, which its poster wants for computing,
/// or on this one, whose client waits anyway. The device may run anywhere (prefer_us() in
/// softdevice_main.cpp); where the call fails it changes nothing.
void SoftDoorbell::move_device(bool here) const noexcept {
  cpu_set_t processors;
  std::memset(&processors, here ? 0 : 0xff, sizeof processors);
  const auto own = static_cast<std::size_t>(::sched_getcpu());
  if (here) {
    CPU_SET(own, &processors);
  } else {
    CPU_CLR(own, &processors);
  }
  static_cast<void>(::sched_setaffinity(device_pid_, sizeof processors, &processors));
}

}  // namespace overlap::fabric::soft
