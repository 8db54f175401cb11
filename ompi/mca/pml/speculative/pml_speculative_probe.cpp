// Probes, matched probes, and the receives of what they have found.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

namespace overlap::speculative {
namespace {

/// From an empty look until the call ends, messages are left for the receive that is likely to
/// follow.
class Expectation {
 public:
  Expectation() = default;
  Expectation(const Expectation&) = delete;
  Expectation& operator=(const Expectation&) = delete;
  ~Expectation() {
    if (!expects_) return;
    const Entry entry;
    end();
  }
  /// @thread  progress lock held, here and in end()
  void begin() noexcept {
    pml->protocol.expect_receive();
    expects_ = true;
  }
  void end() noexcept {
    pml->protocol.expect_no_longer();
    expects_ = false;
  }

 private:
  bool expects_ = false;
};

/// @returns  the oldest message that matches
Arrived* find(Communicator& comm, int source, int tag) {
  Arrived* const found = pml->protocol.probe(comm, source, tag);
  if (found == nullptr || !pml->protocol.has_left()) return found;
  pml->protocol.note_found(*found);
  pml->actions.run();
  return found;
}

/// The same, after a poll of the network if there was none.
Arrived* look_for(int source, int tag, ompi_communicator_t* comm, Expectation& expectation) {
  Communicator& own = protocol_of(comm);
  Arrived* found = find(own, source, tag);
  if (found != nullptr) return found;
  expectation.begin();
  pml->driver.poll_thoroughly();
  found = find(own, source, tag);
  if (found != nullptr) expectation.end();
  return found;
}

void fill_status(ompi_status_public_t* status, const Arrived& message) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = message.peer->rank;
  status->MPI_TAG = message.tag;
  status->_ucount = message.length_bytes;
  status->_cancelled = 0;
}

/// A look of a call that stays in MPI, and copies itself what comes meanwhile.
struct StayingEntry : Entry {
  explicit StayingEntry(InterruptThread& /*interrupts*/) noexcept {}
};

template <class Guard>
int improbe_once(int source, int tag, ompi_communicator_t* comm, int* matched,
                 ompi_message_t** message, ompi_status_public_t* status, Expectation& expectation) {
  const Guard entry(pml->interrupts);
  Arrived* found = look_for(source, tag, comm, expectation);
  *matched = found != nullptr ? 1 : 0;
  *message = MPI_MESSAGE_NULL;
  if (found == nullptr) return OMPI_SUCCESS;
  ompi_message_t* made = ompi_message_alloc();
  if (made == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  pml->protocol.take(*found);
  pml->actions.run();
  OBJ_RETAIN(comm);  // it may be freed before the message is received
  made->comm = comm;
  made->req_ptr = found;
  made->peer = found->peer->rank;
  made->count = found->length_bytes;
  *message = made;
  fill_status(status, *found);
  return OMPI_SUCCESS;
}

/// The request that a matched probe's message becomes. @thread  progress lock held
ReceiveRequest* receive_message(void* buffer, std::size_t count, ompi_datatype_t* type,
                                ompi_message_t** message, bool waits) {
  auto* taken = static_cast<Arrived*>((*message)->req_ptr);
  ompi_communicator_t* const comm = (*message)->comm;
  ReceiveRequest* request =
      make_receive(buffer, count, type, taken->peer->rank, taken->tag, comm, false);
  OBJ_RELEASE((*message)->comm);  // never the last one: the request has its own
  activate(*request);
  pml->send_runs.note_receive();
  request->op.peer = taken->peer;
  request->caller_waits = waits;
  request->op.found_by_look = false;
  request->demand.add(pml->interrupts);  // its copy may be left
  Arrived* eager = pml->protocol.receive_taken(*taken, request->op);
  pml->actions.run();  // an acknowledgement that goes out holds the request
  if (eager != nullptr) finish_arrived(*request, *eager);
  request->in_call = false;
  ompi_message_return(*message);
  *message = MPI_MESSAGE_NULL;
  return request;
}

template <class Guard>
int look_once(int source, int tag, ompi_communicator_t* comm, int* matched,
              ompi_status_public_t* status) {
  Expectation expectation;
  const int rc = guarded([&]() -> int {
    const Guard entry(pml->interrupts);
    const Arrived* found = look_for(source, tag, comm, expectation);
    *matched = found != nullptr ? 1 : 0;
    if (found != nullptr) fill_status(status, *found);
    return OMPI_SUCCESS;
  });
  // What is not a BTL (a non-blocking collective, an oversubscribed core's yield) lives from this.
  if (rc == OMPI_SUCCESS && *matched == 0) opal_progress();
  return rc;
}

template <class Guard>
int take_once(int source, int tag, ompi_communicator_t* comm, int* matched,
              ompi_message_t** message, ompi_status_public_t* status) {
  Expectation expectation;
  const int rc = guarded([&]() -> int {
    return improbe_once<Guard>(source, tag, comm, matched, message, status, expectation);
  });
  if (rc == OMPI_SUCCESS && *matched == 0) opal_progress();
  return rc;
}

/// A call that blocks: look until something has been found, and leave MPI.
template <class Look>
int look_until_found(Look&& look) {
  int matched = 0;
  int rc = OMPI_SUCCESS;
  while (rc == OMPI_SUCCESS && matched == 0) rc = look(matched);
  // Not only for its copies: meanwhile a connection may have been made that the thread does not
  // know of.
  static_cast<void>(LeavingEntry(pml->interrupts));
  return rc;
}

}  // namespace

int iprobe(int source, int tag, ompi_communicator_t* comm, int* matched,
           ompi_status_public_t* status) noexcept {
  return look_once<LeavingEntry>(source, tag, comm, matched, status);
}

int probe(int source, int tag, ompi_communicator_t* comm, ompi_status_public_t* status) noexcept {
  return look_until_found(
      [&](int& matched) { return look_once<StayingEntry>(source, tag, comm, &matched, status); });
}

int improbe(int source, int tag, ompi_communicator_t* comm, int* matched, ompi_message_t** message,
            ompi_status_public_t* status) noexcept {
  return take_once<LeavingEntry>(source, tag, comm, matched, message, status);
}

int mprobe(int source, int tag, ompi_communicator_t* comm, ompi_message_t** message,
           ompi_status_public_t* status) noexcept {
  return look_until_found([&](int& matched) {
    return take_once<StayingEntry>(source, tag, comm, &matched, message, status);
  });
}

int imrecv(void* buffer, std::size_t count, ompi_datatype_t* type, ompi_message_t** message,
           ompi_request_t** request) noexcept {
  return guarded([&]() -> int {
    const LeavingEntry entry(pml->interrupts);
    *request = &receive_message(buffer, count, type, message, false)->ompi();
    return OMPI_SUCCESS;
  });
}

int mrecv(void* buffer, std::size_t count, ompi_datatype_t* type, ompi_message_t** message,
          ompi_status_public_t* status) noexcept {
  return guarded([&]() -> int {
    ReceiveRequest* made = nullptr;
    {
      const Entry entry;
      made = receive_message(buffer, count, type, message, true);
    }
    wait_complete(made->ompi());
    return take_result(*made, status);
  });
}

}  // namespace overlap::speculative
