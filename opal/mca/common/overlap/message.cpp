// Messages to the user; needs Open MPI for the names of the host and of the job's folder on it.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/message.hpp"

#include "opal/mca/common/overlap/openmpi.hpp"

#include <fcntl.h>

namespace overlap {

namespace {

/// Leave a mark beside the job's folder, where the launcher, which removes it, outlives every
/// process of the job.
/// @returns  false when another process of this node has said the same
bool first_to_say(const std::string& text) {
  const bool first_on_node = opal_process_info.my_local_rank == 0;
  const char* folder = opal_process_info.job_session_dir;
  if (!folder) return first_on_node;
  const std::string mark =
      std::string(folder) + "-overlap-said-" + std::to_string(std::hash<std::string>{}(text));
  const int file = open(mark.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  // Without a descriptor nobody can know: rather said twice than not at all.
  if (file < 0) return errno == EMFILE || errno == ENFILE || (errno != EEXIST && first_on_node);
  close(file);
  return true;
}

}  // namespace

void show_message(const std::string& text, const std::string& same) noexcept try {
  if (!first_to_say(same.empty() ? text : same)) return;
  const std::string frame(74, '-');
  const char* host = opal_process_info.nodename;
  const std::string all = frame + "\n" + text +
                          (host ? std::string("\n\n  Host: ") + host : std::string()) + "\n" +
                          frame + "\n";
  std::fputs(all.c_str(), stderr);  // unbuffered: one write
} catch (...) {
  std::fputs(text.c_str(), stderr);
}

}  // namespace overlap
