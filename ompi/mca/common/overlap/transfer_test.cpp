// Puts and gets over BTLs that refuse, fail, or have no room; and what a BTL counts as.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/transfer.hpp"

#include <array>

#include "ompi/mca/common/overlap/sim/fake_btl.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap;
using sim::FakeBtl;
using sim::FakeProcess;
using Direction = Transfer::Direction;

int poll_nothing() { return 0; }

/// Notes what it learns.
class NotingTransfer final : public Transfer {
 public:
  std::uint64_t moved_bytes = 0;
  std::vector<bool> ends;                              ///< ok, in order
  std::vector<const mca_btl_base_module_t*> refusing;  ///< rails that have refused for good

 protected:
  std::span<const std::byte> end_message(mca_btl_base_tag_t&) override { return {}; }
  void posted(bool) override {}
  void moved(std::uint64_t bytes) override { moved_bytes += bytes; }
  void ended(bool ok) override {
    ends.push_back(ok);
    release();
  }
  void refused_for_good(const Rail& rail) override { refusing.push_back(&rail.btl()); }
};

/// Two rails to a process of another host; neither needs keys.
struct TwoRails {
  FakeBtl first{"first", poll_nothing};
  FakeBtl second{"second", poll_nothing};
  FakeProcess process{{&first, &second}};
  Endpoints endpoints;
  Endpoint endpoint{endpoints, process.proc, process.bml};
  std::vector<std::byte> memory{std::size_t{1} << 20U};

  void start(Transfer& transfer, Direction direction, std::uint64_t bytes) {
    transfer.start({.endpoint = &endpoint,
                    .direction = direction,
                    .local = memory.data(),
                    .remote_address = 0x1000,
                    .remote_key = {},
                    .came_over = &first,
                    .bytes = bytes});
  }
  /// End everything well.
  void end_all() {
    for (FakeBtl* btl : {&first, &second}) {
      while (!btl->in_flight.empty()) btl->end(OMPI_SUCCESS);
    }
  }
};

constexpr std::uint64_t unstriped_bytes = 200'000;

}  // namespace

TEST_CASE("Transfer: a rail that refuses puts goes on with gets, and other rails with puts") {
  TwoRails way;
  NotingTransfer transfer;
  way.first.answers = {OMPI_ERR_NOT_AVAILABLE};
  way.start(transfer, Direction::put, unstriped_bytes);
  CHECK(transfer.ends == std::vector{false});
  CHECK(transfer.refusing == std::vector<const mca_btl_base_module_t*>{&way.first});

  way.start(transfer, Direction::put, unstriped_bytes);
  CHECK(way.first.asked.empty());
  REQUIRE(way.second.asked.size() == 1);
  CHECK(way.second.asked[0].put);
  way.end_all();

  way.start(transfer, Direction::get, unstriped_bytes);
  REQUIRE(way.first.asked.size() == 1);
  CHECK_FALSE(way.first.asked[0].put);
  way.end_all();
  CHECK(transfer.ends == std::vector{false, true, true});
  CHECK(transfer.moved_bytes == 2 * unstriped_bytes);
}

TEST_CASE("Transfer: a piece that fails ends it once, when nothing is in flight any more") {
  TwoRails way;
  NotingTransfer transfer;
  way.first.btl_put_limit = 65536;
  way.start(transfer, Direction::put, unstriped_bytes);
  REQUIRE(way.first.in_flight.size() == 4);
  way.first.end(OMPI_SUCCESS);
  way.first.end(OMPI_ERROR);
  way.first.end(OMPI_SUCCESS);
  CHECK(transfer.ends.empty());
  way.first.end(OMPI_SUCCESS);
  CHECK(transfer.ends == std::vector{false});
  CHECK(transfer.refusing == std::vector<const mca_btl_base_module_t*>{&way.first});
  CHECK(transfer.idle());

  way.start(transfer, Direction::put, unstriped_bytes);
  CHECK(way.first.in_flight.empty());
  CHECK_FALSE(way.second.in_flight.empty());
  way.end_all();
}

