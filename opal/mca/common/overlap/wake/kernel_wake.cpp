// The calls of kernel/ompi_wake.h.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/wake/kernel_wake.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>

#include "kernel/ompi_wake.h"

namespace overlap {

namespace {

KernelWakeAbsence why_not_open(int error) noexcept {
  switch (error) {
    case ENOENT:
    case ENXIO:
    case ENODEV: return KernelWakeAbsence::no_device;
    case EACCES:
    case EPERM: return KernelWakeAbsence::no_permission;
    case EMFILE:
    case ENFILE: return KernelWakeAbsence::limit;
    default: return KernelWakeAbsence::system;
  }
}

KernelWakeAbsence why_not_joined(int error) noexcept {
  switch (error) {
    case ENOTTY:
    case EPROTO:
    case EINVAL: return KernelWakeAbsence::other_version;
    case EEXIST: return KernelWakeAbsence::rank_taken;
    case EDQUOT:
    case ERANGE: return KernelWakeAbsence::limit;
    default: return KernelWakeAbsence::system;
  }
}

}  // namespace

const char* describe(KernelWakeAbsence why) noexcept {
  switch (why) {
    case KernelWakeAbsence::no_device:
      return "there is no " OMPI_WAKE_DEVICE ": the kernel module ompi_wake is not loaded";
    case KernelWakeAbsence::no_permission:
      return "no permission to open " OMPI_WAKE_DEVICE ": a udev rule sets its mode";
    case KernelWakeAbsence::other_version:
      return "the kernel module ompi_wake is of another version: build it from this release";
    case KernelWakeAbsence::rank_taken:
      return "another process of this user sleeps as the same rank of the same job";
    case KernelWakeAbsence::limit:
      return "more jobs, ranks or open files than allowed: the parameters jobs_max and ranks_max "
             "of the kernel module ompi_wake, or ulimit -n";
    case KernelWakeAbsence::system: return OMPI_WAKE_DEVICE " cannot be used";
  }
  return "";
}

KernelWake::Opened KernelWake::try_open(const char* device, std::uint64_t job, std::uint32_t rank,
                                        std::uint32_t flags) noexcept {
  Descriptor file(::open(device, O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!file) return KernelWakeUnavailable{why_not_open(errno), errno};
  ompi_wake_join join{
      .version = OMPI_WAKE_VERSION, .bytes = sizeof join, .job = job, .rank = rank, .flags = flags};
  int result = -1;
  do result = ::ioctl(file.get(), OMPI_WAKE_JOIN, &join);
  while (result != 0 && errno == EINTR);
  if (result != 0) return KernelWakeUnavailable{why_not_joined(errno), errno};
  return KernelWake(std::move(file));
}

KernelWake::Opened KernelWake::try_open(std::uint64_t job, std::uint32_t rank) noexcept {
  return try_open(OMPI_WAKE_DEVICE, job, rank, 0);
}

KernelWake::Opened KernelWake::try_open_observer(std::uint64_t job) noexcept {
  return try_open(OMPI_WAKE_DEVICE, job, 0, OMPI_WAKE_OBSERVER);
}

std::uint64_t KernelWake::drain() const noexcept {
  std::uint64_t wakes = 0;
  return ::read(file_.get(), &wakes, sizeof wakes) == sizeof wakes ? wakes : 0;
}

KernelWake::Woken KernelWake::wake(std::uint32_t rank) const noexcept {
  return ::write(file_.get(), &rank, sizeof rank) == sizeof rank ? Woken::done : Woken::nobody;
}

}  // namespace overlap
