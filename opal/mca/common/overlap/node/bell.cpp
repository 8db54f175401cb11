// Bells as pipes, opened by others through /proc.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/bell.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opal/mca/common/overlap/node/area_file.hpp"

namespace overlap::node {

bool Bell::open(Area& area) noexcept {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  reading_ = Descriptor(ends[0]);
  ringing_ = Descriptor(ends[1]);
  const auto address = DescriptorAddress::of(ringing_);
  if (!address) return false;
  area.bell_fd = address->descriptor;
  area.bell_device = address->device;
  area.bell_inode.store(address->inode, std::memory_order_release);  // A1, pairs with A2
  return true;
}

bool Bell::open(Area& area, KernelWake kernel, std::uint64_t job, std::uint32_t rank) noexcept {
  kernel_ = std::move(kernel);
  area.kernel_job = job;
  area.kernel_rank = rank;
  return open(area);  // those who cannot use the module ring the pipe
}

bool Bell::silence() noexcept {
  char rings[64];
  bool rung = kernel_ && kernel_->drain() != 0;
  while (::read(reading_.get(), rings, sizeof rings) > 0) rung = true;
  return rung;
}

BellRope BellRope::to(const Area& area) noexcept {
  const std::uint64_t inode = area.bell_inode.load(std::memory_order_acquire);  // A2
  if (inode == 0) return {};
  const DescriptorAddress address{
      .pid = area.pid, .descriptor = area.bell_fd, .device = area.bell_device, .inode = inode};
  BellRope rope(address.open(O_RDWR));
  struct stat status {};
  if (rope && (fstat(rope.ringing_.get(), &status) != 0 || !S_ISFIFO(status.st_mode))) return {};
  return rope;
}

void BellRope::ring() const noexcept {
  const char ring = 0;
  // A full pipe has rung already.
  [[maybe_unused]] const ssize_t written = ::write(ringing_.get(), &ring, 1);
}

}  // namespace overlap::node
