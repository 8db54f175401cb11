// How many of its cases a sweep takes, and how much smaller its largest ones are.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace overlap {

// A sanitizer's build takes ten times as long, and looks for other faults: it takes fewer, and
// smaller ones.
// The factor is prime and greater than any dimension of the explorer's sweeps.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr unsigned thinning = 17;
#else
inline constexpr unsigned thinning = 1;
#endif

}  // namespace overlap
