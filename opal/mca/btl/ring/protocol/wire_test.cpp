// Layout: sizes, what is refused, and the helper's look at a segment that may hold anything.
// SPDX-License-Identifier: BSD-3-Clause
#include "wire.hpp"

#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::ring;

namespace {

/// A segment of 5 pages: header, table of 4 rings, two rings of 4 slots of 128 bytes, 8 channel
/// buffers of 256 bytes.
class Segment {
 public:
  static constexpr std::size_t bytes = 5 * 4096;
  Segment() : storage_(std::make_unique<Page[]>(bytes / sizeof(Page))) {
    new (data()) SegmentHeader;
    header().owner_pid = 1;
    header().segment_bytes = bytes;
    header().ring_table_offset_bytes = 4096;
    header().ring_entries = 4;
    header().channel_offset_bytes = 3 * 4096;
    header().channel_buffer_bytes = 256;
    header().channel_buffers = 8;
    for (std::uint32_t i = 0; i < 2; ++i)
      area(i) = {2 * 4096 + i * 512, 4, 128, area_state::open, 0, i, 0};
    header().magic = segment_magic;
  }
  [[nodiscard]] std::byte* data() { return storage_[0].bytes; }
  [[nodiscard]] SegmentHeader& header() { return *reinterpret_cast<SegmentHeader*>(data()); }
  [[nodiscard]] RingArea& area(std::uint32_t i) {
    return reinterpret_cast<RingArea*>(data() + 4096)[i];
  }
  [[nodiscard]] bool arrived(std::size_t mapped_bytes = bytes) {
    return something_arrived({data(), mapped_bytes});
  }

 private:
  struct alignas(4096) Page {
    std::byte bytes[4096]{};
  };
  std::unique_ptr<Page[]> storage_;
};

constexpr std::byte set{flag_value::secondary};

}  // namespace

TEST_CASE(
    "Wire: a write is the fewest whole lines that hold header, payload and tail flag (P2.2)") {
  for (std::uint32_t payload = 0; payload < 5000; ++payload) {
    const std::uint32_t whole = wire_bytes(payload);
    CAPTURE(payload, whole);
    REQUIRE(whole % line_bytes == 0);
    REQUIRE(whole >= header_bytes + payload + 1);
    REQUIRE(whole < header_bytes + payload + 1 + line_bytes);
  }
  for (std::uint32_t slot = line_bytes; slot <= 65536; slot += line_bytes) {
    REQUIRE(wire_bytes(payload_max_bytes(slot)) == slot);
    REQUIRE(wire_bytes(payload_max_bytes(slot) + 1) == slot + line_bytes);
  }
}

TEST_CASE("Wire: a header is refused for each thing that can be wrong with it") {
  MessageHeader good;
  good.tag = 7;
  good.size_bytes = 100;
  good.credits = 3;
  good.control = control_bit::in_place | control_bit::close_ring | control_bit::ring_closed;
  REQUIRE(find_fault(good, 100) == nullptr);
  const auto refuses = [&good](auto change, const char* words) {
    MessageHeader header = good;
    change(header);
    const char* fault = find_fault(header, 100);
    REQUIRE(fault != nullptr);
    CHECK(std::string(fault) == words);
  };
  refuses([](MessageHeader& h) { h.version = 2; }, "message of another layout version");
  refuses([](MessageHeader& h) { h.zero = 1; }, "message with a reserved field set");
  for (unsigned bit = 16; bit < 256; bit *= 2) {
    refuses([bit](MessageHeader& h) { h.control = static_cast<std::uint8_t>(bit); },
            "message with unknown control bits");
  }
  refuses([](MessageHeader& h) { h.size_bytes = 101; }, "message larger than the place it is in");
  refuses([](MessageHeader& h) { h.size_bytes = UINT32_MAX; },
          "message larger than the place it is in");
  refuses([](MessageHeader& h) { h.control = control_bit::unordered; },
          "message outside the order that speaks of rings");
  refuses([](MessageHeader& h) { h.control |= control_bit::unordered, h.credits = 0; },
          "message outside the order that speaks of rings");
  refuses([](MessageHeader& h) { h.tag = 0; }, "control message of a wrong size");
}

