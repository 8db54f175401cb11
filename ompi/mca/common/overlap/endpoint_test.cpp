// Messages out: which of them wake a thread of the other process that sleeps.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/endpoint.hpp"

#include <array>

#include "ompi/mca/common/overlap/sim/fake_btl.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap;
using sim::FakeBtl;
using sim::FakeProcess;

int poll_nothing() { return 0; }

/// What the BTL was given: the flags of each message that it took.
std::vector<std::uint32_t> taken_flags;
int room;    ///< messages that it still takes
bool keeps;  ///< btl_send takes any number, and keeps them
int kept;    ///< so many

/// A BTL for messages, with or without btl_sendi.
class MessageBtl : public FakeBtl {
 public:
  explicit MessageBtl(bool injects, const char* name = "messages") : FakeBtl(name, poll_nothing) {
    taken_flags.clear();
    room = 1;
    keeps = false;
    kept = 0;
    btl_sendi = injects ? sendi : nullptr;
    btl_alloc = alloc;
    btl_free = free;
    btl_send = send;
  }

 private:
  static int take(std::uint32_t flags) {
    if (room == 0) return OMPI_ERR_OUT_OF_RESOURCE;
    --room;
    taken_flags.push_back(flags);
    return OMPI_SUCCESS;
  }
  static int sendi(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, opal_convertor_t*, void*,
                   std::size_t, std::size_t, std::uint8_t, std::uint32_t flags, mca_btl_base_tag_t,
                   mca_btl_base_descriptor_t**) {
    return take(flags);
  }
  static mca_btl_base_descriptor_t* alloc(mca_btl_base_module_t*, mca_btl_base_endpoint_t*,
                                          std::uint8_t, std::size_t, std::uint32_t flags) {
    static std::array<std::byte, 64> bytes;
    static mca_btl_base_segment_t segment{};
    static mca_btl_base_descriptor_t descriptor{};
    segment.seg_addr.pval = bytes.data();
    descriptor.des_segments = &segment;
    descriptor.des_segment_count = 1;
    descriptor.des_flags = flags;
    return &descriptor;
  }
  static int free(mca_btl_base_module_t*, mca_btl_base_descriptor_t*) { return OMPI_SUCCESS; }
  static int send(mca_btl_base_module_t*, mca_btl_base_endpoint_t*,
                  mca_btl_base_descriptor_t* descriptor, mca_btl_base_tag_t) {
    if (keeps) {
      ++kept;
      return OMPI_SUCCESS;
    }
    const int rc = take(descriptor->des_flags);
    return rc == OMPI_SUCCESS ? 1 : rc;
  }
};

bool wakes(std::uint32_t flags) { return (flags & MCA_BTL_DES_FLAGS_SIGNAL) != 0; }

constexpr mca_btl_base_tag_t tag = MCA_BTL_TAG_PML;
constexpr std::array<std::byte, 8> message{};

}  // namespace

TEST_CASE(
    "Endpoint: a message that its process may wait for wakes, at once or when there is room") {
  const bool injects = GENERATE(true, false);
  const bool announced = GENERATE(true, false);
  MessageBtl btl(injects);
  FakeProcess process({&btl});
  Endpoints endpoints;
  Endpoint endpoint(endpoints, process.proc, process.bml);
  const node::Envelope wanted{.kind = node::WaitKind::answer};
  const auto send = [&] {
    endpoint.send_control(endpoint.next_eager(), tag, message, {}, announced ? &wanted : nullptr);
  };
  send();
  REQUIRE(taken_flags.size() == 1);
  CHECK(wakes(taken_flags[0]) == announced);
  send();
  REQUIRE(taken_flags.size() == 1);
  room = 1;
  CHECK(endpoints.retry() == 1);
  REQUIRE(taken_flags.size() == 2);
  CHECK(wakes(taken_flags[1]) == announced);
}

