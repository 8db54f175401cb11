// The collectives of a communicator, or a persistent one of its own: messages out and in.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll_mq.hpp"

#include <span>
#include <vector>

#include "ompi/mca/common/overlap/endpoint.hpp"

#include "coll_mq_request.hpp"
#include "protocol/interpreter.hpp"
#include "protocol/message_head.hpp"
#include "protocol/partial_messages.hpp"

namespace overlap::coll_mq {

/// Carries out what the interpreter answers.
///
/// What a BTL has no room for waits in its endpoint, bounded by the window. A message for a process
/// without an endpoint, which the interrupt thread must not make, is left to the next MPI call.
///
/// @thread  progress lock held
class Stream {
 public:
  Stream(Communicator& communicator, std::uint32_t number, std::uint32_t window)
      : communicator_(communicator), number_(number), interpreter_(window) {}
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] PlanId add(Plan plan);
  [[nodiscard]] const Plan& plan(PlanId id) const noexcept { return interpreter_.plan(id); }
  /// @param execution  started; lives until it is over
  /// @thread  MPI thread
  void start(PlanId plan, Execution& execution);
  void receive(const MessageHead& head, std::span<const std::byte> payload);
  /// Send what was left. @thread  MPI thread
  void resume();

 private:
  void connect();
  void run();
  void perform(const Action& action);
  void send(const Action& action);
  void send_parts(Endpoint& endpoint, MessageHead head, Execution* execution,
                  std::span<const std::byte> payload);
  void receive_whole(const MessageHead& head, std::span<const std::byte> payload);

  Communicator& communicator_;
  const std::uint32_t number_;
  Interpreter interpreter_;
  std::vector<Endpoint*> endpoints_;  ///< [edge], nullptr: none yet
  std::vector<std::byte> message_;    ///< that is being sent
  PartialMessages partial_;
  bool running_ = false;
};

}  // namespace overlap::coll_mq
