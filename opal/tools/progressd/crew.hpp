// The watchers of a helper, and where they sit.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "opal/tools/progressd/options.hpp"
#include "opal/tools/progressd/placement.hpp"
#include "opal/tools/progressd/status.hpp"
#include "opal/tools/progressd/watcher.hpp"

namespace overlap::progressd {

/// @thread  the server's
class Crew {
 public:
  /// @param log  called with one sentence when the helper cannot work, and when it can again
  Crew(const Options& options, std::vector<Core> cores,
       std::function<void(const std::string&)> log);

  /// Let the watchers sit where they should, with these clients.
  void settle(const std::vector<Binding>& clients);
  /// Work, or rest, from the next settle() on.
  void switch_on(bool on) noexcept { on_ = on; }
  /// Of the watchers that work, the one with the fewest clients. @param clients  of each watcher
  [[nodiscard]] std::size_t least_busy(const std::vector<std::size_t>& clients) const;

  [[nodiscard]] std::size_t size() const noexcept { return watchers_.size(); }
  [[nodiscard]] Watcher& operator[](std::size_t i) noexcept { return *watchers_[i]; }
  /// All processors that there are.
  [[nodiscard]] Processors everywhere() const;
  [[nodiscard]] bool is_on() const noexcept { return on_; }
  [[nodiscard]] const std::string& why_off() const noexcept { return why_off_; }
  [[nodiscard]] WatcherStatus status(std::size_t i) const;

 private:
  PlacementWish wish_;
  std::vector<Core> cores_;
  std::function<void(const std::string&)> log_;
  std::vector<std::unique_ptr<Watcher>> watchers_;
  std::vector<std::optional<Processors>> seats_;  ///< of the watchers; nullopt: resting
  std::string why_off_;
  bool on_ = true;
};

}  // namespace overlap::progressd
