// A tester's side of the control socket.
// SPDX-License-Identifier: BSD-3-Clause
#include "soft_faults.hpp"

#include <cerrno>
#include <cstring>

#include "control.hpp"

namespace overlap::fabric::soft {
namespace {

/// @returns  the reply, its status 0
Message ask_device(int socket, const Message& ask) {
  Message reply;
  if (send_message(socket, ask) != Transfer::done ||
      receive_message(socket, reply, nullptr, true) != Transfer::done) {
    throw Error(Error::Kind::system, "the software device process has ended");
  }
  return reply;
}

void command(int socket, const Message& ask) {
  const Message reply = ask_device(socket, ask);
  if (reply.status == ENOENT)
    throw Error(Error::Kind::system, "the software device knows nothing of this number");
  if (reply.status != 0)
    throw Error(Error::Kind::system,
                std::string("the software device refuses: ") + std::strerror(reply.status));
}

[[nodiscard]] Message about(Ask ask, std::uint32_t first, std::uint32_t second = 0) {
  Message message;
  message.ask = ask;
  message.numbers[0] = first;
  message.numbers[1] = second;
  return message;
}

}  // namespace

SoftFaults::SoftFaults(const std::string& domain) : socket_(connect_to(socket_name(domain))) {
  int pid = 0;
  if (!socket_ || !is_same_user(socket_.get(), pid)) {
    throw Error(Error::Kind::no_device,
                "no software device process runs for domain \"" + domain + "\"");
  }
}

std::vector<SoftFaults::PairInfo> SoftFaults::list() {
  std::vector<PairInfo> pairs;
  for (std::uint32_t i = 0;; ++i) {
    const Message reply = ask_device(socket_.get(), about(Ask::list, i));
    if (reply.status != 0) return pairs;
    pairs.push_back({.pair = reply.numbers[0],
                     .peer_pair = reply.numbers[1],
                     .client = reply.numbers[2],
                     .peer_client = reply.numbers[3],
                     .node = reply.numbers[4],
                     .process = static_cast<std::int32_t>(reply.values[0])});
  }
}

void SoftFaults::end_client(std::uint32_t client) {
  command(socket_.get(), about(Ask::end_client, client));
}

void SoftFaults::fail_next(std::uint32_t pair, CompletionStatus status) {
  command(socket_.get(), about(Ask::fail_next, pair, static_cast<std::uint32_t>(status)));
}

void SoftFaults::stall(std::uint32_t pair) { command(socket_.get(), about(Ask::stall, pair, 1)); }

void SoftFaults::resume(std::uint32_t pair) { command(socket_.get(), about(Ask::stall, pair, 0)); }

void SoftFaults::delay(std::uint32_t pair, std::uint64_t delay_ns) {
  Message ask = about(Ask::delay, pair);
  ask.values[0] = delay_ns;
  command(socket_.get(), ask);
}

void SoftFaults::link_down(std::uint32_t node) {
  command(socket_.get(), about(Ask::link_down, node, 1));
}

void SoftFaults::link_up(std::uint32_t node) {
  command(socket_.get(), about(Ask::link_down, node, 0));
}

void SoftFaults::tear(std::uint32_t pair, std::uint64_t pause_ns) {
  Message ask = about(Ask::tear, pair);
  ask.values[0] = pause_ns;
  command(socket_.get(), ask);
}

void SoftFaults::lose_requests(std::uint32_t client, std::uint32_t count, std::uint64_t after_ns) {
  Message ask = about(Ask::lose_requests, client, count);
  ask.values[0] = after_ns;
  command(socket_.get(), ask);
}

void SoftFaults::delay_requests(std::uint32_t client, std::uint64_t delay_ns) {
  Message ask = about(Ask::delay_requests, client);
  ask.values[0] = delay_ns;
  command(socket_.get(), ask);
}

void SoftFaults::limit_memory(std::uint32_t client, std::uint64_t bytes) {
  Message ask = about(Ask::limit_memory, client);
  ask.values[0] = bytes;
  command(socket_.get(), ask);
}

void SoftFaults::quit() { command(socket_.get(), about(Ask::quit, 0)); }

}  // namespace overlap::fabric::soft
