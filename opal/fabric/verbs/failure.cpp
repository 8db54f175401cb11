// Errors of the system in words.
#include "failure.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace overlap::fabric::verbs {

std::string memory_limit_advice() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return "this process may lock " + std::to_string(limit.rlim_cur / 1024) +
         " KiB (RLIMIT_MEMLOCK); raise it with `ulimit -l unlimited`, with a memlock line in /etc/security/limits.d, or with "
         "LimitMEMLOCK=infinity in the service that starts the job";
}

Error failure(const std::string& what, int error) {
  const std::string reason = what + ": " + std::strerror(error);
  switch (error) {
    case EACCES:
    case EPERM:
      return {Error::Kind::no_permission,
              reason + "; give this user access to /dev/infiniband (rdma-core's udev rules do; in a container, pass the devices in)"};
    case ENOMEM: {
      const std::string advice = memory_limit_advice();
      if (!advice.empty()) return {Error::Kind::memory_limit, reason + "; " + advice};
      return {Error::Kind::system, reason + "; memory or the adapter's resources are used up"};
    }
    default: return {Error::Kind::system, reason};
  }
}

}  // namespace overlap::fabric::verbs
