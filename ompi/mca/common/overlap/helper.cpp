// Asking for the helper, and starting it.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/helper.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "ompi/mca/common/overlap/settings.hpp"

namespace overlap {
namespace {

using State = node::HelperClient::State;
using common::helper_choice;

constexpr int answer_max_ms = 20;

/// Start a helper that ends with its last client. One that finds another running ends at once.
/// @returns  whether the program was found
bool start_helper() noexcept {
  posix_spawnattr_t attributes;
  if (posix_spawnattr_init(&attributes) != 0) return false;
  // The interrupt thread has all signals blocked.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  // The launcher waits for the end of these.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  char name[] = "ompi-progressd";
  char option[] = "--exit-when-idle";
  char* arguments[] = {name, option, nullptr};
  pid_t pid = -1;
  const bool started = posix_spawnp(&pid, name, &files, &attributes, arguments, environ) == 0;
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  // It detaches: this is its first process only.
  if (started) waitpid(pid, nullptr, 0);
  return started;
}

}  // namespace

void Helper::begin(const NodeArea& node) noexcept {
  if (common::tunables.helper == helper_choice::off || !node.has_bell()) return;
  const auto ask = [this, &node] {
    client_.ask({.job = OPAL_PROC_MY_NAME.jobid, .local_rank = static_cast<int>(local_rank())},
                node.file(), node.bell().ringing());
    return client_.await_answer(answer_max_ms);
  };
  State state = ask();
  if (state != State::absent || common::tunables.helper != helper_choice::start) return;
  if (!start_helper()) return;
  for (int tries = 0; state == State::absent && tries < 10; ++tries) {
    const timespec nap{0, answer_max_ms * 1000000L};
    nanosleep(&nap, nullptr);
    state = ask();
  }
}

bool Helper::has_gone(const NodeArea& node) noexcept {
  const State before = client_.state();
  if (client_.look() == before || client_.state() == State::served) return false;
  stop_watching(*node.get());
  return true;
}

}  // namespace overlap
