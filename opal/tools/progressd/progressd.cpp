// ompi-progressd: the helper of the MPI processes of one user on one node, and the tool that asks
// it.
// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "opal/tools/progressd/machine.hpp"
#include "opal/tools/progressd/options.hpp"
#include "opal/tools/progressd/server.hpp"
#include "opal/tools/progressd/status.hpp"

namespace {

using namespace overlap;
using namespace overlap::progressd;

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;
constexpr int answer_ms = 5000;

void complain(const std::string& what) {
  std::fprintf(stderr, "ompi-progressd: %s\n", what.c_str());
}

std::string user_name() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

/// @returns  the whole file; empty: it is larger than a helper's answer can be, or cannot be read
std::string read_all(const Descriptor& file) {
  constexpr off_t bytes_max = 16 << 20;
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || status.st_size > bytes_max) return {};
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

int print_status(const std::string& json, bool as_json) {
  const std::string text = as_json ? json : text_of_json(json);
  if (text.empty()) {
    complain("the helper's status cannot be read; is it of another version? --stop ends it");
    return exit_failed;
  }
  std::printf("%s%s", text.c_str(), as_json ? "\n" : "");
  return 0;
}

node::HelperAsk ask_of(Command command) {
  switch (command) {
    case Command::on: return node::HelperAsk::on;
    case Command::off: return node::HelperAsk::off;
    case Command::stop: return node::HelperAsk::stop;
    case Command::serve:
    case Command::help:
    case Command::version:
    case Command::status: break;
  }
  return node::HelperAsk::status;
}

/// Ask the helper that runs.
int ask(const Options& options) {
  const Descriptor socket = node::connect_to(node::helper_socket_name(geteuid(), options.name));
  if (!socket) {
    complain("no helper of user " + user_name() + " runs on this node (" + std::strerror(errno) +
             "); start one with: ompi-progressd");
    return exit_failed;
  }
  const node::Peer peer = node::Peer::of(socket);
  if (peer.user != geteuid()) {
    complain("process " + std::to_string(peer.process) +
             " of another user has taken the helper's name; ask your administrator to end it");
    return exit_failed;
  }
  node::HelperRequest request;
  request.ask = ask_of(options.command);
  node::HelperAnswer answer;
  node::Attached attached;
  pollfd one{socket.get(), POLLIN, 0};
  const bool answered = node::send_message(socket, request) == node::Delivery::done &&
                        ::poll(&one, 1, answer_ms) > 0 &&
                        node::receive_message(socket, answer, attached) == node::Delivery::done;
  if (!answered) {
    complain("the helper, process " + std::to_string(peer.process) +
             ", does not answer; is it stopped (kill -CONT)?");
    return exit_failed;
  }
  if (answer.reply == node::HelperReply::refused) {
    complain("the helper, process " + std::to_string(peer.process) +
             ", has too many connections or is of another version; try again, or end it");
    return exit_failed;
  }
  return options.command == Command::status ? print_status(read_all(attached[0]), options.json) : 0;
}

/// Continue in a child; the caller's process ends with the status that the child reports, or 1 when
/// it dies before. @returns  where to report
Descriptor detach() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) _exit(exit_failed);
  const pid_t child = fork();
  if (child < 0) {
    complain(std::string("cannot start a process: ") + std::strerror(errno));
    _exit(exit_failed);
  }
  if (child == 0) {
    close(ends[0]);
    // Not ended with the process group of whoever started it. The session stays: the kernel may
    // schedule sessions as groups.
    setpgid(0, 0);
    static_cast<void>(!chdir("/"));
    return Descriptor(ends[1]);
  }
  close(ends[1]);
  unsigned char status = exit_failed;
  if (read(ends[0], &status, 1) != 1) status = exit_failed;
  _exit(status);
}

/// Let whoever has started this go on, and keep nothing of theirs open.
void report(Descriptor& starter, unsigned char status) noexcept {
  if (!starter) return;
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (null) dup2(null.get(), each);
  }
  static_cast<void>(!write(starter.get(), &status, 1));
  starter = Descriptor();
}

/// The name is taken. @returns  exit status
int explain_taken(const std::string& name) {
  const Descriptor socket = node::connect_to(name);
  const node::Peer peer = node::Peer::of(socket);
  if (socket && peer.user != geteuid()) {
    complain("process " + std::to_string(peer.process) +
             " of another user has taken the helper's name; ask your administrator to end it");
    return exit_failed;
  }
  complain("a helper of user " + user_name() + " runs on this node already (process " +
           std::to_string(peer.process) + "); --status shows it, --stop ends it");
  return 0;
}

/// Three descriptors a client. @returns  how many clients there may be
std::size_t make_room(std::size_t wanted) noexcept {
  constexpr rlim_t others = 128;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur <= others) return 1;
  return std::min<std::size_t>(wanted, (limit.rlim_cur - others) / 3);
}

/// Signals that end the helper come through a descriptor.
Descriptor take_signals() noexcept {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int each : {SIGTERM, SIGINT}) sigaddset(&ending, each);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  return Descriptor(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
}

void check_processors(const Options& options, const std::vector<Core>& cores) {
  for (const unsigned each : options.placement.bind) {
    const bool known = std::any_of(cores.begin(), cores.end(), [&](const Core& core) {
      return core.processors.contains(each);
    });
    if (!known) {
      throw UsageError("--bind " + text_of(options.placement.bind) + ": there is no processor " +
                       std::to_string(each) + " here");
    }
  }
}

int serve(const Options& options) {
  // Whoever waits for the end of a pipe that was open here does not wait for the helper.
  close_range(STDERR_FILENO + 1, ~0U, 0);
  std::vector<Core> cores = cores_of_this_machine();
  check_processors(options, cores);
  const std::string name = node::helper_socket_name(geteuid(), options.name);
  // Detached before it listens: whoever connects takes the listening process for the helper.
  Descriptor starter = options.foreground ? Descriptor() : detach();
  Descriptor listening = node::listen_at(name);
  if (!listening) {
    const int error = errno;
    const int status = error == EADDRINUSE ? explain_taken(name) : exit_failed;
    if (error != EADDRINUSE) complain(std::string("no socket: ") + std::strerror(error));
    report(starter, static_cast<unsigned char>(status));
    return status;
  }
  ServerLimits limits;
  limits.clients = make_room(limits.clients);
  limits.connections = limits.clients + 64;
  Server server(std::move(listening), take_signals(), options, std::move(cores), complain, limits);
  report(starter, 0);
  server.run();
  return 0;
}

int run(int count, char** arguments) {
  const Options options = parse(count, arguments);
  switch (options.command) {
    case Command::help: std::fputs(options.help.c_str(), stdout); return 0;
    case Command::version: std::puts("ompi-progressd " OVERLAP_VERSION); return 0;
    case Command::serve: return serve(options);
    case Command::status:
    case Command::on:
    case Command::off:
    case Command::stop: return ask(options);
  }
  return exit_usage;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const UsageError& error) {
    complain(std::string(error.what()) + " (--help lists the options)");
    return exit_usage;
  } catch (const std::exception& error) {
    complain(error.what());
    return exit_failed;
  }
}
