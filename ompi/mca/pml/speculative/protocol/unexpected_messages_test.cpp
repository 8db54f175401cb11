// Messages without a receive: their queues, their number and their memory.
// SPDX-License-Identifier: BSD-3-Clause
#include "unexpected_messages.hpp"

#include <cstring>

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;

TEST_CASE("Unexpected messages are found in their order, until they are taken", "[P1.5]") {
  Bench bench;
  Arrived& first = bench.unexpected.make(bench.peer, 5, Kind::eager, 3, 3);
  Arrived& other = bench.unexpected.make(bench.peer, 6, Kind::rts, 1000, 0);
  Arrived& second = bench.unexpected.make(bench.peer, 5, Kind::eager, 0, 0);
  CHECK(bench.comm.find_unexpected(1, 5) == nullptr);  // made, and not stored yet
  for (Arrived* message : {&first, &other, &second}) bench.unexpected.store(*message);
  CHECK(bench.comm.unexpected_count == 3);
  CHECK(bench.comm.find_unexpected(1, 5) == &first);
  CHECK(bench.comm.find_unexpected(any_source, 6) == &other);
  CHECK(bench.comm.find_unexpected(1, any_tag) == &first);
  bench.comm.take(first);
  CHECK(bench.comm.find_unexpected(1, 5) == &second);
  CHECK(bench.comm.find_unexpected(any_source, any_tag) == &other);
  Arrived::destroy(&first);
}

TEST_CASE("Unexpected messages: a new one has what it was made with, whatever its memory held") {
  Bench bench;
  Arrived& old = bench.unexpected.make(bench.peer, 5, Kind::rts, 1000, 64);
  old.answered = true;
  old.ghost = 17;
  old.arrived_ns = 99;
  std::memset(old.payload(), 0xEE, 64);
  Arrived::destroy(&old);
  Arrived& fresh = bench.unexpected.make(bench.peer, 6, Kind::eager, 64, 64);
  CHECK(&fresh == &old);  // the same memory
  CHECK(fresh.peer == &bench.peer);
  CHECK(fresh.tag == 6);
  CHECK(fresh.kind == Kind::eager);
  CHECK(fresh.length_bytes == 64);
  CHECK(fresh.payload_bytes == 64);
  CHECK_FALSE(fresh.answered);
  CHECK(fresh.ghost == 0);
  CHECK(fresh.arrived_ns == 0);
  Arrived::destroy(&fresh);
}

TEST_CASE("Unexpected messages: the most at a time are counted, in whichever communicator") {
  Bench bench;
  Communicator& other = bench.streams.add({.context = 8, .size = 2});
  for (int i = 0; i < 3; ++i)
    bench.unexpected.store(bench.unexpected.make(bench.peer, 5, Kind::eager, 0, 0));
  bench.unexpected.store(bench.unexpected.make(other.peer(1), 5, Kind::eager, 0, 0));
  CHECK(bench.counters.unexpected_queue_max == 3);
  Arrived* taken = bench.comm.find_unexpected(1, 5);
  bench.comm.take(*taken);
  Arrived::destroy(taken);
  CHECK(bench.counters.unexpected_queue_max == 3);
}

TEST_CASE("Unexpected messages of a communicator that goes give their memory back") {
  Bench bench;
  Communicator& other = bench.streams.add({.context = 8, .size = 2});
  Arrived& left = bench.unexpected.make(other.peer(1), 5, Kind::eager, 40, 40);
  bench.unexpected.store(left);
  bench.streams.remove(other);
  Arrived& fresh = bench.unexpected.make(bench.peer, 5, Kind::eager, 40, 40);
  CHECK(&fresh == &left);
  Arrived::destroy(&fresh);
}