TEST_CASE("Transfer: without room it waits and goes on where it was") {
  TwoRails way;
  NotingTransfer transfer;
  way.first.btl_get_limit = 65536;
  const int no_room = GENERATE(int{OMPI_ERR_OUT_OF_RESOURCE}, int{OMPI_ERR_TEMP_OUT_OF_RESOURCE});
  way.first.answers = {OMPI_SUCCESS, no_room};
  way.start(transfer, Direction::get, unstriped_bytes);
  CHECK(way.endpoints.has_work());
  way.end_all();  // what was posted ends before the rest is
  CHECK(transfer.ends.empty());

  way.first.answers = {no_room};
  CHECK(way.endpoints.retry() == 0);
  CHECK(way.endpoints.has_work());
  CHECK(way.endpoints.retry() == 1);
  CHECK_FALSE(way.endpoints.has_work());
  way.end_all();
  CHECK(transfer.ends == std::vector{true});
  CHECK(transfer.refusing.empty());
  std::uint64_t next = 0x1000;
  for (const FakeBtl::Piece& piece : way.first.asked) {
    CHECK(piece.remote_address == next);
    CHECK(piece.local == way.memory.data() + (next - 0x1000));
    next += piece.bytes;
  }
  CHECK(next == 0x1000 + unstriped_bytes);
}

TEST_CASE(
    "Transfer: a large message is striped, and one share that is refused ends it behind the "
    "other") {
  TwoRails way;
  NotingTransfer transfer;
  const std::uint64_t bytes = way.memory.size();
  way.start(transfer, Direction::put, bytes);
  REQUIRE(way.first.asked.size() == 1);
  REQUIRE(way.second.asked.size() == 1);
  CHECK(way.first.asked[0].bytes + way.second.asked[0].bytes == bytes);
  CHECK(way.second.asked[0].remote_address == 0x1000 + way.first.asked[0].bytes);
  way.first.end(OMPI_SUCCESS);
  CHECK(transfer.ends.empty());
  way.second.end(OMPI_SUCCESS);
  CHECK(transfer.ends == std::vector{true});

  way.second.answers = {OMPI_ERROR};
  way.start(transfer, Direction::put, bytes);
  CHECK(transfer.ends.size() == 1);
  way.first.end(OMPI_SUCCESS);
  CHECK(transfer.ends == std::vector{true, false});
  CHECK(transfer.refusing == std::vector<const mca_btl_base_module_t*>{&way.second});
}

TEST_CASE(
    "Transfer: a message for a key goes over the rail that the key came over, or not at all") {
  TwoRails way;
  NotingTransfer transfer;
  const std::array<std::byte, 8> key{};
  const Transfer::Job job{.endpoint = &way.endpoint,
                          .direction = Direction::put,
                          .local = way.memory.data(),
                          .remote_address = 0x1000,
                          .remote_key = key,
                          .came_over = &way.second,
                          .bytes = unstriped_bytes};
  transfer.start(job);
  CHECK(way.first.asked.empty());
  CHECK(way.second.asked.size() == 1);
  way.end_all();
  Transfer::Job unknown = job;
  unknown.came_over = nullptr;  // both could be meant
  transfer.start(unknown);
  CHECK(transfer.ends == std::vector{true, false});
  CHECK(transfer.refusing.empty());
}

TEST_CASE("Transfer: memory without a key is not accessed by a rail that needs one") {
  TwoRails way;
  way.second.btl_register_mem = [](mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*,
                                   std::size_t, std::uint32_t) {
    static std::byte handle;
    return reinterpret_cast<mca_btl_base_registration_handle_t*>(&handle);
  };
  way.second.btl_deregister_mem = [](mca_btl_base_module_t*,
                                     mca_btl_base_registration_handle_t*) -> int {
    return OMPI_SUCCESS;
  };
  NotingTransfer transfer;
  Transfer::Job job{.endpoint = &way.endpoint,
                    .direction = Direction::get,
                    .local = way.memory.data(),
                    .remote_address = 0x1000,
                    .remote_key = {},
                    .came_over = nullptr,
                    .bytes = unstriped_bytes};
  transfer.start(job);
  CHECK(way.first.asked.size() == 1);
  CHECK(way.second.asked.empty());
  way.end_all();
  const std::array<std::byte, 8> key{};
  job.remote_key = key;  // the first one gives none
  transfer.start(job);
  CHECK(way.first.asked.size() == 1);
  CHECK(way.second.asked.size() == 1);
  way.end_all();
  CHECK(transfer.ends == std::vector{true, true});
}

namespace {

/// One rail, a socket's, to a process of another host.
struct OneSocket {
  FakeBtl btl{"tcp", nullptr};
  FakeProcess process{{&btl}};
  Endpoints endpoints;
  Endpoint endpoint{endpoints, process.proc, process.bml};
  std::vector<std::byte> memory{std::size_t{1} << 20U};

