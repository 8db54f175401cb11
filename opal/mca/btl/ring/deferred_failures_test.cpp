// Failed requests that are handled later, in their order.
// SPDX-License-Identifier: BSD-3-Clause
#include "deferred_failures.hpp"

#include <stdexcept>
#include <vector>

#include "test/support/catch.hpp"

using namespace overlap;
using overlap::ring::DeferredFailures;

namespace {

void put(DeferredFailures& failures, std::uint64_t id) {
  fabric::Completion failure;
  failure.id = id;
  failures.put(failure);
}

std::vector<std::uint64_t> all_of(DeferredFailures& failures) {
  std::vector<std::uint64_t> ids;
  while (const auto failure = failures.take()) ids.push_back(failure->id);
  return ids;
}

}  // namespace

TEST_CASE("Deferred failures come in their order, once nobody holds them") {
  DeferredFailures failures;
  CHECK_FALSE(failures.held());
  {
    const DeferredFailures::Hold outer(failures);
    put(failures, 1);
    {
      const DeferredFailures::Hold inner(failures);
      put(failures, 2);
    }
    CHECK(failures.held());
    CHECK(all_of(failures).empty());
    put(failures, 3);
  }
  CHECK(all_of(failures) == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(all_of(failures).empty());
}

TEST_CASE("Deferred failures are not held any more after something was thrown") {
  DeferredFailures failures;
  try {
    const DeferredFailures::Hold hold(failures);
    put(failures, 1);
    throw std::runtime_error("no memory");
  } catch (const std::runtime_error&) {}
  CHECK(all_of(failures) == std::vector<std::uint64_t>{1});
}
