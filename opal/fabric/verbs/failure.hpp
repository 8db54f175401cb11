// Errors of the system in words that say what to change.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "opal/fabric/fabric.hpp"

namespace overlap::fabric::verbs {

/// For std::unique_ptr around the handles of libibverbs and librdmacm.
template <auto function>
struct Closer {
  template <class T>
  void operator()(T* handle) const noexcept {
    function(handle);
  }
};
template <class T, auto function>
using Handle = std::unique_ptr<T, Closer<function>>;

/// How much memory this process may lock, and how to allow more; "" where there is no limit.
[[nodiscard]] std::string memory_limit_advice();

/// Is the limit so low that libibverbs itself would complain about it, on stderr?
[[nodiscard]] bool memory_limit_is_hopeless() noexcept;

/// The libraries do not always hand through why a device file cannot be opened.
/// @returns  EACCES when the file is there and may not be used, otherwise `error`
[[nodiscard]] int open_error(const std::string& device_file, int error) noexcept;

/// @param what   what failed, as in "cannot open rxe0"
/// @param error  errno of the call
[[nodiscard]] Error failure(const std::string& what, int error);

}  // namespace overlap::fabric::verbs
