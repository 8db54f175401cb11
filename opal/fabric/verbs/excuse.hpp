// Why no port will do.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>

#include "opal/fabric/fabric.hpp"

namespace overlap::fabric::verbs {

/// What was last in the way, of several devices and ports. A right or a limit that is missing goes
/// before all else: that port would have done, perhaps, and whoever may can give it at once.
class Excuse {
 public:
  void note(Error::Kind kind, std::string why) {
    if (is_lack(kind_) && !is_lack(kind)) return;
    kind_ = kind;
    why_ = std::move(why);
  }
  [[nodiscard]] Error error() const { return {kind_, why_}; }

 private:
  [[nodiscard]] static bool is_lack(Error::Kind kind) noexcept {
    return kind == Error::Kind::no_permission || kind == Error::Kind::memory_limit;
  }

  Error::Kind kind_ = Error::Kind::no_device;
  std::string why_;
};

}  // namespace overlap::fabric::verbs
