// Connection requests.
// SPDX-License-Identifier: BSD-3-Clause
#include "connections.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("A request is answered once", "[soft][connections]") {
  Bench bench;
  REQUIRE(bench.connected);
  REQUIRE(bench.ab.peer == &bench.ba);
  REQUIRE(bench.ba.peer == &bench.ab);
  REQUIRE(bench.ab.state == PairState::established);
  const std::uint64_t answered = bench.host.told.front().event.request;
  Pair& other = bench.directory.add_pair(bench.b, bench.completions_b, nullptr, nullptr);
  REQUIRE(bench.connections.accept(answered, other));  // the asker is gone, it seems
  REQUIRE(other.state == PairState::failed);
  REQUIRE_FALSE(bench.connections.accept(answered + 1, bench.ab));
  REQUIRE_FALSE(bench.connections.connect(bench.ab, bench.b.id, {}));
}

TEST_CASE("Only the asked may accept or reject", "[soft][connections]") {
  Bench bench;
  Pair& asker = bench.directory.add_pair(bench.a, bench.completions_a, nullptr, nullptr);
  REQUIRE(bench.connections.connect(asker, bench.b.id, {}));
  const std::uint64_t request = bench.host.told.back().event.request;
  Pair& wrong = bench.directory.add_pair(bench.a, bench.completions_a, nullptr, nullptr);
  REQUIRE_FALSE(bench.connections.accept(request, wrong));
  bench.connections.reject(request, bench.a);
  REQUIRE(asker.state == PairState::asking);
  bench.connections.reject(request, bench.b);
  REQUIRE(asker.state == PairState::failed);
  REQUIRE(bench.host.told.back().event.kind == Event::Kind::rejected);
}

TEST_CASE("Whoever is asked and goes leaves no asker waiting", "[soft][connections]") {
  Bench bench;
  Pair& asker = bench.directory.add_pair(bench.a, bench.completions_a, nullptr, nullptr);
  Pair& gone = bench.directory.add_pair(bench.a, bench.completions_a, nullptr, nullptr);
  REQUIRE(bench.connections.connect(asker, bench.b.id, {}));
  REQUIRE(bench.connections.connect(gone, bench.b.id, {}));
  bench.connections.forget_asker(gone);
  const std::size_t before = bench.host.told.size();
  bench.connections.forget_asked(bench.b);
  REQUIRE(bench.host.told.size() == before + 1);
  REQUIRE(bench.host.told.back().pair == asker.number);
  REQUIRE(asker.state == PairState::failed);
  REQUIRE(gone.state == PairState::asking);
}

TEST_CASE("Delayed requests arrive late, lost ones fail", "[soft][connections]") {
  Bench bench;
  Pair& lost = bench.directory.add_pair(bench.a, bench.completions_a, nullptr, nullptr);
  Pair& late = bench.directory.add_pair(bench.a, bench.completions_a, nullptr, nullptr);
  bench.b.request_delay_ns = 1000;
  bench.b.lose_requests = 1;
  REQUIRE(bench.connections.connect(lost, bench.b.id, {}));
  REQUIRE(bench.connections.connect(late, bench.b.id, {}));
  REQUIRE(bench.connections.next_late() == 1000);
  const std::size_t before = bench.host.told.size();
  bench.connections.deliver_late(999);
  REQUIRE(bench.host.told.size() == before);
  bench.connections.deliver_late(1000);
  REQUIRE(bench.host.told.size() == before + 2);
  REQUIRE(lost.state == PairState::failed);
  REQUIRE(bench.host.told.back().event.kind == Event::Kind::connect_request);
  REQUIRE(bench.connections.next_late() == never);
}
