// The control socket, from its opening to the device's end.
// SPDX-License-Identifier: BSD-3-Clause
#include "soft_link.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "soft_start.hpp"

namespace overlap::fabric::soft {
namespace {

constexpr const char* device_ended = "the software device process ended";
constexpr const char* device_silent =
    "the software device process does not answer (is it stopped, or is the host out of processor "
    "time?)";
constexpr int open_attempts = 500;
constexpr long attempt_pause_ns = 10'000'000;

/// Let blocking calls on the socket end with EAGAIN after that time.
void limit_waiting(int socket, std::uint32_t timeout_ms) noexcept {
  const timeval limit{static_cast<time_t>(timeout_ms / 1000),
                      static_cast<suseconds_t>(timeout_ms % 1000 * 1000)};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

}  // namespace

SoftLink::SoftLink(const SoftOptions& options, LinkUser& user) : user_(user) {
  open(options);
  check_access();
}

void SoftLink::open(const SoftOptions& options) {
  const std::string name = socket_name(options.domain);
  // A device that is just ending takes the connection and closes it without a word: try again, and
  // start another.
  for (int attempt = 0; attempt < open_attempts; ++attempt) {
    socket_ = connect_to(name);
    if (socket_) {
      limit_waiting(socket_.get(), options.device_timeout_ms);
      if (!is_same_user(socket_.get(), welcome_.device_pid)) {
        throw Error(Error::Kind::no_permission,
                    "the software device's socket belongs to another user; choose another domain");
      }
      if (say_hello(options)) return;
    } else if (errno == ECONNREFUSED) {
      start_device(find_program(options.program), options.domain);
      continue;
    } else if (errno != EAGAIN) {  // EAGAIN: more wait than the queue of connections holds
      throw Error(Error::Kind::system,
                  std::string("cannot reach the software device: ") + std::strerror(errno));
    }
    const timespec pause{0, attempt_pause_ns};
    ::nanosleep(&pause, nullptr);
  }
  throw Error(Error::Kind::system, "the software device does not answer (5 s)");
}

bool SoftLink::say_hello(const SoftOptions& options) {
  // Before the device is asked to look into our memory. There is one such setting in a process: one
  // that names the device alone would take away what Open MPI's shared memory BTL has asked for.
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0UL, 0UL, 0UL);
  Message hello;
  hello.ask = Ask::hello;
  hello.numbers[0] = layout_version;
  hello.numbers[1] = options.node;
  hello.numbers[2] = options.receive_retry_count;
  hello.numbers[3] = static_cast<std::uint32_t>(options.task_ns);
  hello.values = {options.bandwidth_mbytes_s, options.latency_ns, options.message_ns,
                  options.receive_retry_ns, options.answer_timeout_ms * 1'000'000};
  Message reply;
  Attached attached;
  if (send_message(socket_.get(), hello) != Transfer::done ||
      receive_message(socket_.get(), reply, &attached, true) != Transfer::done) {
    return false;
  }
  if (reply.status != 0) {
    throw Error(Error::Kind::system,
                std::string("the software device refuses: ") + std::strerror(reply.status));
  }
  welcome_.page = Mapping::map(attached[0].get(), 0, sizeof(DevicePage));
  welcome_.doorbells = Mapping::map(attached[1].get(), 0, sizeof(Doorbells));
  welcome_.doorbell = std::move(attached[2]);
  welcome_.arrivals = std::move(attached[3]);
  if (!welcome_.page || !welcome_.doorbells || !welcome_.doorbell || !welcome_.arrivals) {
    throw Error(Error::Kind::system,
                std::string("cannot map the software device's memory: ") + std::strerror(errno));
  }
  welcome_.client = reply.numbers[0];
  welcome_.instance = reply.values[0];
  return true;
}

/// Does the kernel let the device copy from and to our memory?
void SoftLink::check_access() {
  volatile std::uint64_t known = welcome_.instance ^ reinterpret_cast<std::uintptr_t>(this);
  Message ask_probe;
  ask_probe.ask = Ask::probe;
  ask_probe.values[0] = reinterpret_cast<std::uintptr_t>(&known);
  ask_probe.values[1] = known;
  Message reply;
  const int failure = ask(ask_probe, reply);
  if (failure == 0) return;
  if (failure == EPIPE) throw Error(Error::Kind::system, lost_why_);
  throw Error(
      Error::Kind::no_permission,
      std::string("the kernel does not let the software device copy this process's memory (") +
          std::strerror(failure) +
          "); set kernel.yama.ptrace_scope to 0 or 1, and allow process_vm_readv in containers");
}

// --- Asking ----------------------------------------------------------------------------

int SoftLink::ask(const Message& message, Message& reply, const int* descriptors,
                  std::size_t count) noexcept {
  if (lost()) return EPIPE;
  const auto broken = [this](Transfer outcome) {
    lose(outcome == Transfer::would_block ? device_silent : device_ended);
    return EPIPE;
  };
  if (const Transfer sent = send_message(socket_.get(), message, descriptors, count);
      sent != Transfer::done)
    return broken(sent);
  for (;;) {
    if (const Transfer received = receive_message(socket_.get(), reply, nullptr, true);
        received != Transfer::done)
      return broken(received);
    if (reply.ask == message.ask) return reply.status;
    if (reply.ask == Ask::event) user_.take_event(reply);
  }
}

std::uint32_t SoftLink::make(const Message& message, int descriptor, const char* what) {
  Message reply;
  const int failure = ask(message, reply, &descriptor, 1);
  if (failure == EPIPE) throw Error(Error::Kind::system, lost_why_);
  if (failure != 0)
    throw Error(Error::Kind::system, std::string("the software device makes no ") + what + ": " +
                                         std::strerror(failure));
  return reply.numbers[0];
}

void SoftLink::drop(Ask what, std::uint32_t number) noexcept {
  Message message;
  message.ask = what;
  message.numbers[0] = number;
  Message reply;
  static_cast<void>(ask(message, reply));
}

void SoftLink::look_for_end() noexcept {
  while (!lost()) {
    Message message;
    switch (receive_message(socket_.get(), message, nullptr, false)) {
      case Transfer::would_block: return;
      case Transfer::ended: lose(device_ended); return;
      case Transfer::done:
        if (message.ask == Ask::event) user_.take_event(message);
        break;
    }
  }
}

void SoftLink::lose(const char* why) noexcept {
  if (lost()) return;
  lost_why_ = why;
  user_.device_lost(why);
}

}  // namespace overlap::fabric::soft
