// The thread: look, nap, sleep, and do as the server asks.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/watcher.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "opal/tools/progressd/machine.hpp"

namespace overlap::progressd {
namespace {

std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// Ahead of a clock that moves in steps: until after the next step.
std::uint32_t ahead_ms() noexcept {
  timespec step{};
  clock_getres(CLOCK_MONOTONIC_COARSE, &step);
  return 2 + static_cast<std::uint32_t>((step.tv_nsec + 999'999) / 1'000'000);
}

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

SharedPage::SharedPage() : file_(memfd_create("ompi-progressd", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  const auto fail = [] {
    throw std::system_error(errno, std::generic_category(), "no shared memory for clients");
  };
  if (!file_ || ftruncate(file_.get(), sizeof(node::HelperPage)) != 0) fail();
  void* at =
      mmap(nullptr, sizeof(node::HelperPage), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (at == MAP_FAILED) fail();
  page_ = new (at) node::HelperPage;
  if (fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) fail();
  // Clients read only. Kernels before 5.1 do not know this; the worst that a client could do then
  // is to keep others from nudging.
  static_cast<void>(fcntl(file_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL));
}

SharedPage::~SharedPage() {
  if (page_ != nullptr) munmap(page_, sizeof(node::HelperPage));
}

Watcher::Watcher(const Patience& patience, std::vector<Core> cores)
    : cores_(std::move(cores)),
      lookout_(*this, patience),
      ahead_ms_(progressd::ahead_ms()),
      thread_([this] { run(); }) {}

Watcher::~Watcher() {
  order([](Orders& orders) { orders.ending = true; });
  thread_.join();
}

void Watcher::call(std::uint32_t what) noexcept {
  called_.fetch_or(what);
  called_.notify_one();
}

template <class Change>
void Watcher::order(Change change) {
  std::unique_lock held(lock_);
  change(orders_);
  pending_ = true;
  call(mail);
  obeyed_.wait(held, [this] { return !pending_; });
}

void Watcher::add(std::shared_ptr<Client> client) {
  order([&](Orders& orders) { orders.joining.push_back(std::move(client)); });
}

void Watcher::remove(std::shared_ptr<Client> client) {
  order([&](Orders& orders) { orders.leaving.push_back(std::move(client)); });
}

void Watcher::move(const std::optional<Processors>& to) {
  order([&](Orders& orders) { orders.place = to; });
}

std::uint64_t Watcher::processor_ns() noexcept {
  clockid_t clock{};
  return pthread_getcpuclockid(thread_.native_handle(), &clock) == 0 ? clock_ns(clock) : 0;
}

std::uint64_t Watcher::now_ns() noexcept {
  coarse_ms_ = static_cast<std::uint32_t>(clock_ns(CLOCK_MONOTONIC_COARSE) / 1'000'000U);
  return clock_ns(CLOCK_MONOTONIC);
}

void Watcher::run() {
  pthread_setname_np(pthread_self(), "watcher");
  prctl(PR_SET_TIMERSLACK, 1);
  sit(std::nullopt);
  for (;;) {
    if (is_called() && !obey()) return;
    if (resting_)
      called_.wait(0);
    else
      pause(lookout_.round());
  }
}

/// @returns  false: this was the last order
bool Watcher::obey() {
  if ((called_.exchange(0) & mail) == 0) return true;
  const std::lock_guard held(lock_);
  const Orders orders = std::exchange(orders_, {});
  for (const auto& client : orders.leaving) leave(client);
  for (const auto& client : orders.joining) clients_.push_back(client);
  if (orders.place) sit(*orders.place);
  if (orders.ending) sit(std::nullopt);
  pending_ = false;
  obeyed_.notify_all();
  return !orders.ending;
}

void Watcher::leave(const std::shared_ptr<Client>& client) {
  const auto found = std::find(clients_.begin(), clients_.end(), client);
  if (found == clients_.end()) return;
  lookout_.retire(static_cast<std::size_t>(found - clients_.begin()));
  clients_.erase(found);
}

void Watcher::sit(const std::optional<Processors>& at) {
  resting_ = !at.has_value();
  if (resting_) {
    lookout_.retire_all();
    show(node::HelperState::off);
    return;
  }
  bind_this_thread(*at, cores_);
  lookout_.roused();
}

void Watcher::pause(const Pause& pause) {
  switch (pause.kind) {
    case Pause::Kind::none: relax(); return;
    case Pause::Kind::nap: {
      const timespec nap{.tv_sec = 0, .tv_nsec = static_cast<long>(pause.nap_ns)};
      clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
      return;
    }
    case Pause::Kind::sleep: {
      called_.wait(0);
      lookout_.roused();
      return;
    }
  }
}

}  // namespace overlap::progressd
