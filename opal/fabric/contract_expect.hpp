// What the contract test expects of posts and completions, in Catch2's words.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "contract.hpp"

#include "test/support/catch.hpp"

namespace overlap::fabric::contract {

inline void post(QueuePair& pair, const WorkRequest& request) {
  REQUIRE(pair.post(request) == Status::done);
}

inline void expect(const Completion& completion, std::uint64_t id,
                   CompletionStatus status = CompletionStatus::success) {
  REQUIRE(completion.id == id);
  INFO(text(completion.status));
  REQUIRE(completion.status == status);
}

/// A fault of this side's own. A device need not know its name: rxe says other_error for an unknown
/// local key and for a receive entry that is too small.
inline void expect_fault(const Completion& completion, std::uint64_t id, CompletionStatus status) {
  REQUIRE(completion.id == id);
  INFO(text(completion.status));
  REQUIRE((completion.status == status ||
           (completion.status == CompletionStatus::other_error && provider_is("verbs"))));
}

}  // namespace overlap::fabric::contract
