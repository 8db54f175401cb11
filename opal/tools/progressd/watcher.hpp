// A thread that looks after clients.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "opal/mca/common/overlap/node/helper_protocol.hpp"
#include "opal/tools/progressd/client.hpp"
#include "opal/tools/progressd/lookout.hpp"

namespace overlap::progressd {

/// The page that a helper shows its clients. @throws std::system_error
class SharedPage {
 public:
  SharedPage();
  ~SharedPage();
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  [[nodiscard]] const Descriptor& file() const noexcept { return file_; }
  [[nodiscard]] node::HelperPage* operator->() const noexcept { return page_; }

 private:
  Descriptor file_;
  node::HelperPage* page_ = nullptr;
};

/// @thread  the server's for what is public, except where it says otherwise
class Watcher {
 public:
  Watcher(const Patience& patience, std::vector<Core> cores);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  void add(std::shared_ptr<Client> client);
  /// It is not touched any more when this returns.
  void remove(std::shared_ptr<Client> client);
  /// Look from there, or (nullopt) not at all. Nobody is watched any more when this returns.
  void move(const std::optional<Processors>& to);
  void nudge() noexcept { call(nudged); }

  [[nodiscard]] const Descriptor& page() const noexcept { return page_.file(); }
  [[nodiscard]] node::HelperState state() const noexcept {
    return page_->state.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const Tally& tally() const noexcept { return lookout_.tally(); }
  [[nodiscard]] std::uint64_t processor_ns() noexcept;

  // --- the host of Lookout; @thread  its own --------------------------------------------------
  [[nodiscard]] std::size_t clients() const noexcept { return clients_.size(); }
  [[nodiscard]] Sight& sight(std::size_t i) noexcept { return clients_[i]->sight; }
  [[nodiscard]] std::uint64_t now_ns() noexcept;
  [[nodiscard]] bool is_armed(std::size_t i) const noexcept { return clients_[i]->is_armed(); }
  [[nodiscard]] std::uint64_t wakes(std::size_t i) const noexcept {
    return clients_[i]->area->wakes.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t turns(std::size_t i) const noexcept {
    return clients_[i]->area->turns.load(std::memory_order_acquire);
  }
  void watch(std::size_t i) noexcept { clients_[i]->watch(coarse_ms_, ahead_ms_); }
  void unwatch(std::size_t i) noexcept { clients_[i]->unwatch(); }
  [[nodiscard]] Taken take(std::size_t i) noexcept { return clients_[i]->take(); }
  [[nodiscard]] bool is_still_waited_for(std::size_t i) const noexcept {
    return clients_[i]->is_still_waited_for();
  }
  bool wake(std::size_t i) noexcept { return clients_[i]->wake(); }
  void show_awake() noexcept { show(node::HelperState::spinning); }
  void show_napping() noexcept { show(node::HelperState::napping); }
  void show_sleeping() noexcept { show(node::HelperState::sleeping); }
  [[nodiscard]] bool is_called() const noexcept { return called_.load() != 0; }

 private:
  static constexpr std::uint32_t nudged = 1, mail = 2;

  /// What the server has asked for since the thread last looked.
  struct Orders {
    std::vector<std::shared_ptr<Client>> joining;
    std::vector<std::shared_ptr<Client>> leaving;
    std::optional<std::optional<Processors>> place;
    bool ending = false;
  };

  /// Give orders and wait until they have been carried out.
  template <class Change>
  void order(Change change);
  void call(std::uint32_t what) noexcept;
  void show(node::HelperState state) noexcept { page_->state.store(state); }  // N3
  void run();
  [[nodiscard]] bool obey();
  void leave(const std::shared_ptr<Client>& client);
  void sit(const std::optional<Processors>& at);
  void pause(const Pause& pause);

  SharedPage page_;
  std::vector<Core> cores_;
  std::vector<std::shared_ptr<Client>> clients_;
  Lookout<Watcher> lookout_;
  bool resting_ = true;
  std::uint32_t coarse_ms_ = 0;
  std::uint32_t ahead_ms_ = 0;
  std::atomic<std::uint32_t> called_{0};
  std::mutex lock_;  ///< of the next three
  std::condition_variable obeyed_;
  Orders orders_;
  bool pending_ = false;
  std::thread thread_;  ///< last: it uses all of them
};

}  // namespace overlap::progressd