TEST_CASE("Wire: a ring_open is refused when the ring cannot be") {
  const ControlBody good{control_kind::ring_open, 5, 2048, 1, 64};
  CHECK(find_fault(good) == nullptr);
  for (const std::uint32_t kind :
       {control_kind::credits_only, control_kind::ring_declined, control_kind::goodbye}) {
    CHECK(find_fault(ControlBody{.kind = kind}) == nullptr);
  }
  constexpr std::uint32_t unknown = control_kind::goodbye + 1;
  for (const ControlBody& bad :
       {ControlBody{0, 5, 2048, 1, 64}, ControlBody{unknown, 5, 2048, 1, 64},
        ControlBody{2, 0, 2048, 1, 64}, ControlBody{2, 5, 0, 1, 64}, ControlBody{2, 5, 100, 1, 64},
        ControlBody{2, 5, 2048, 1, 8}}) {
    CHECK(find_fault(bad) != nullptr);
  }
}

TEST_CASE(
    "Wire: the helper sees what has arrived, in the slot at the head and in the channel's "
    "buffers") {
  Segment segment;
  CHECK_FALSE(segment.arrived());
  for (std::uint32_t ring = 0; ring < 2; ++ring) {
    for (std::uint32_t slot = 0; slot < 4; ++slot) {
      for (std::uint32_t head = 0; head < 4; ++head) {
        CAPTURE(ring, slot, head);
        std::byte& flag = segment.data()[2 * 4096 + ring * 512 + slot * 128];
        segment.area(ring).head = head;
        flag = set;
        CHECK(segment.arrived() == (slot == head));
        segment.area(ring).state = area_state::none;
        CHECK_FALSE(segment.arrived());
        segment.area(ring).state = area_state::open;
        flag = std::byte{0};
      }
    }
  }
  for (std::uint32_t buffer = 0; buffer < 8; ++buffer) {
    std::byte& flag = segment.data()[3 * 4096 + buffer * 256];
    flag = set;
    CHECK(segment.arrived());
    flag = std::byte{0};
    CHECK_FALSE(segment.arrived());
  }
}

TEST_CASE(
    "Wire: the helper takes nothing from a segment that is not ready, of another version, or too "
    "short") {
  Segment segment;
  segment.data()[2 * 4096] = set;
  REQUIRE(segment.arrived());
  CHECK_FALSE(segment.arrived(0));
  CHECK_FALSE(segment.arrived(4095));
  CHECK_FALSE(segment.arrived(4096));
  CHECK_FALSE(segment.arrived(2 * 4096));
  CHECK(segment.arrived(2 * 4096 + 512));
  segment.header().magic = 0;
  CHECK_FALSE(segment.arrived());
  segment.header().magic = segment_magic;
  segment.header().version = layout_version + 1;
  CHECK_FALSE(segment.arrived());
}

TEST_CASE("Wire: whatever the segment says, the helper reads nothing outside of it") {
  // An allocation of exactly the mapped bytes: a sanitizer sees each read beyond.
  std::mt19937_64 random(2003);
  const std::uint64_t lengths[] = {0,
                                   1,
                                   8,
                                   63,
                                   64,
                                   4095,
                                   4096,
                                   8192,
                                   12288,
                                   1U << 31U,
                                   UINT32_MAX,
                                   UINT64_MAX,
                                   UINT64_MAX - 4096};
  const auto any = [&] { return lengths[random() % std::size(lengths)]; };
  int yes = 0;
  for (int walk = 0; walk < 20000; ++walk) {
    Segment segment;
    if (random() % 2) segment.header().ring_table_offset_bytes = any();
    if (random() % 2) segment.header().ring_entries = static_cast<std::uint32_t>(any());
    if (random() % 2) segment.header().channel_offset_bytes = any();
    if (random() % 2) segment.header().channel_buffer_bytes = static_cast<std::uint32_t>(any());
    if (random() % 2) segment.header().channel_buffers = static_cast<std::uint32_t>(any());
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (random() % 2) segment.area(i).offset_bytes = any();
      if (random() % 2) segment.area(i).slots = static_cast<std::uint32_t>(any());
      if (random() % 2) segment.area(i).slot_bytes = static_cast<std::uint32_t>(any());
      if (random() % 2) segment.area(i).head = static_cast<std::uint32_t>(any());
      segment.area(i).state = static_cast<std::uint32_t>(random() % 3);
    }
    yes += segment.arrived() ? 1 : 0;
    yes += segment.arrived(4096 * (1 + random() % 5)) ? 1 : 0;
  }
  CHECK(yes > 0);
  CHECK(yes < 40000);
}
