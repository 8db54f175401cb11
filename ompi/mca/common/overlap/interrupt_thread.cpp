// The interrupt thread's loop: look, sleep, look.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/interrupt_thread.hpp"

#include "ompi/mca/common/overlap/node_cores.hpp"
#include "ompi/mca/common/overlap/settings.hpp"
#include "ompi/mca/common/overlap/waiting.hpp"
#include "opal/mca/common/overlap/message.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace overlap {
namespace {

/// @returns  nullptr, or why this Open MPI rules a second thread out
const char* why_impossible() noexcept {
  if (!can_list_descriptors) return "this Open MPI's libevent is older than 2.1.2";
  return nullptr;
}

/// Must messages through shared memory be served by a second thread? @returns  nullptr, or why not
const char* why_not_on_node(const NodeArea& node) noexcept {
  if (node.get() == nullptr) return "this system offers no memory files (memfd_create)";
  if (common::tunables.progress != common::progress_choice::auto_) return nullptr;
  return why_no_core_to_spare();
}

/// What was chosen for shared memory, and why; once per node.
void report_choice(const char* why_not) noexcept try {
  const bool asked_for = common::tunables.progress == common::progress_choice::on;
  if (common::tunables.report < 1 && !(asked_for && why_not != nullptr)) return;
  std::string text = "common_overlap_progress: large messages through shared memory make progress ";
  if (why_not != nullptr) {
    text += std::string("inside MPI calls only: ") + why_not + ".";
  } else {
    text += std::string("while the application computes, by a thread of each process: ") +
            (asked_for ? "it is on." : "the node has a core to spare.");
  }
  show_message(text);
} catch (const std::bad_alloc&) {
  return;  // nothing depends on the message
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

std::uint64_t ns_of(const timespec& time) noexcept {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// exit() runs what is registered in the reverse order: this in front of what the program has
/// registered before its first large message, and of destructors of its objects.
/// @param thread  nullptr: there is none
void stop_at_exit(InterruptThread* thread) noexcept {
  static std::atomic<InterruptThread*> running{nullptr};  // orders nothing: stop() joins
  running.store(thread);
  static const int registered = std::atexit([] {
    if (InterruptThread* const last = running.load()) last->stop_in_exit();
  });
  static_cast<void>(registered);  // without room for it exit() runs as if there were no thread
}

/// Signals are the application's, but for those of a thread's own instructions: blocked, they end
/// the process without its handlers. What the application blocks it takes by sigwait().
/// @param before  blocked in the thread that makes this one
sigset_t signals_of_others(const sigset_t& before) noexcept {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    if (sigismember(&before, own) == 0) sigdelset(&blocked, own);
  }
  return blocked;
}

/// Of the calling thread.
Stays::Usage usage_of_thread() noexcept {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);  // its times advance by ticks of the system
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return {.thread = LinuxPlatform::self(),
          .processor_ns = ns_of(used),
          .sleeps = static_cast<std::uint32_t>(usage.ru_nvcsw) - own_naps().count,
          .napped_ns = own_naps().ns};
}

}  // namespace

bool InterruptThread::is_possible() noexcept {
  return common::progress_is_on() && why_impossible() == nullptr;
}

void InterruptThread::serve_node(const mca_btl_base_module_t& btl) noexcept {
  if (serves_node_ || !is_possible()) return;
  const char* why_not = why_not_on_node(node_);
  if (!std::exchange(node_choice_reported_, true)) report_choice(why_not);
  if (why_not != nullptr) return;
  driver_.let_thread_poll(btl.btl_component->btl_progress);
  serves_node_ = endpoints_.wakes_neighbours = true;
  may_ring_.store(true, std::memory_order_relaxed);
  if (demand_ != 0) watch_stay(true);
}

bool InterruptThread::serve_network(const BtlCapability& capability) noexcept {
  if (network_ != nullptr) return network_ == &capability;
  // Not by default: messages of 64 KiB lose a tenth of their rate on a fast wire.
  if (common::tunables.progress != common::progress_choice::on) return false;
  if (capability.arrival_descriptor == -1) report_no_thread("the device cannot wake a thread");
  if (capability.arrival_descriptor == -1 || !is_possible()) return false;
  network_ = &capability;
  may_ring_.store(true, std::memory_order_relaxed);
  driver_.let_thread_poll(capability.progress_in_thread);
  if (demand_ != 0) watch_stay(true);
  return true;
}

