// Errors of the system in words.
// SPDX-License-Identifier: BSD-3-Clause
#include "failure.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace overlap::fabric::verbs {

std::string memory_limit_advice() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return "this process may lock " + std::to_string(limit.rlim_cur / 1024) +
         " KiB (RLIMIT_MEMLOCK); raise it with `ulimit -l unlimited`, with a memlock line in "
         "/etc/security/limits.d, or with "
         "LimitMEMLOCK=infinity in the service that starts the job";
}

bool memory_limit_is_hopeless() noexcept {
  rlimit limit{};
  return geteuid() != 0 && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur <= 32768;
}

int open_error(const std::string& device_file, int error) noexcept {
  return ::access(device_file.c_str(), F_OK) == 0 && ::access(device_file.c_str(), R_OK | W_OK) != 0
             ? EACCES
             : error;
}

Error failure(const std::string& what, int error) {
  const std::string reason = what + ": " + std::strerror(error);
  // A limit of 0 is answered by EPERM, a higher one that is used up by ENOMEM.
  if (error == EPERM && memory_limit_is_hopeless()) error = ENOMEM;
  switch (error) {
    case EACCES:
    case EPERM:
      return {Error::Kind::no_permission,
              reason +
                  "; give this user access to /dev/infiniband (rdma-core's udev rules do; in a "
                  "container, pass the devices in)"};
    case ENOMEM: {
      const std::string advice = memory_limit_advice();
      if (!advice.empty()) return {Error::Kind::memory_limit, reason + "; " + advice};
      return {Error::Kind::system, reason + "; memory or the adapter's resources are used up"};
    }
    default: return {Error::Kind::system, reason};
  }
}

}  // namespace overlap::fabric::verbs
