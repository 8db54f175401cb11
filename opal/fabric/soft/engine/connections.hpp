// Connection requests from their asking to their answer.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "directory.hpp"
#include "objects.hpp"
#include "schedule.hpp"

namespace overlap::fabric::soft {

class Connections {
 public:
  Connections(Host& host, Schedule& schedule, Directory& directory) noexcept
      : host_(host), schedule_(schedule), directory_(directory) {}

  /// Ask a client for a connection; the outcome is an event. @returns  false: the pair is not fresh
  [[nodiscard]] bool connect(Pair& pair, std::uint32_t client, const PrivateData& data);
  /// @returns  false: no such request of this client, or the pair is not fresh
  [[nodiscard]] bool accept(std::uint64_t request, Pair& pair);
  void reject(std::uint64_t request, const Client& client);

  /// Deliver requests that a fault has delayed.
  void deliver_late(Time now);
  /// @returns  when the next of them is due
  [[nodiscard]] Time next_late() const noexcept;

  /// The asker goes: nobody can accept it any more.
  void forget_asker(const Pair& pair);
  /// The asked goes: its askers are told.
  void forget_asked(const Client& client);

 private:
  struct Request {
    Pair* asker = nullptr;
    Client* asked = nullptr;
  };
  using Requests = std::unordered_map<std::uint64_t, Request>;
  /// A connection request that has not arrived, or never will.
  struct Late {
    Time at = 0;
    std::uint64_t request = 0;
    std::uint32_t asked = 0;
    bool lost = false;
    PrivateData data;
  };

  void deliver(const Late& late);
  Requests::iterator fail(Requests::iterator request, Event::Kind kind, const std::string& why);

  Host& host_;
  Schedule& schedule_;
  Directory& directory_;
  Requests requests_;
  std::vector<Late> late_;
  std::uint64_t next_request_ = 1;
};

}  // namespace overlap::fabric::soft
