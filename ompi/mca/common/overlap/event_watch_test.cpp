// The watch on a real event loop, whose connections come, go and take each other's numbers.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/event_watch.hpp"

#include "test/support/catch.hpp"

#include <fcntl.h>
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
  explicit Connection(int number = -1, short events = EV_READ | EV_PERSIST,
                      event_callback_fn served = do_nothing, void* context = nullptr) {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    own_ = ends[0];
    peer_ = ends[1];
    if (number >= 0 && own_ != number) {
      REQUIRE(dup2(own_, number) == number);
      ::close(own_);
      own_ = number;
    }
    event_ = event_new(opal_sync_event_base, own_, events, served, context);
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
  void say_process_by_peer(opal_process_name_t name) const {
    struct {
      opal_process_name_t name;
      std::array<char, 16> magic;
    } first{name, {"OPAL-TCP-BTL"}};
    OPAL_PROCESS_NAME_HTON(first.name);
    REQUIRE(::write(peer_, &first, sizeof first) == sizeof first);
  }
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
  // What tcp keeps of the first one is still there.
  event* const kept = event_new(opal_sync_event_base, -1, 0, do_nothing, nullptr);
  const Connection second(number);
  CHECK_FALSE(watch.has_other_count());
  CHECK(watch.has_other_descriptors());
  watch.sync(true);
  CHECK_FALSE(watch.has_other_descriptors());
  second.write_by_peer();
  CHECK(watch.is_readable());
  event_free(kept);
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
  watch.ring(0);
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
  wait.tv_usec = 10'000;  // so much can libevent's clock be behind, or have been
  REQUIRE(event_add(timer, &wait) == 0);
  watch.sync(false);
  CHECK(watch.is_due());
  event_free(timer);
}

TEST_CASE("Event watch: what an adapter reports ends a sleep until an arrival, and no other") {
  const Loop loop;
  EventWatch watch;
  REQUIRE(watch.open());
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const overlap::Descriptor report(ends[0]);
  const overlap::Descriptor adapter(ends[1]);
  REQUIRE(::write(adapter.get(), "x", 1) == 1);
  using Until = overlap::Sleep::Until;
  CHECK_FALSE(watch.sleep({Until::arrival, 0}, -1, report.get()));
  CHECK(watch.woken_by_sender());
  CHECK_FALSE(watch.sleep({Until::time, 1000}, -1, report.get()));
  CHECK_FALSE(watch.woken_by_sender());
  watch.ring(0);
  CHECK(watch.sleep({Until::rung, 0}, -1, report.get()));
  CHECK_FALSE(watch.woken_by_sender());
}

TEST_CASE("Event loop beside MPI threads: connections of processes that are not known are left") {
  const Loop loop;
  constexpr opal_process_name_t known{7, 3};
  const auto knows = [](const opal_process_name_t& name, const void* context) noexcept {
    const auto& other = *static_cast<const opal_process_name_t*>(context);
    return name.jobid == other.jobid && name.vpid == other.vpid;
  };
  int served = 0;
  const auto serve = [](int, short, void* count) { ++*static_cast<int*>(count); };
  const Connection coming(-1, EV_READ, serve, &served);
  const auto turn = [&] { return overlap::poll_events_of(knows, &known); };
  CHECK(turn() == 1);  // it has said nothing yet
  SECTION("of a known process: at once") {
    coming.say_process_by_peer(known);
    CHECK(turn() == 0);
    CHECK(served == 1);
    CHECK(turn() == 0);
    CHECK(served == 1);
  }
  SECTION("of another one: by an MPI thread") {
    coming.say_process_by_peer({7, 4});
    CHECK(turn() == 1);
    CHECK(turn() == 1);
    CHECK(served == 0);
    overlap::poll_events();
    CHECK(served == 1);
  }
  SECTION("whoever says something else: by an MPI thread") {
    coming.write_by_peer();
    CHECK(turn() == 1);
    CHECK(served == 0);
    overlap::poll_events();
    CHECK(served == 1);
  }
  SECTION("others are served") {
    int others_served = 0;
    const Connection other(-1, EV_READ | EV_PERSIST, serve, &others_served);
    other.write_by_peer();
    CHECK(turn() == 1);
    CHECK(others_served == 1);
  }
  SECTION("more than can be left out: no turn") {
    std::vector<std::unique_ptr<Connection>> many;
    for (int i = 0; i < 70; ++i)
      many.push_back(std::make_unique<Connection>(-1, EV_READ, serve, &served));
    coming.say_process_by_peer({7, 4});
    CHECK(turn() > 0);
    CHECK(served == 0);
  }
}