std::uint64_t InterruptThread::least_copy_bytes() const noexcept {
  return common::progress_is_on() && state_ <= State::running && !ForeignWindows::any()
             ? common::tunables.copy_min
             : Endpoints::no_copy;
}

void InterruptThread::watch_stay(bool on) noexcept {
  void (*const on_stay)(void*) = [](void* self) {
    auto& thread = *static_cast<InterruptThread*>(self);
    if (thread.state_ == State::running) thread.stays();
  };
  const bool is_shared = serves_btls() && node_.get() != nullptr;
  driver_.set_on_stay(on ? on_stay : nullptr, this, is_shared ? &node_.get()->turns : nullptr);
}

/// An MPI thread does not leave MPI for some time.
void InterruptThread::stays() noexcept {
  const std::uint64_t now = now_ns();
  const std::uint32_t by_ns = stays_.note(now, turns(), usage_of_thread);
  if (serves_btls() && interruption_.take_over(now, by_ns)) {
    watch_.ring(by_ns);
    return;
  }
  const auto [ring, nap] = interruption_.put_off(now, by_ns);
  if (ring) watch_.ring(by_ns);
  if (nap) watch_.set_nap(by_ns);
}

/// A turn of the thread wakes them, too; it sleeps only when nobody is left to be woken.
void InterruptThread::wake_or_leave() noexcept {
  const bool leaves =
      network_ != nullptr && state_ <= State::running && polls() && common::progress_is_on();
  if (!leaves) waking_->wake_now();
}

std::uint32_t InterruptThread::must_ring_slow() noexcept {
  if (!common::progress_is_on()) return no_ring;
  if (state_ != State::running && !start()) {
    if (waking_ != nullptr) waking_->wake_now();
    return no_ring;
  }
  driver_.note_leaving();
  const std::uint64_t now = now_ns();
  stays_.leave(now, turns(), usage_of_thread);
  helper_.report_failure();
  if (!interruption_.must_ring(std::exchange(fresh_, false))) return no_ring;
  ++common::counters.interrupt_rings;
  // A copy, or an adapter's transfer, takes no longer than the delay for what takes a socket
  // milliseconds. Less than 10 us would fire before the call has returned.
  constexpr std::uint32_t fast_hurry = 3;
  const std::uint32_t learnt_ns = interruption_.ring_delay_ns();
  // Others that use the processor delay only rings that come in vain.
  const std::uint32_t crowd_ns =
      learnt_ns > InterruptLoop::nap_min_ns ? stays_.crowd_ns(now) / 2 : 0;
  const std::uint32_t delay_ns = std::max(learnt_ns / (polls() ? fast_hurry : 1), crowd_ns);
  interruption_.note_ring(delay_ns);
  return delay_ns;
}

void InterruptThread::ring_for_work() noexcept {
  if (!may_ring_.load(std::memory_order_relaxed) && !driver_.has_new_events()) [[likely]]
    return;
  std::uint32_t delay_ns = no_ring;
  {
    const Entry entry;
    delay_ns = must_ring_for_work();
  }
  if (delay_ns != no_ring) ring(delay_ns);
}

bool InterruptThread::start() noexcept {
  State none = State::none;
  if (!state_.compare_exchange_strong(none, State::refused)) return false;
  if (const char* reason = why_impossible()) {
    report_no_thread(reason);
    return false;
  }
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  const sigset_t blocked = signals_of_others(before);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  const int error = make_thread();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    watch_ = EventWatch();  // its descriptors are the application's again
    report_no_thread(std::strerror(error));
    return false;
  }
  pthread_setname_np(thread_, "overlap");
  if (node_.has_bell() && why_no_core_to_spare() == nullptr) widen_binding(thread_);
  stop_at_exit(this);
  watch_stay(demand_ != 0);  // it may have come before there was anything to serve
  State refused = State::refused;
  if (state_.compare_exchange_strong(refused, State::running)) return true;
  join();
  return false;
}