  void start(Transfer& transfer, std::uint64_t bytes) {
    transfer.start({.endpoint = &endpoint,
                    .direction = Direction::put,
                    .local = memory.data(),
                    .remote_address = 0x1000,
                    .remote_key = {},
                    .came_over = &btl,
                    .bytes = bytes});
  }
  /// The event loop sends what it has; in the interrupt thread's turn, or in an MPI thread's.
  void turn(bool interrupt_thread) {
    endpoints.in_interrupt_thread = interrupt_thread;
    for (std::size_t count = btl.in_flight.size(); count > 0; --count) btl.end(OMPI_SUCCESS);
    if (interrupt_thread) {
      static_cast<void>(endpoints.retry_in_thread());
    } else {
      static_cast<void>(endpoints.retry());
    }
    endpoints.in_interrupt_thread = false;
  }
};

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 17U;
constexpr std::uint64_t first_bytes = std::uint64_t{1} << 15U;

/// The lengths of what a BTL was asked for from `first` on, which follow each other in memory.
std::vector<std::uint64_t> lengths_of(const FakeBtl& btl, std::size_t first = 0) {
  std::vector<std::uint64_t> lengths;
  std::uint64_t next = 0x1000;
  for (std::size_t i = first; i < btl.asked.size(); ++i) {
    CHECK(btl.asked[i].remote_address == next);
    lengths.push_back(btl.asked[i].bytes);
    next += btl.asked[i].bytes;
  }
  return lengths;
}

}  // namespace

TEST_CASE("Transfer: the interrupt thread puts into a socket piece by piece, a turn for each") {
  OneSocket way;
  NotingTransfer transfer;
  way.endpoints.in_interrupt_thread = true;
  way.start(transfer, mebibyte);
  std::vector<std::uint64_t> expected(9, piece_bytes);
  expected.front() = first_bytes;
  expected.back() = piece_bytes - first_bytes;
  for (std::size_t sent = 1; sent <= expected.size(); ++sent) {
    CAPTURE(sent);
    CHECK(transfer.ends.empty());
    CHECK(std::ranges::equal(lengths_of(way.btl), std::span(expected).first(sent)));
    CHECK(way.btl.in_flight.size() == 1);
    way.turn(true);
  }
  CHECK(way.btl.asked.size() == expected.size());
  CHECK(transfer.ends == std::vector{true});
  CHECK(transfer.moved_bytes == mebibyte);
}

TEST_CASE("Transfer: an MPI thread posts what the interrupt thread has left of a put") {
  OneSocket way;
  NotingTransfer transfer;
  way.endpoints.in_interrupt_thread = true;
  way.start(transfer, mebibyte);
  way.turn(true);
  way.turn(true);
  const std::uint64_t left_bytes = mebibyte - first_bytes - 2 * piece_bytes;
  CHECK(lengths_of(way.btl) == std::vector{first_bytes, piece_bytes, piece_bytes});
  way.turn(false);
  CHECK(lengths_of(way.btl) == std::vector{first_bytes, piece_bytes, piece_bytes, left_bytes});
  way.turn(true);
  CHECK(transfer.ends == std::vector{true});
}

TEST_CASE("Transfer: from an MPI thread a socket gets a put at once") {
  OneSocket way;
  NotingTransfer transfer;
  way.start(transfer, mebibyte);
  CHECK(lengths_of(way.btl) == std::vector{mebibyte});
  CHECK_FALSE(way.endpoints.has_work());
  way.btl.end(OMPI_SUCCESS);
  CHECK(transfer.ends == std::vector{true});
}

TEST_CASE("Transfer: paced puts to one process go one behind the other") {
  OneSocket way;
  std::array<NotingTransfer, 3> transfers;
  const bool interrupt_thread = GENERATE(true, false);  // that goes on with them
  way.endpoints.in_interrupt_thread = true;
  for (NotingTransfer& each : transfers) way.start(each, 2 * piece_bytes);
  CHECK(way.btl.asked.size() == 1);
  std::vector<std::size_t> order;
  for (int turns = 0; turns < 9; ++turns) {
    way.turn(interrupt_thread);
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      if (!transfers[i].ends.empty() && std::ranges::find(order, i) == order.end())
        order.push_back(i);
    }
  }
  CHECK(order == std::vector<std::size_t>{0, 1, 2});
  std::uint64_t bytes = 0;
  for (const FakeBtl::Piece& piece : way.btl.asked) bytes += piece.bytes;
  CHECK(bytes == 6 * piece_bytes);
  for (const NotingTransfer& each : transfers) CHECK(each.ends == std::vector{true});
}

