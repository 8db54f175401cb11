// The helper is started by whoever needs it first.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/helper_start.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>

extern char** environ;  // NOLINT: POSIX

namespace overlap::node {
namespace {

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
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return HelperStart::unknown;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? HelperStart::runs : HelperStart::failed;
}

}  // namespace overlap::node
