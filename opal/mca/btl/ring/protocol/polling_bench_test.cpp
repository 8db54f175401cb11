// What does it cost to look at idle rings? Expected: at most 2 ns for each peer, 128 peers in 0.25
// us (rdma-eager-2003, figure 23: 1.3 us).
//
//   polling_bench [looks = 100000] [slots = 100] [slot_bytes = 2048] [stagger_lines = 0]
//
// Each ring's head stands at another slot, as after traffic: a look touches a line of its own. The
// three orders look at the head flags from the set itself; "visit" is a set that does not know the
// rings and calls the visitor, which finds the ring and peeks. With stagger_lines n ring i begins
// (i mod n) lines later: otherwise all flags meet in the few cache sets of their place in a page.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "polling_set.hpp"

namespace {

using namespace overlap::ring;

// Many short rounds: most of them run without being interrupted, whatever else the machine does.
constexpr std::size_t rounds = 101;
constexpr std::size_t p99 = rounds * 99 / 100;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

/// Rings that have seen some traffic and are empty.
class Rings {
 public:
  Rings(std::uint32_t count, std::uint32_t slots, std::uint32_t slot_bytes,
        std::uint32_t stagger_lines) {
    const std::size_t page = 4096;
    const std::size_t ring_bytes =
        (std::size_t{slots} * slot_bytes + std::size_t{stagger_lines} * line_bytes + page - 1) /
        page * page;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, ring_bytes * count)));
    if (!memory_) throw std::bad_alloc();
    std::uint64_t random = 2003;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::byte* const base = memory_.get() + i * ring_bytes +
                              (stagger_lines != 0 ? i % stagger_lines * line_bytes : 0);
      rings.push_back(std::make_unique<ReceiveRing>(base, slots, slot_bytes));
      random = random * 6364136223846793005U + 1442695040888963407U;
      for (std::uint32_t messages = static_cast<std::uint32_t>(random >> 33U) % slots; messages > 0;
           --messages)
        take_one(base, *rings.back(), slot_bytes);
    }
  }
  std::vector<std::unique_ptr<ReceiveRing>> rings;

 private:
  static void take_one(std::byte* base, ReceiveRing& ring, std::uint32_t slot_bytes) {
    MessageHeader header;
    header.head_flag = flag_value::primary;
    std::byte* const slot = base + std::size_t{ring.head()} * slot_bytes;
    std::memcpy(slot, &header, sizeof header);
    slot[wire_bytes(0) - 1] = std::byte{flag_value::primary};
    ReceiveRing::Arrival arrival;
    if (!ring.peek(arrival)) std::abort();
    ring.advance();
    ring.free(arrival.slot);
  }
  std::unique_ptr<std::byte, Free> memory_;
};

double pass_ns(PollingSet& set, const Rings& rings, std::uint32_t passes) {
  std::uint64_t found = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t pass = 0; pass < passes; ++pass) {
    found += set.for_each([&rings](std::uint32_t peer) {
      ReceiveRing::Arrival arrival;
      return rings.rings[peer]->peek(arrival) ? 1U : 0U;
    });
    asm volatile("" ::: "memory");  // the device may have written: look again
  }
  if (found != 0) std::abort();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
             .count() /
         passes;
}

struct Variant {
  const char* name;
  PollOrder order;
  bool knows_rings;
};
constexpr std::array variants{
    Variant{"sequential", PollOrder::sequential, true},
    Variant{"circular", PollOrder::circular, true},
    Variant{"recent", PollOrder::recent, true},
    Variant{"visit", PollOrder::sequential, false},
};

}  // namespace

int main(int argc, char** argv) {
  const auto looks =
      static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100000);
  const auto slots =
      static_cast<std::uint32_t>(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 100);
  const auto slot_bytes =
      static_cast<std::uint32_t>(argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 2048);
  const auto stagger_lines =
      static_cast<std::uint32_t>(argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 0);
  std::printf(
      "idle rings of %u slots of %u bytes, staggered over %u lines, %zu rounds of %u looks\n",
      slots, slot_bytes, stagger_lines, rounds, looks);
  std::printf(
      "ns per pass: median (least, p99); last column: ns per peer, median of the worst order\n");
  std::printf("%6s", "peers");
  for (const Variant& variant : variants) std::printf(" %25s", variant.name);
  std::printf(" %9s\n", "per peer");
  for (std::uint32_t peers = 1; peers <= 1024; peers *= 2) {
    const Rings rings(peers, slots, slot_bytes, stagger_lines);
    std::array<std::unique_ptr<PollingSet>, variants.size()> sets;
    for (std::size_t v = 0; v < variants.size(); ++v) {
      sets[v] = std::make_unique<PollingSet>(peers, SetPolicy::first, variants[v].order, 1000);
      for (std::uint32_t peer = 0; peer < peers; ++peer)
        sets[v]->added(peer, variants[v].knows_rings ? rings.rings[peer].get() : nullptr);
    }
    std::array<std::array<double, rounds>, variants.size()> ns{};
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t v = 0; v < variants.size(); ++v)
        ns[v][round] = pass_ns(*sets[v], rings, std::max(looks / peers, 1U));
    }
    std::printf("%6u", peers);
    double worst = 0;
    for (std::size_t v = 0; v < variants.size(); ++v) {
      std::sort(ns[v].begin(), ns[v].end());
      std::printf(" %8.1f (%6.1f, %6.1f)", ns[v][rounds / 2], ns[v].front(), ns[v][p99]);
      if (variants[v].knows_rings) worst = std::max(worst, ns[v][rounds / 2] / peers);
    }
    std::printf(" %9.2f\n", worst);
  }
}
