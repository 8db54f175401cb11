// What --status prints: JSON for programs, made by the helper; a text for people, made of it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace overlap::progressd {

struct WatcherStatus {
  std::string processors{};  ///< empty: not bound
  std::string state{};       ///< spinning, napping, sleeping, off
  std::uint64_t clients = 0;
  std::uint64_t wakes = 0;
  std::uint64_t polled = 0;
  std::uint64_t obsolete = 0;
  std::uint64_t unwanted = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t processor_us = 0;
};

/// As its area says, which may hold anything.
struct ClientStatus {
  int process = 0;
  std::uint64_t job = 0;
  std::int32_t local_rank = 0;
  std::uint64_t helper = 0;
  std::string doze{};
  bool watched = false;
  std::uint64_t waits = 0;
  std::uint64_t wakes = 0;
  std::uint64_t wakes_futile = 0;
};

struct Status {
  std::string version{};
  int process = 0;
  bool on = true;
  std::string why_off{};  ///< empty: it works, or was switched off
  bool exit_when_idle = false;
  std::uint64_t processor_us = 0;
  std::uint64_t wakes_futile = 0;  ///< of clients, those that have left included
  std::vector<WatcherStatus> helpers{};
  std::vector<ClientStatus> clients{};
};

[[nodiscard]] std::string json_of(const Status& status);
/// @param json  of a helper, maybe of another version
/// @returns  a text; empty: it is no such JSON
[[nodiscard]] std::string text_of_json(const std::string& json);

}  // namespace overlap::progressd
