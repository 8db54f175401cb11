// What a user is told where no port will do.
// SPDX-License-Identifier: BSD-3-Clause
#include "excuse.hpp"

#include <initializer_list>

#include "test/support/catch.hpp"

using overlap::fabric::Error;
using overlap::fabric::verbs::Excuse;

namespace {

std::string said(std::initializer_list<std::pair<Error::Kind, const char*>> in_the_way) {
  Excuse excuse;
  for (const auto& [kind, why] : in_the_way) excuse.note(kind, why);
  return excuse.error().what();
}

}  // namespace

TEST_CASE("Excuse: the last one, but a missing right or limit before all others") {
  using enum Error::Kind;
  CHECK(said({{no_device, "a is down"}, {system, "b fails"}}) == "b fails");
  CHECK(said({{no_permission, "b is closed"}, {no_device, "a is down"}}) == "b is closed");
  CHECK(said({{memory_limit, "little memory"}, {no_device, "a is down"}}) == "little memory");
  CHECK(said({{no_device, "a is down"}, {no_permission, "b is closed"}}) == "b is closed");
  CHECK(said({{no_permission, "b is closed"}, {memory_limit, "little memory"}}) == "little memory");
  Excuse excuse;
  excuse.note(no_permission, "b is closed");
  excuse.note(system, "a fails");
  CHECK(excuse.error().kind == no_permission);
}
