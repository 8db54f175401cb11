// Spare cores.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/placement.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace overlap::progressd {
namespace {

constexpr unsigned processors_max = 65536;

bool overlaps(const Processors& one, const Processors& other) {
  return std::any_of(one.begin(), one.end(), [&](unsigned each) { return other.contains(each); });
}

Processors all_of(const std::vector<Core>& cores) {
  Processors all;
  for (const Core& core : cores) all.insert(core.processors.begin(), core.processors.end());
  return all;
}

bool is_bound(const Binding& client, const Processors& all) {
  return !std::includes(client.processors.begin(), client.processors.end(), all.begin(), all.end());
}

/// Who is bound to one of these? nullptr: nobody
const Binding* owner_of(const Processors& processors, const std::vector<Binding>& bound) {
  const auto found = std::find_if(bound.begin(), bound.end(), [&](const Binding& each) {
    return overlaps(processors, each.processors);
  });
  return found == bound.end() ? nullptr : &*found;
}

Placement refuse(std::string why) { return {.helpers = {}, .refusal = std::move(why)}; }

/// The cores that nobody is bound to, the best first.
std::vector<Core> spare_cores(const std::vector<Core>& cores, const std::vector<Binding>& bound) {
  std::map<unsigned, std::size_t> clients_of_node;
  std::vector<Core> spare;
  for (const Core& core : cores) {
    const auto count = std::count_if(bound.begin(), bound.end(), [&](const Binding& each) {
      return overlaps(core.processors, each.processors);
    });
    clients_of_node[core.numa_node] += static_cast<std::size_t>(count);
    if (count == 0 && !core.processors.empty()) spare.push_back(core);
  }
  std::stable_sort(spare.begin(), spare.end(), [&](const Core& one, const Core& other) {
    const std::size_t here = clients_of_node[one.numa_node];
    const std::size_t there = clients_of_node[other.numa_node];
    if (here != there) return here > there;
    return *one.processors.begin() > *other.processors.begin();
  });
  return spare;
}

Placement place_bound(const std::vector<Binding>& bound, const PlacementWish& wish) {
  const Binding* owner = wish.share_core ? nullptr : owner_of(wish.bind, bound);
  if (owner != nullptr) {
    return refuse("processor " + text_of(wish.bind) + " is also process " +
                  std::to_string(owner->process) +
                  "'s, which is bound there; choose another one with --bind, or add --share-core");
  }
  return {.helpers = std::vector<Processors>(wish.helpers, wish.bind), .refusal = {}};
}

}  // namespace

Placement place(const std::vector<Core>& cores, const std::vector<Binding>& clients,
                const PlacementWish& wish) {
  const Processors all = all_of(cores);
  std::vector<Binding> bound;
  std::copy_if(clients.begin(), clients.end(), std::back_inserter(bound),
               [&](const Binding& each) { return is_bound(each, all); });
  if (!wish.bind.empty()) return place_bound(bound, wish);
  if (wish.share_core) return {.helpers = std::vector<Processors>(wish.helpers), .refusal = {}};

  const std::vector<Core> spare = spare_cores(cores, bound);
  const std::size_t unbound = clients.size() - bound.size();
  // Unbound clients take a core each, whichever it is.
  const std::size_t free = spare.size() > unbound ? spare.size() - unbound : 0;
  const std::size_t count = std::min(free, wish.helpers);
  if (count == 0) {
    return refuse("none of " + std::to_string(cores.size()) + " cores is spare beside " +
                  std::to_string(clients.size()) +
                  " clients; start fewer processes on this node, or add --share-core");
  }
  Placement placement;
  for (std::size_t i = 0; i < count; ++i) {
    placement.helpers.push_back(bound.empty() ? Processors() : spare[i].processors);
  }
  return placement;
}

std::optional<Processors> processors_of(const std::string& text) {
  Processors found;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](unsigned& value) {
    const auto [stopped, error] = std::from_chars(at, end, value);
    at = stopped;
    return error == std::errc() && value < processors_max;
  };
  for (;;) {
    unsigned first = 0;
    if (!number(first)) return std::nullopt;
    unsigned last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(last) || last < first) return std::nullopt;
    }
    for (unsigned each = first; each <= last; ++each) found.insert(each);
    if (at == end) return found;
    if (*at++ != ',') return std::nullopt;
  }
}

std::string text_of(const Processors& processors) {
  std::string text;
  for (auto at = processors.begin(); at != processors.end();) {
    const unsigned first = *at;
    unsigned last = first;
    while (++at != processors.end() && *at == last + 1) last = *at;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last != first) text += (last == first + 1 ? "," : "-") + std::to_string(last);
  }
  return text;
}

}  // namespace overlap::progressd
