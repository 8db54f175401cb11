// Faults on command: what a test can make a software device do. Also behind overlap-softdevice's
// options.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "opal/fabric/fabric.hpp"
#include "shared_memory.hpp"

namespace overlap::fabric::soft {

/// A tester's connection to a running device process. All calls throw Error(system) when the device
/// is gone or knows nothing of the number named. Queue pairs are named by QueuePair::number(),
/// which is unique in the device.
class SoftFaults {
 public:
  /// @throws Error: no_device when no device process runs for this domain
  explicit SoftFaults(const std::string& domain);

  struct PairInfo {
    std::uint32_t pair = 0;
    std::uint32_t peer_pair = 0;  ///< 0: not connected
    std::uint32_t client = 0;
    std::uint32_t peer_client = 0;
    std::uint32_t node = 0;
    std::int32_t process = 0;  ///< pid of the client, as the device sees it
  };
  [[nodiscard]] std::vector<PairInfo> list();

  /// Treat a client as if its process had been killed. Its device sees the end of the device
  /// process.
  void end_client(std::uint32_t client);
  /// The next request of this queue pair that arrives at its peer is not executed and ends with
  /// this status.
  void fail_next(std::uint32_t pair, CompletionStatus status);
  /// Execute nothing of this queue pair until resumed.
  void stall(std::uint32_t pair);
  void resume(std::uint32_t pair);
  /// Requests of this queue pair arrive so much later, from now on.
  void delay(std::uint32_t pair, std::uint64_t delay_ns);
  /// What is on a node's link stands still until it is up again.
  void link_down(std::uint32_t node);
  void link_up(std::uint32_t node);
  /// The last byte of each message of this queue pair arrives so much after the others.
  void tear(std::uint32_t pair, std::uint64_t pause_ns);
  /// The next connection requests to a client do not arrive; the askers learn after so long that
  /// nobody answers.
  void lose_requests(std::uint32_t client, std::uint32_t count, std::uint64_t after_ns);
  /// Connection requests to a client arrive so much later, their askers gone or not; 0 ends that.
  void delay_requests(std::uint32_t client, std::uint64_t delay_ns);
  /// A client may not register more bytes in all than this, or than it has registered.
  void limit_memory(std::uint32_t client, std::uint64_t bytes);
  /// End the device process: all its users lose everything.
  void quit();

 private:
  Descriptor socket_;
};

}  // namespace overlap::fabric::soft