TEST_CASE("Transfer: a peer that is lost between pieces ends it once, and nothing more is posted") {
  OneSocket way;
  NotingTransfer transfer;
  way.endpoints.in_interrupt_thread = true;
  way.start(transfer, mebibyte);
  SECTION("the piece fails") {
    way.turn(true);
    way.btl.end(OMPI_ERR_UNREACH);
    CHECK(transfer.ends.empty());
  }
  SECTION("the next one is refused") {
    way.btl.answers = {OMPI_ERR_UNREACH};
    way.btl.end(OMPI_SUCCESS);
  }
  const std::size_t asked = way.btl.asked.size();
  static_cast<void>(way.endpoints.retry_in_thread());
  CHECK(transfer.ends == std::vector{false});
  CHECK(transfer.refusing == std::vector<const mca_btl_base_module_t*>{&way.btl});
  way.turn(true);
  CHECK(way.btl.asked.size() == asked);
  CHECK(transfer.ends.size() == 1);
  CHECK_FALSE(way.endpoint.has_waiting_transfer());
  CHECK(way.endpoint.memory_rails()[0].queued_bytes == 0);
}

TEST_CASE("Transfer: the interrupt thread goes on with puts into sockets alone") {
  FakeBtl polled{"other", poll_nothing};
  FakeProcess process{{&polled}};
  Endpoints endpoints;
  Endpoint endpoint(endpoints, process.proc, process.bml);
  std::vector<std::byte> memory(mebibyte);
  NotingTransfer transfer;
  endpoints.in_interrupt_thread = true;
  polled.answers = {OMPI_ERR_OUT_OF_RESOURCE};
  transfer.start({.endpoint = &endpoint,
                  .direction = Direction::put,
                  .local = memory.data(),
                  .remote_address = 0x1000,
                  .remote_key = {},
                  .came_over = &polled,
                  .bytes = mebibyte});
  static_cast<void>(endpoints.retry_in_thread());
  CHECK(polled.asked.empty());
  CHECK(endpoints.retry() == 1);
  CHECK(lengths_of(polled) == std::vector{mebibyte});  // and in one piece
  polled.end(OMPI_SUCCESS);
  CHECK(transfer.ends == std::vector{true});
}

TEST_CASE("Endpoint: a BTL counts by what it can do, whatever its name is") {
  const char* const name = GENERATE("vader", "sm", "tcp", "ring", "other");
  CAPTURE(name);
  FakeBtl polled{name, poll_nothing};
  FakeBtl by_events{name, nullptr};
  Endpoints endpoints;
  SECTION("polled, to a process of this host: a copy of our own") {
    FakeProcess process{{&polled}};
    process.proc.super.proc_flags = OPAL_PROC_ON_NODE;
    const Endpoint endpoint(endpoints, process.proc, process.bml);
    CHECK(endpoint.copies_itself());
    CHECK_FALSE(endpoint.works_by_events());
    CHECK_FALSE(endpoint.puts_are_messages());
  }
  SECTION("polled, to another host") {
    FakeProcess process{{&polled}};
    const Endpoint endpoint(endpoints, process.proc, process.bml);
    CHECK_FALSE(endpoint.copies_itself());
    CHECK_FALSE(endpoint.works_by_events());
  }
  SECTION("with a capability of ours, to a process of this host: an adapter copies") {
    const BtlCapability capability{};
    offer_capability(&polled, &capability);
    FakeProcess process{{&polled}};
    process.proc.super.proc_flags = OPAL_PROC_ON_NODE;
    const Endpoint endpoint(endpoints, process.proc, process.bml);
    CHECK_FALSE(endpoint.copies_itself());
    withdraw_capability(&polled);
  }
  SECTION("driven by events: a socket") {
    FakeProcess process{{&by_events}};
    process.proc.super.proc_flags = OPAL_PROC_ON_NODE;
    const Endpoint endpoint(endpoints, process.proc, process.bml);
    CHECK_FALSE(endpoint.copies_itself());
    CHECK(endpoint.works_by_events());
    CHECK(endpoint.puts_are_messages());
  }
}
