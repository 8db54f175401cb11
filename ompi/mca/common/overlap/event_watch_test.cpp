// The watch on a real event loop, whose connections come, go and take each other's numbers.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/event_watch.hpp"

#include "test/support/catch.hpp"

#include <sys/socket.h>

namespace {

using overlap::EventWatch;

void do_nothing(int, short, void*) {}

/// Open MPI's event loop, in a process without MPI_Init.
class Loop {
 public:
  Loop() { opal_sync_event_base = event_base_new(); }
  ~Loop() { event_base_free(opal_sync_event_base); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
};

/// A connection as a BTL has one: its end of two sockets is watched by the event loop.
class Connection {
 public:
  /// @param number  the descriptor's, which is free
  explicit Connection(int number = -1, short events = EV_READ | EV_PERSIST) {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    own_ = ends[0];
    peer_ = ends[1];
    if (number >= 0 && own_ != number) {
      REQUIRE(dup2(own_, number) == number);
      ::close(own_);
      own_ = number;
    }
    event_ = event_new(opal_sync_event_base, own_, events, do_nothing, nullptr);
    REQUIRE(event_add(event_, nullptr) == 0);
  }
  ~Connection() {
    close();
    ::close(peer_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] int number() const { return own_; }
  void write_by_peer() const { REQUIRE(::write(peer_, "x", 1) == 1); }
  void close() {
    if (event_ == nullptr) return;
    event_free(std::exchange(event_, nullptr));
    ::close(own_);
  }

 private:
  int own_ = -1;
  int peer_ = -1;
  event* event_ = nullptr;
};

}  // namespace

TEST_CASE("Event watch: data for a connection is seen, and for none that has gone") {
  const Loop loop;
  EventWatch watch;
  REQUIRE(watch.open());
  Connection first;
  Connection second;
  watch.sync(true);
  CHECK_FALSE(watch.is_readable());
  first.write_by_peer();
  CHECK(watch.is_readable());
  first.close();
  CHECK_FALSE(watch.is_readable());
  second.write_by_peer();
  CHECK(watch.is_readable());
}

TEST_CASE("Event watch: a connection that takes the number of another is a new one") {
  const Loop loop;
  EventWatch watch;
  REQUIRE(watch.open());
  Connection first;
  watch.sync(true);
  const int number = first.number();
  first.close();
  const Connection second(number);
  watch.sync(true);
  second.write_by_peer();
  CHECK(watch.is_readable());
}

TEST_CASE("Event watch: what a child process holds of a closed connection wakes nobody") {
  const Loop loop;
  EventWatch watch;
  REQUIRE(watch.open());
  Connection first;
  const Connection second;
  watch.sync(true);
  const int held = dup(first.number());  // a child process has such a copy
  first.write_by_peer();
  first.close();
  watch.sync(true);
  CHECK_FALSE(watch.is_readable());
  second.write_by_peer();
  CHECK(watch.is_readable());
  ::close(held);
}

TEST_CASE("Event watch: as many events may be others") {
  const Loop loop;
  EventWatch watch;
  REQUIRE(watch.open());
  Connection first(-1, EV_READ);  // has come in, and says next whose it is
  watch.sync(false);
  CHECK_FALSE(watch.has_other_descriptors());
  const int number = dup(first.number());
  first.close();
  const Connection second(number);
  CHECK_FALSE(watch.has_other_count());
  CHECK(watch.has_other_descriptors());
  watch.sync(false);
  CHECK_FALSE(watch.has_other_descriptors());
  second.write_by_peer();
  CHECK(watch.is_readable());
}

TEST_CASE("Event watch: a connection that has not said whose it is wakes once") {
  const Loop loop;
  EventWatch watch;
  REQUIRE(watch.open());
  const Connection first(-1, EV_READ);
  watch.sync(false);
  first.write_by_peer();
  CHECK_FALSE(watch.is_readable());
  CHECK_FALSE(watch.sleep({overlap::Sleep::Until::arrival, 0}));  // by the edge, which it takes out
  watch.ring();
  CHECK(watch.sleep({overlap::Sleep::Until::arrival, 0}));
}

TEST_CASE("Event watch: a timer that is due is work for the next turn") {
  const Loop loop;
  EventWatch watch;
  REQUIRE(watch.open());
  event* timer = event_new(opal_sync_event_base, -1, 0, do_nothing, nullptr);
  watch.sync(false);
  CHECK_FALSE(watch.is_due());
  timeval wait{60, 0};
  REQUIRE(event_add(timer, &wait) == 0);
  watch.sync(false);
  CHECK_FALSE(watch.is_due());
  wait.tv_sec = 0;
  REQUIRE(event_add(timer, &wait) == 0);
  CHECK(watch.has_other_descriptors());
  watch.sync(false);
  CHECK(watch.is_due());
  event_free(timer);
}
