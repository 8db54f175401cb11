// The layout of a connection request's private data.
// SPDX-License-Identifier: BSD-3-Clause
#include "introduction.hpp"

#include <cstring>

#include "wire.hpp"

namespace overlap::ring {
namespace {

struct Layout {
  Secret secret;
  std::uint64_t name;
  std::uint32_t attempt;
  std::uint16_t version;
  std::uint16_t purpose;
};
static_assert(sizeof(Layout) == introduction_bytes);
static_assert(offsetof(Layout, name) == 16 && offsetof(Layout, attempt) == 24 &&
              offsetof(Layout, version) == 28 && offsetof(Layout, purpose) == 30);

bool equal(const Secret& left, const Secret& right) noexcept {
  std::byte differ{};
  for (std::size_t i = 0; i < left.size(); ++i) differ |= left[i] ^ right[i];
  return differ == std::byte{};
}

}  // namespace

IntroductionBytes encode(const Introduction& introduction, const Secret& secret) noexcept {
  const Layout layout{secret, introduction.name, introduction.attempt, layout_version,
                      static_cast<std::uint16_t>(introduction.purpose)};
  IntroductionBytes bytes;
  std::memcpy(bytes.data(), &layout, sizeof layout);
  return bytes;
}

std::optional<Introduction> decode_introduction(std::span<const std::byte> bytes,
                                                const Secret& own) noexcept {
  Layout layout;
  if (bytes.size() < sizeof layout) return std::nullopt;
  std::memcpy(&layout, bytes.data(), sizeof layout);
  if (!equal(layout.secret, own) || layout.version != layout_version || layout.attempt == 0 ||
      layout.purpose > static_cast<std::uint16_t>(Purpose::bulk)) {
    return std::nullopt;
  }
  return Introduction{layout.name, layout.attempt, static_cast<Purpose>(layout.purpose)};
}

}  // namespace overlap::ring
