// The device process is started by whoever needs it first.
// SPDX-License-Identifier: BSD-3-Clause
#include "soft_start.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

extern char** environ;  // NOLINT: POSIX

namespace overlap::fabric::soft {
namespace {

constexpr const char* program_name = "overlap-softdevice";

/// Folder of the shared library or program that this code is in.
[[nodiscard]] std::string own_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// What a started program gets instead of our descriptors: nobody that waits for our output waits
/// for the device.
struct Surroundings {
  Surroundings() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    const char* log = std::getenv("OVERLAP_SOFTDEVICE_LOG");  // for developers: what sanitizers say
    if (log == nullptr) log = "/dev/null";
    ::posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::posix_spawn_file_actions_adddup2(&files, 1, 2);
    ::posix_spawn_file_actions_addclosefrom_np(&files, 3);
    ::posix_spawn_file_actions_addchdir_np(&files, "/");
    // A process of our own process group would be ended with it. The session stays: the kernel
    // may schedule sessions as groups (sched_autogroup), and a group of its own, without the right
    // to a real-time priority, got no processor beside polling clients for minutes (Linux 6.18).
    // Signals may be blocked in the thread that starts us.
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  ~Surroundings() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

}  // namespace

std::string find_program(const std::string& option) {
  std::vector<std::string> places;
  const char* environment = std::getenv("OVERLAP_SOFTDEVICE");
  if (!option.empty()) {
    places.push_back(option);
  } else if (environment != nullptr && *environment != '\0') {
    places.emplace_back(environment);
  } else {
    places.emplace_back(std::string(OVERLAP_PKGLIBEXECDIR "/") + program_name);
    const std::string folder = own_folder();
    places.push_back(folder + "/" + program_name);
    places.push_back(folder + "/../../libexec/overlap/" +
                     program_name);  // of a private tree that was moved
  }
  std::string looked_at;
  for (const std::string& place : places) {
    if (::access(place.c_str(), X_OK) == 0) {
      // The program is started in another folder.
      char* full = ::realpath(place.c_str(), nullptr);
      std::string path = full != nullptr ? full : place;
      std::free(full);
      return path;
    }
    looked_at += (looked_at.empty() ? "" : ", ") + place;
  }
  throw Error(Error::Kind::system, "the software device's program is not there (" + looked_at +
                                       "); set OVERLAP_SOFTDEVICE to its path");
}

void start_device(const std::string& program, const std::string& domain) {
  const Surroundings surroundings;
  const char* arguments[] = {program_name, "--domain", domain.c_str(), nullptr};
  pid_t child = 0;
  const int failed =
      ::posix_spawn(&child, program.c_str(), &surroundings.files, &surroundings.attributes,
                    const_cast<char* const*>(arguments), environ);
  if (failed != 0)
    throw Error(Error::Kind::system, "cannot start " + program + ": " + std::strerror(failed));
  // The program ends as soon as its detached copy listens.
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    return;  // somebody else collects our children: whether it listens shows itself
  }
  if (status != 0)
    throw Error(Error::Kind::system, program + " could not start the software device (status " +
                                         std::to_string(status) + ")");
}

}  // namespace overlap::fabric::soft
