// Messages as they came, and over what.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace overlap::speculative {

/// The bytes are the caller's.
struct IncomingMessage {
  std::span<const std::byte> bytes;
  const void* rail = nullptr;  ///< what it came over, kept with the memory that it describes
};

/// One that waits: the memory that it describes can be accessed over its rail only.
struct KeptMessage {
  std::vector<std::byte> bytes;
  const void* rail = nullptr;

  explicit KeptMessage(const IncomingMessage& message)
      : bytes(message.bytes.begin(), message.bytes.end()), rail(message.rail) {}
};

}  // namespace overlap::speculative