TEST_CASE("Endpoint: what shared memory has no room for waits here, not in its BTL") {
  const char* const name = GENERATE("vader", "sm", "other");
  MessageBtl btl(true, name);
  const bool waits = is_shared_memory(btl);
  keeps = true;
  FakeProcess process({&btl});
  Endpoints endpoints;
  Endpoint endpoint(endpoints, process.proc, process.bml);
  const auto send = [&] { endpoint.send_control(endpoint.next_eager(), tag, message); };
  send();
  REQUIRE(taken_flags.size() == 1);
  send();
  // Others may have refused for another reason, and would for ever.
  CHECK(kept == (waits ? 0 : 1));
  CHECK(endpoint.crowded() == waits);
  CHECK(endpoints.retry() == 0);
  room = 1;
  CHECK(endpoints.retry() == (waits ? 1 : 0));
  CHECK(taken_flags.size() == (waits ? 2 : 1));
  CHECK_FALSE(endpoint.crowded());
}

TEST_CASE("Endpoint: copies and fragments do not wait for each other") {
  struct Piece final : Work {
    bool room = false;
    int tries = 0;
    bool try_again() override { return ++tries, room; }
  };
  MessageBtl btl(true);
  FakeProcess process({&btl});
  Endpoints endpoints;
  Endpoint endpoint(endpoints, process.proc, process.bml);
  Piece fragments, copy;
  Piece& blocked = GENERATE(true, false) ? fragments : copy;
  Piece& free = &blocked == &copy ? fragments : copy;
  free.room = true;
  endpoint.wait_as_fragments(fragments);
  endpoint.wait_as_transfer(copy);
  CHECK(endpoints.retry() == 1);
  CHECK_FALSE(free.waiting());
  CHECK(blocked.waiting());
  CHECK(endpoints.has_work());
  blocked.room = true;
  CHECK(endpoints.retry() == 1);
  CHECK(blocked.tries == 2);
  CHECK_FALSE(endpoints.has_work());
}

TEST_CASE("Endpoint: a hold ends when a BTL that keeps the message has sent it") {
  static int left;
  left = 0;
  const MessageHold hold = make_hold<[](void*) { ++left; }>(&left);
  MessageBtl btl(false);
  keeps = true;
  FakeProcess process({&btl});
  Endpoints endpoints;
  Endpoint endpoint(endpoints, process.proc, process.bml);
  endpoint.send_control(endpoint.next_eager(), tag, message, hold);
  CHECK(kept == 1);
  CHECK(left == 0);
  mca_btl_base_descriptor_t* const descriptor = btl.btl_alloc(&btl, nullptr, 0, 8, 0);
  descriptor->des_cbfunc(&btl, nullptr, descriptor, OMPI_SUCCESS);
  CHECK(left == 1);
  keeps = false;  // now it sends at once, and says so
  endpoint.send_control(endpoint.next_eager(), tag, message, hold);
  CHECK(left == 2);
}

TEST_CASE("Endpoint: while shared memory keeps a fragment, each turn looks who must be woken") {
  static bool listed;
  listed = false;
  const bool wakes_neighbours = GENERATE(true, false);
  const bool same_node = GENERATE(true, false);
  const bool gone = GENERATE(true, false);
  MessageBtl btl(true);
  FakeProcess process({&btl});
  process.proc.proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] = &process.bml;
  if (same_node) process.proc.super.proc_flags = OPAL_PROC_ON_NODE;
  Endpoints endpoints;
  endpoints.wakes_neighbours = wakes_neighbours;
  endpoints.in_interrupt_thread = true;  // nobody looks for an area, which needs Open MPI
  endpoints.on_work = [](bool any) { listed = any; };
  Endpoint* const endpoint = endpoints.make(process.proc);
  REQUIRE(endpoint != nullptr);
  endpoint->add_user();
  const bool expected = wakes_neighbours && same_node;
  endpoint->note_fragment();
  CHECK(listed == expected);
  CHECK(endpoints.retry() == 0);
  CHECK(listed == expected);
  if (gone) {  // nobody must be woken any more, and its area may have gone
    endpoints.retire(process.proc);
    CHECK(endpoints.retry() == 0);
    CHECK_FALSE(listed);
  }
  endpoint->note_fragment_end();
  CHECK(endpoints.retry() == 0);
  CHECK_FALSE(listed);
  endpoints.on_work = nullptr;
  endpoint->drop_user();
}
