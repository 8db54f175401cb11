// Watchers and their seats.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/crew.hpp"

namespace overlap::progressd {
namespace {

const char* word_of(node::HelperState state) {
  switch (state) {
    case node::HelperState::spinning: return "spinning";
    case node::HelperState::napping: return "napping";
    case node::HelperState::sleeping: return "sleeping";
    case node::HelperState::off: return "off";
  }
  return "unknown";
}

}  // namespace

Crew::Crew(const Options& options, std::vector<Core> cores,
           std::function<void(const std::string&)> log)
    : wish_(options.placement), cores_(std::move(cores)), log_(std::move(log)) {
  Patience patience;
  patience.spin_ns = std::uint64_t{options.spin_ms} * 1'000'000U;
  for (std::size_t i = 0; i < wish_.helpers; ++i)
    watchers_.push_back(std::make_unique<Watcher>(patience, cores_));
  seats_.resize(watchers_.size());
}

void Crew::settle(const std::vector<Binding>& clients) {
  const Placement placement = place(cores_, clients, wish_);
  if (placement.refusal != why_off_) {
    why_off_ = placement.refusal;
    log_(why_off_.empty() ? "works again" : "rests: " + why_off_);
  }
  for (std::size_t i = 0; i < watchers_.size(); ++i) {
    std::optional<Processors> seat;
    if (on_ && i < placement.helpers.size()) seat = placement.helpers[i];
    if (seat != seats_[i]) watchers_[i]->move(seat);
    seats_[i] = std::move(seat);
  }
}

std::size_t Crew::least_busy(const std::vector<std::size_t>& clients) const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < watchers_.size(); ++i) {
    if (seats_[i] && clients[i] < clients[best]) best = i;
  }
  return best;
}

Processors Crew::everywhere() const {
  Processors all;
  for (const Core& core : cores_) all.insert(core.processors.begin(), core.processors.end());
  return all;
}

WatcherStatus Crew::status(std::size_t i) const {
  Watcher& watcher = *watchers_[i];
  const Tally& tally = watcher.tally();
  return {.processors = seats_[i] ? text_of(*seats_[i]) : "",
          .state = word_of(watcher.state()),
          .clients = 0,
          .wakes = tally.wakes,
          .polled = tally.polled,
          .obsolete = tally.obsolete,
          .unwanted = tally.unwanted,
          .sleeps = tally.sleeps,
          .processor_us = watcher.processor_ns() / 1000U};
}

}  // namespace overlap::progressd
