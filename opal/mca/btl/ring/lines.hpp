// Memory in whole cache lines that a device writes or reads.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

namespace overlap::ring {

using Lines = std::unique_ptr<std::byte[], void (*)(std::byte*)>;

/// Zeroed; begins with a page.
[[nodiscard]] Lines allocate_lines(std::size_t bytes);

}  // namespace overlap::ring
