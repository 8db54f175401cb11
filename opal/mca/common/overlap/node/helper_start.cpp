// The helper is started by whoever needs it first.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/helper_start.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <ctime>

extern char** environ;  // NOLINT: POSIX

namespace overlap::node {
namespace {

constexpr long nap_ns = 5'000'000;
constexpr int naps_max = 40;

/// What a started program gets instead of this process's descriptors and signals: whoever waits for
/// the end of our output does not wait for the helper.
class Surroundings {
 public:
  Surroundings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files, 0, 1);
    posix_spawn_file_actions_adddup2(&files, 0, 2);
    posix_spawn_file_actions_addclosefrom_np(&files, 3);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  ~Surroundings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
};

}  // namespace

HelperStart start_helper(const std::string& program, const std::string& which) {
  const Surroundings surroundings;
  const char* const arguments[] = {"ompi-progressd", "--exit-when-idle",
                                   which.empty() ? nullptr : "--name", which.c_str(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, program.c_str(), &surroundings.files, &surroundings.attributes,
                   const_cast<char* const*>(arguments), environ) != 0)
    return HelperStart::failed;
  int status = 0;
  for (int naps = 0;; ++naps) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    // A folder of PATH may be slow, and other code of this process may have collected it.
    if (ended < 0 || naps == naps_max) return HelperStart::unknown;
    const timespec nap{0, nap_ns};
    nanosleep(&nap, nullptr);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? HelperStart::runs : HelperStart::failed;
}

}  // namespace overlap::node
