// The helper's connections: who is a client, and what tools ask.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "opal/mca/common/overlap/node/helper_socket.hpp"
#include "opal/tools/progressd/client.hpp"
#include "opal/tools/progressd/crew.hpp"
#include "opal/tools/progressd/options.hpp"
#include "opal/tools/progressd/status.hpp"

namespace overlap::progressd {

struct ServerLimits {
  std::size_t clients = 1024;
  std::size_t connections = 1088;  ///< clients, tools, and those that have not said what they are
  std::uint64_t hello_ms = 2000;   ///< from connect to the first message
  std::uint64_t first_client_ms = 10'000;  ///< with exit_when_idle: until the first one comes
  std::uint64_t idle_ms = 1000;            ///< after the last one
};

/// Serves until it is told to stop. Sleeps while nothing happens; does nothing that could block on
/// what a client does.
class Server {
 public:
  /// @param listening  of helper_socket_name()
  /// @param signals  readable when the process is to end
  /// @param log  called with one sentence when the helper cannot work, and when it can again
  Server(Descriptor listening, Descriptor signals, const Options& options, std::vector<Core> cores,
         std::function<void(const std::string&)> log, const ServerLimits& limits = {});

  void run();

 private:
  struct Connection {
    Descriptor socket;
    node::Peer peer;
    std::uint64_t since_ms = 0;
    std::shared_ptr<Client> client;  ///< nullptr: a tool, or not known yet
  };
  enum class Keep : std::uint8_t { yes, no };

  [[nodiscard]] int timeout_ms() const;
  void accept_all();
  [[nodiscard]] Keep serve(Connection& connection);
  [[nodiscard]] Keep handle(Connection& connection, const node::HelperRequest& request,
                            node::Attached attached);
  [[nodiscard]] Keep welcome(Connection& connection, const node::HelperRequest& request,
                             node::Attached attached);
  [[nodiscard]] Keep refuse(const Descriptor& socket, node::Refusal why) const;
  [[nodiscard]] std::size_t least_busy(const Client& other) const;
  void drop(Connection& connection);
  void drop_silent();
  void settle();
  [[nodiscard]] std::size_t client_count() const;
  [[nodiscard]] Status status();

  Descriptor listening_;
  Descriptor signals_;
  bool exit_when_idle_;
  ServerLimits limits_;
  std::unique_ptr<Crew> crew_;
  std::vector<Connection> connections_;
  bool ending_ = false;
  bool accepting_ = true;  ///< false: no descriptors are left
  std::uint64_t idle_since_ms_;
  std::uint64_t idle_limit_ms_;
  std::uint64_t futile_of_gone_ = 0;  ///< futile wakes of clients that have left
};

}  // namespace overlap::progressd
