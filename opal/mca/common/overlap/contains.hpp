// contains("text"): the string matcher that Catch2 renamed between 2.13 and 3. For tests only.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "test/support/catch.hpp"

#include <string>

namespace overlap {

inline auto contains(const std::string& text) {
#if CATCH_VERSION_MAJOR >= 3
  return Catch::Matchers::ContainsSubstring(text);
#else
  return Catch::Matchers::Contains(text);
#endif
}

}  // namespace overlap
