// process_vm_writev and process_vm_readv.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/process_memory.hpp"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

namespace overlap::node {
namespace {

void* pointer(std::uint64_t address) noexcept { return reinterpret_cast<void*>(address); }

ProcessFacts make_facts() noexcept {
  static std::uint64_t token = 0;
  if (getrandom(&token, sizeof token, GRND_NONBLOCK) != sizeof token || token == 0) return {};
  return {getpid(), reinterpret_cast<std::uint64_t>(&token), token};
}

/// Is it the process that has told these facts, and may this one reach it?
bool is_reached(const ProcessFacts& facts) noexcept {
  if (facts.token == 0) return false;
  std::uint64_t found = 0;
  const iovec here{&found, sizeof found}, there{pointer(facts.token_address), sizeof found};
  return process_vm_readv(facts.pid, &here, 1, &there, 1, 0) == sizeof found &&
         found == facts.token;
}

}  // namespace

const ProcessFacts& own_process_facts() noexcept {
  static const ProcessFacts facts = make_facts();
  return facts;
}

std::optional<std::uint64_t> scatter(const ProcessFacts& to, std::span<const Place> places,
                                     const std::byte* from) noexcept {
  if (!is_reached(to)) return {};
  return scatter_fetched(to, places, from);
}

std::uint64_t scatter_fetched(const ProcessFacts& to, std::span<const Place> places,
                              const std::byte* from) noexcept {
  std::uint64_t all_bytes = 0;
  while (!places.empty()) {
    std::array<iovec, IOV_MAX> there;
    const std::size_t count = std::min(places.size(), there.size());
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      there[i] = {pointer(places[i].address), places[i].bytes};
      bytes += places[i].bytes;
    }
    const iovec here{const_cast<std::byte*>(from), bytes};
    const ssize_t written = process_vm_writev(to.pid, &here, 1, there.data(), count, 0);
    if (written > 0) all_bytes += static_cast<std::uint64_t>(written);
    if (written != static_cast<ssize_t>(bytes)) break;
    from += bytes;
    places = places.subspan(count);
  }
  return all_bytes;
}

bool fetch(const ProcessFacts& from, std::span<const Place> places, std::byte* to) noexcept {
  if (from.token == 0 || places.size() > fetch_max) return false;
  // Whose memory it is comes with it.
  std::uint64_t found = 0;
  std::array<iovec, 1 + fetch_max> there;
  there[0] = {pointer(from.token_address), sizeof found};
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    there[1 + i] = {pointer(places[i].address), places[i].bytes};
    bytes += places[i].bytes;
  }
  const std::array<iovec, 2> here{{{&found, sizeof found}, {to, bytes}}};
  const ssize_t got =
      process_vm_readv(from.pid, here.data(), here.size(), there.data(), 1 + places.size(), 0);
  return got == static_cast<ssize_t>(sizeof found + bytes) && found == from.token;
}

}  // namespace overlap::node
