// The interrupt thread's loop: look, sleep, look.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/interrupt_thread.hpp"

#include "ompi/mca/common/overlap/settings.hpp"
#include "opal/mca/common/overlap/message.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace overlap {
namespace {

/// @returns  nullptr, or why this Open MPI rules a second thread out
const char* why_impossible() noexcept {
  // Its one-sided component calls tcp outside the progress lock.
  if (openmpi_5) return "Open MPI 5 calls its BTLs from elsewhere too (osc/rdma)";
  if (!can_list_descriptors) return "this Open MPI's libevent is older than 2.1.2";
  return nullptr;
}

void report_no_thread(const char* reason) noexcept try {
  if (common::tunables.progress != common::progress_choice::on) return;
  show_message(std::string("common_overlap_progress is on, but large messages make progress only "
                           "inside MPI calls: ") +
               reason + ".");
} catch (const std::bad_alloc&) {
  return;  // nothing depends on the message
}

/// The computation has the processor until its slice ends, which may be longer than a transfer.
/// Since Linux 6.12 a thread that asks for a shorter slice goes first when it wakes; it gets no
/// larger share by that. Older kernels refuse, and wake sleepers first by other rules.
void ask_for_short_slice() noexcept {
  struct {  // sched_attr, which libraries do not name
    std::uint32_t bytes;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t slice_ns;
    std::uint64_t deadline_ns;
    std::uint64_t period_ns;
  } attributes{};
  static_assert(sizeof attributes == 48);
  constexpr std::uint64_t slice_ns = 100'000;  // the least that the kernel takes
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.slice_ns = slice_ns;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
  prctl(PR_SET_TIMERSLACK, 1);
}

}  // namespace

bool InterruptThread::is_possible() noexcept {
  return common::progress_is_on() && why_impossible() == nullptr;
}

bool InterruptThread::must_ring_slow() noexcept {
  if (!common::progress_is_on()) return false;
  if (state_ != State::running && !start()) return false;
  if (!interruption_.must_ring(std::exchange(fresh_, false))) return false;
  ++common::counters.interrupt_rings;
  return true;
}

bool InterruptThread::start() noexcept {
  if (state_ != State::none) return false;
  state_ = State::refused;
  if (const char* reason = why_impossible()) {
    report_no_thread(reason);
    return false;
  }
  // Signals are the application's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = 0;
  if (!watch_.open()) {
    error = errno;
  } else {
    error = pthread_create(
        &thread_, nullptr,
        [](void* self) -> void* {
          ask_for_short_slice();
          static_cast<InterruptThread*>(self)->interruption_.run();
          return nullptr;
        },
        this);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    watch_ = EventWatch();  // its descriptors are the application's again
    report_no_thread(std::strerror(error));
    return false;
  }
  pthread_setname_np(thread_, "overlap");
  state_ = State::running;
  return true;
}

void InterruptThread::stop() noexcept {
  if (std::exchange(state_, State::stopped) != State::running) return;
  stopping_.store(true, std::memory_order_release);
  watch_.ring(0);
  pthread_join(thread_, nullptr);
}

bool InterruptThread::wanted() const noexcept { return demand_ != 0 && common::progress_is_on(); }

InterruptThread::Turn InterruptThread::turn() noexcept {
  inside_ = true;
  const ProgressDriver::EventTurn found = driver_.turn_events(
      [](const opal_process_name_t& name, const void* endpoints) noexcept {
        return static_cast<const Endpoints*>(endpoints)->knows(name);
      },
      &endpoints_);
  inside_ = false;
  left_connections_ = found.left_connections;
  watch_.sync(turned_elsewhere());
  synced_turns_ = turns();
  ++common::counters.interrupt_turns;
  if (!found.moved) ++common::counters.interrupt_turns_empty;
  return {.moved = found.moved, .readable = watch_.is_due() || watch_.is_readable()};
}

}  // namespace overlap
