// On which processors helpers sit: pure (P4.6).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace overlap::progressd {

using Processors = std::set<unsigned>;

struct Core {
  Processors processors{};
  unsigned numa_node = 0;
};

/// A client's binding.
struct Binding {
  int process = 0;
  Processors processors{};  ///< all that this machine offers: not bound
};

struct PlacementWish {
  std::size_t helpers = 1;
  Processors bind{};        ///< empty: placed by itself
  bool share_core = false;  ///< also where a client is bound
};

struct Placement {
  /// Of each helper; empty: wherever the kernel likes.
  std::vector<Processors> helpers;
  /// Why no helper may run; then `helpers` is empty.
  std::string refusal;
};

/// Choose a spare core for each helper: one that no client is bound to, on the NUMA node of most
/// bound clients first, the highest first there. With fewer spare cores than helpers there are
/// fewer helpers. Where no client is bound, cores are spare that are more than there are clients,
/// and the kernel places the helpers.
[[nodiscard]] Placement place(const std::vector<Core>& cores, const std::vector<Binding>& clients,
                              const PlacementWish& wish);

/// Read "0,2-5". @returns  nullopt: it is no such list, or empty
[[nodiscard]] std::optional<Processors> processors_of(const std::string& text);
[[nodiscard]] std::string text_of(const Processors& processors);

}  // namespace overlap::progressd