/// @returns  0, or errno
int InterruptThread::make_thread() noexcept {
  // Also where only sockets are served so far: the thread could not be told later. Without a bell
  // nobody wakes it for messages through shared memory.
  if (why_not_on_node(node_) == nullptr) static_cast<void>(node_.open_bell());
  if (!watch_.open(&node_.bell())) return errno;
  owner_ = getpid();
  return pthread_create(
      &thread_, nullptr,
      [](void* self) -> void* {
        ask_for_short_slice();
        progress_lock.ready_guest();
        auto& thread = *static_cast<InterruptThread*>(self);
        thread.helper_.begin(thread.node_);
        thread.interruption_.run();
        return nullptr;
      },
      this);
}

void InterruptThread::stop() noexcept {
  if (state_.exchange(State::stopped) == State::running) join();
}

/// A signal handler that calls exit() may have interrupted the program within malloc(), whose lock
/// the thread then waits for: it is not waited for without end, and writes nothing meanwhile.
void InterruptThread::stop_in_exit() noexcept {
  // A child has no thread; what it would change is its parent's between vfork() and exec().
  if (getpid() != owner_ || state_.exchange(State::stopped) != State::running) return;
  ask_to_end();
  timespec longest{};
  clock_gettime(CLOCK_REALTIME, &longest);
  ++longest.tv_sec;
  pthread_timedjoin_np(thread_, nullptr, &longest);
}

void InterruptThread::join() noexcept {
  stop_at_exit(nullptr);
  if (getpid() != owner_) return;
  ask_to_end();
  pthread_join(thread_, nullptr);
}

void InterruptThread::ask_to_end() noexcept {
  stopping_.store(true, std::memory_order_release);
  watch_.ring(0);
}

bool InterruptThread::wanted() const noexcept {
  return is_needed() && common::progress_is_on() && can_progress();
}

bool InterruptThread::sleep(Sleep sleep) noexcept {
  if (sleep.until == Sleep::Until::arrival) helper_.note_armed();
  const bool rung = watch_.sleep(sleep, helper_.descriptor(), watched_network_);
  woken_by_sender_ = watch_.woken_by_sender();
  // What was left for a helper that has gone is found by the look that follows.
  if (watch_.also_readable()) static_cast<void>(helper_.has_gone(node_));
  return rung;
}

std::uint64_t InterruptThread::now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return ns_of(now);
}

void InterruptThread::note_futile_wake() noexcept {
  ++common::counters.wakes_futile;
  if (node_.get() != nullptr) node_.get()->wakes_futile.fetch_add(1, std::memory_order_relaxed);
}

InterruptThread::Turn InterruptThread::turn() noexcept {
  endpoints_.in_interrupt_thread = true;
  endpoints_.serves_adapters = network_ != nullptr && polls();
  const bool events = turns_events();
  const ProgressDriver::ThreadTurn found = driver_.turn_in_thread(
      {.btls = polls(), .events = events},
      [](const opal_process_name_t& name, const void* endpoints) noexcept {
        return static_cast<const Endpoints*>(endpoints)->find(name) != nullptr;
      },
      &endpoints_);
  endpoints_.in_interrupt_thread = false;
  left_connections_ = found.left_connections;
  if (left_connections_) driver_.note_new_events();
  ++common::counters.interrupt_turns;
  if (!found.moved) ++common::counters.interrupt_turns_empty;
  if (std::exchange(woken_by_sender_, false) && !found.moved) note_futile_wake();
  const bool blind = polls() && (has_work() || endpoints_.fragments_in_flight != 0);
  if (!events) return {.moved = found.moved, .readable = false, .blind = blind};
  watch_.sync(turned_elsewhere());
  synced_turns_ = turns();
  return {
      .moved = found.moved, .readable = watch_.is_due() || watch_.is_readable(), .blind = blind};
}

bool InterruptThread::look_again(bool in_thread) noexcept {
  if (in_thread) {
    watched_network_ = network_descriptor();
    if (watched_network_ != -1) network_->arm();
  }
  if (!polls()) return false;
  bool moved = false;
  endpoints_.in_interrupt_thread = in_thread;
  must_run([this, &moved] { moved = driver_.look_at_thread_btls(); });
  endpoints_.in_interrupt_thread = false;
  return moved;
}

}  // namespace overlap
