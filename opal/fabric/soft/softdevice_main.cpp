// overlap-softdevice: the process of the software RDMA device, and faults on command.
//
//   overlap-softdevice --domain D
//       become the device of domain D, detached; ends with its last user
//   overlap-softdevice --domain D --foreground
//       the same, not detached
//   overlap-softdevice --domain D --list | --stall QP | ...
//       tell a running one (see --help)
// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "server.hpp"
#include "soft_faults.hpp"

namespace {

using namespace overlap::fabric;
using namespace overlap::fabric::soft;

constexpr const char* help =
    "usage: overlap-softdevice --domain D [--linger-ms N] [--foreground]   be the software RDMA "
    "device of domain D\n"
    "       overlap-softdevice --domain D COMMAND                          tell the device that "
    "runs\n"
    "commands:\n"
    "  --list                    queue pairs: number, peer's number, client, peer's client, node, "
    "process\n"
    "  --stall QP, --resume QP   execute nothing of a queue pair, until resumed\n"
    "  --delay QP NS             let its requests arrive later\n"
    "  --tear QP NS              let the last byte of its messages arrive so much after the "
    "others\n"
    "  --fail-next QP STATUS     its next request ends with this number of CompletionStatus\n"
    "  --end-client ID           treat a client as dead\n"
    "  --lose-requests ID N NS   the next N connection requests to a client do not arrive; their "
    "askers learn it after NS\n"
    "  --delay-requests ID NS    connection requests to a client arrive later\n"
    "  --limit-memory ID BYTES   a client may not register more than this in all\n"
    "  --link-down NODE, --link-up NODE\n"
    "  --quit                    end the device\n";

[[nodiscard]] bool take_number(const char* text, std::uint64_t& out) noexcept {
  char* end = nullptr;
  errno = 0;
  out = std::strtoull(text, &end, 10);
  return errno == 0 && end != text && *end == '\0';
}

/// A command with its numbers. @returns  the exit status
int run_command(const std::string& domain, const std::string& command,
                const std::vector<std::uint64_t>& numbers) {
  SoftFaults faults(domain);
  const auto first = numbers.empty() ? 0U : static_cast<std::uint32_t>(numbers[0]);
  if (command == "--list") {
    for (const SoftFaults::PairInfo& info : faults.list()) {
      std::printf("%u %u %u %u %u %d\n", info.pair, info.peer_pair, info.client, info.peer_client,
                  info.node, info.process);
    }
  } else if (command == "--stall") {
    faults.stall(first);
  } else if (command == "--resume") {
    faults.resume(first);
  } else if (command == "--delay") {
    faults.delay(first, numbers[1]);
  } else if (command == "--tear") {
    faults.tear(first, numbers[1]);
  } else if (command == "--lose-requests") {
    faults.lose_requests(first, static_cast<std::uint32_t>(numbers[1]), numbers[2]);
  } else if (command == "--delay-requests") {
    faults.delay_requests(first, numbers[1]);
  } else if (command == "--limit-memory") {
    faults.limit_memory(first, numbers[1]);
  } else if (command == "--fail-next") {
    faults.fail_next(first, static_cast<CompletionStatus>(numbers[1]));
  } else if (command == "--end-client") {
    faults.end_client(first);
  } else if (command == "--link-down") {
    faults.link_down(first);
  } else if (command == "--link-up") {
    faults.link_up(first);
  } else {
    faults.quit();
  }
  return 0;
}

/// Numbers that a command takes, or -1.
[[nodiscard]] int numbers_of(const std::string& command) noexcept {
  if (command == "--list" || command == "--quit") return 0;
  if (command == "--lose-requests") return 3;
  for (const char* two :
       {"--delay", "--tear", "--fail-next", "--delay-requests", "--limit-memory"}) {
    if (command == two) return 2;
  }
  for (const char* one : {"--stall", "--resume", "--end-client", "--link-down", "--link-up"}) {
    if (command == one) return 1;
  }
  return -1;
}

/// A real adapter does not queue behind the application for a processor. Whatever of this the
/// system refuses, is left.
void prefer_us() noexcept {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  // Whoever started us may have been bound to one processor.
  cpu_set_t everywhere;
  std::memset(&everywhere, 0xff, sizeof everywhere);
  static_cast<void>(::sched_setaffinity(0, sizeof everywhere, &everywhere));
  sched_param priority{};
  priority.sched_priority = 1;
  if (::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &priority) != 0)
    ::setpriority(PRIO_PROCESS, 0, -10);
}

/// Continue in a child; the caller's process ends with the status that the child reports, or 1 when
/// it dies before.
/// @returns  where to report
Descriptor detach() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(1);
  const pid_t child = ::fork();
  if (child < 0) ::_exit(1);
  if (child == 0) {
    ::close(ends[0]);
    return Descriptor(ends[1]);
  }
  ::close(ends[1]);
  unsigned char status = 1;
  if (::read(ends[0], &status, 1) != 1) status = 1;
  ::_exit(status);
}

void report(Descriptor& starter, unsigned char status) noexcept {
  if (starter) static_cast<void>(!::write(starter.get(), &status, 1));
  starter.reset();
}

int serve(const ServerOptions& options, bool foreground) {
  // Detached before it listens: clients take the listening process for the device (SO_PEERCRED).
  Descriptor starter;
  if (!foreground) starter = detach();
  Descriptor listening = listen_at(socket_name(options.domain));
  if (!listening) {
    const bool first = errno != EADDRINUSE;  // else somebody was faster, which is as good
    if (first) std::fprintf(stderr, "overlap-softdevice: no socket: %s\n", std::strerror(errno));
    report(starter, first ? 1 : 0);
    return first ? 1 : 0;
  }
  report(starter, 0);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  prefer_us();
  Server server(std::move(listening), options);
  return server.run();
}

int run(int count, char** arguments) {
  ServerOptions options;
  bool foreground = false;
  bool has_domain = false;
  std::string command;
  std::vector<std::uint64_t> numbers;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    std::uint64_t number = 0;
    if (argument == "--domain" && i + 1 < count) {
      options.domain = arguments[++i];
      has_domain = true;
    } else if (argument == "--linger-ms" && i + 1 < count &&
               take_number(arguments[i + 1], number)) {
      options.linger_ns = static_cast<Time>(number) * 1'000'000;
      ++i;
    } else if (argument == "--foreground") {
      foreground = true;
    } else if (argument == "--help") {
      std::fputs(help, stdout);
      return 0;
    } else if (const int takes = numbers_of(argument);
               command.empty() && takes >= 0 && i + takes < count) {
      command = argument;
      for (int n = 0; n < takes; ++n) {
        if (!take_number(arguments[++i], number)) {
          std::fputs(help, stderr);
          return 2;
        }
        numbers.push_back(number);
      }
    } else {
      has_domain = false;
      break;
    }
  }
  if (!has_domain) {
    std::fputs(help, stderr);
    return 2;
  }
  return command.empty() ? serve(options, foreground)
                         : run_command(options.domain, command, numbers);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "overlap-softdevice: %s\n", error.what());
    return 1;
  }
}
