// Entering and leaving the code under the progress lock.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <new>

#include "ompi/mca/common/overlap/openmpi.hpp"
#include "opal/mca/common/overlap/progress_lock.hpp"

namespace overlap {

/// Entry by an MPI thread, from outside.
class Entry {
 public:
  Entry() noexcept { progress_lock.lock(); }
  ~Entry() { progress_lock.unlock(); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
};

/// Entry from a BTL callback: the lock is held already when our own progress called the BTL; it is
/// not when opal_progress or another component did.
class CallbackEntry : NestedGuard {
 public:
  CallbackEntry() noexcept : NestedGuard(progress_lock) {}
};

/// MPI_Finalize takes the processes away (del_procs), and BTLs may deliver messages in flight
/// meanwhile. Every request is complete by then and every peer inside MPI_Finalize: nobody needs
/// those messages and ends of transfers, and what they refer to goes piece by piece. Callbacks do
/// nothing once it is set. @thread  progress lock held
extern bool processes_gone;

/// Run `body` so that nothing is thrown into C.
/// @returns  its value, or OMPI_ERR_OUT_OF_RESOURCE when memory ran out
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OMPI_ERR_OUT_OF_RESOURCE;
  } catch (...) {
    return OMPI_ERROR;
  }
}

/// End the job: memory has run out where nobody can be handed an error. Allocates nothing itself.
[[noreturn]] void end_without_memory() noexcept;

/// Run `body` where nobody can be handed an error: the job ends when memory runs out.
template <class Body>
void must_run(Body&& body) noexcept {
  try {
    body();
  } catch (...) {
    end_without_memory();
  }
}

/// The same in a BTL's callback.
template <class Body>
void in_callback(Body&& body) noexcept {
  const CallbackEntry entry;
  if (!processes_gone) must_run(body);
}

}  // namespace overlap
