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
int room;  ///< messages that it still takes

/// A BTL for messages, with or without btl_sendi.
class MessageBtl : public FakeBtl {
 public:
  explicit MessageBtl(bool injects) : FakeBtl("messages", poll_nothing) {
    taken_flags.clear();
    room = 1;
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
