// Field: non-blocking epochs: calls that MPI does not allow here raise MPI_ERR_RMA_SYNC and
// make no request; epochs that are open stay as they are.
// SPDX-License-Identifier: BSD-3-Clause
#include "nonblocking.hpp"

using namespace overlap::test;

namespace {

/// A window that returns errors, and a request that no failing call may change.
class Faulty : public Array<Word> {
 public:
  Faulty() : Array<Word>(overlap::test::ranks(), -1) {
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  }
  template <class Call, class... Arguments>
  void expect(int error, Call call, const Arguments&... arguments) {
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(error_class(call(arguments..., &request)) == error);
    CHECK(request == MPI_REQUEST_NULL);
  }
};

}  // namespace

TEST_CASE("Closing what is not open") {
  Faulty window;
  const MPI_Win win = window.win;
  const int right = window.right();
  const auto nothing_is_open = [&] {
    window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_icomplete, win);
    window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_iwait, win);
    window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_iunlock, right, win);
    window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_iunlock_all, win);
    window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_iflush, right, win);
    window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_iflush_local, right, win);
    window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_iflush_all, win);
    window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_iflush_local_all, win);
  };
  nothing_is_open();
  // Closed is closed, complete or not.
  const Group from(win, {window.left()}), to(win, {right});
  MPI_Request requests[] = {request_of(MPIX_Win_ipost, from, 0, win),
                            request_of(MPIX_Win_istart, to, 0, win),
                            request_of(MPIX_Win_icomplete, win), request_of(MPIX_Win_iwait, win)};
  nothing_is_open();
  int flag = -1;
  CHECK(error_class(MPI_Win_test(win, &flag)) == MPI_ERR_RMA_SYNC);
  CHECK(error_class(MPI_Win_complete(win)) == MPI_ERR_RMA_SYNC);
  CHECK(error_class(MPI_Win_wait(win)) == MPI_ERR_RMA_SYNC);
  REQUIRE(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  nothing_is_open();
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("Opening what is open") {
  Faulty window;
  const MPI_Win win = window.win;
  const int right = window.right();
  const Group from(win, {window.left()}), to(win, {right});
  finish(request_of(MPIX_Win_ipost, from, 0, win));
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_ipost, from, 0, win);
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_ifence, 0, win);
  finish(request_of(MPIX_Win_istart, to, 0, win));
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_istart, to, 0, win);
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_ilock, MPI_LOCK_SHARED, right, 0, win);
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_ilock_all, 0, win);
  finish(request_of(MPIX_Win_icomplete, win));
  finish(request_of(MPIX_Win_iwait, win));
  MPI_Barrier(MPI_COMM_WORLD);
  finish(request_of(MPIX_Win_ilock, MPI_LOCK_SHARED, right, 0, win));
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_ilock, MPI_LOCK_SHARED, right, 0, win);
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_ilock_all, 0, win);
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_istart, to, 0, win);
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_iunlock_all, win);
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_ifence, 0, win);
  finish(request_of(MPIX_Win_iunlock, right, win));
  MPI_Barrier(MPI_COMM_WORLD);
  finish(request_of(MPIX_Win_ilock_all, 0, win));
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_ilock_all, 0, win);
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_iunlock, right, win);
  window.expect(MPI_ERR_RMA_SYNC, MPIX_Win_istart, to, 0, win);
  finish(request_of(MPIX_Win_iunlock_all, win));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("Wrong arguments of calls that are allowed at this point") {
  Faulty window;
  const MPI_Win win = window.win;
  window.expect(MPI_ERR_RANK, MPIX_Win_ilock, MPI_LOCK_SHARED, size(), 0, win);
  window.expect(MPI_ERR_RANK, MPIX_Win_ilock, MPI_LOCK_SHARED, -1, 0, win);
  window.expect(MPI_ERR_LOCKTYPE, MPIX_Win_ilock, -1, 0, 0, win);
  window.expect(MPI_ERR_ASSERT, MPIX_Win_ifence, MPI_MODE_NOCHECK, win);
  window.expect(MPI_ERR_GROUP, MPIX_Win_ipost, MPI_GROUP_NULL, 0, win);
  finish(request_of(MPIX_Win_ilock_all, 0, win));
  window.expect(MPI_ERR_RANK, MPIX_Win_iflush, size(), win);
  window.expect(MPI_ERR_RANK, MPIX_Win_iflush_local, -1, win);
  CHECK(error_class(MPIX_Win_iflush_all(win, nullptr)) == MPI_ERR_ARG);
  finish(request_of(MPIX_Win_iunlock_all, win));
}
