// When requests complete, and under which lock.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/completion_queue.hpp"

#include <array>
#include <functional>
#include <vector>

#include "ompi/mca/common/overlap/entry.hpp"
#include "test/support/catch.hpp"

namespace {

using overlap::CompletionQueue;
using overlap::Entry;
using Order = std::vector<std::size_t>;

/// Requests by number, and what was completed. The queue only passes their addresses on.
struct Completed {
  std::array<ompi_request_t, 300> requests{};
  Order order;
  bool under_lock = false;
  std::function<void(std::size_t)> callback;

  void append(CompletionQueue& queue, std::size_t number) {
    const Entry entry;
    queue.append(requests[number]);
  }
};
Completed* completed;

void complete(ompi_request_t& request) noexcept {
  const auto number = static_cast<std::size_t>(&request - completed->requests.data());
  completed->under_lock = completed->under_lock || overlap::progress_lock.held_by_me_hint();
  completed->order.push_back(number);
  if (completed->callback) completed->callback(number);
}

struct Fixture {
  Fixture() { completed = &state; }
  Completed state;
  CompletionQueue queue{complete};
};

}  // namespace

TEST_CASE("Completion queue: requests complete in their order, in drain only, without the lock") {
  Fixture fixture;
  for (std::size_t number : {0U, 1U, 2U}) fixture.state.append(fixture.queue, number);
  CHECK(fixture.state.order.empty());
  CHECK_FALSE(fixture.queue.empty());
  CHECK(fixture.queue.drain() == 3);
  CHECK(fixture.state.order == Order{0, 1, 2});
  CHECK_FALSE(fixture.state.under_lock);
  CHECK(fixture.queue.empty());
  CHECK(fixture.queue.drain() == 0);
}

TEST_CASE("Completion queue: what a callback ends completes behind the others") {
  Fixture fixture;
  fixture.state.append(fixture.queue, 0);
  fixture.state.append(fixture.queue, 1);
  fixture.state.callback = [&](std::size_t number) {
    CHECK(CompletionQueue::draining());
    if (number == 0) fixture.state.append(fixture.queue, 2);
    CHECK(fixture.state.order.back() == number);  // not inside the call
  };
  CHECK(fixture.queue.drain() == 3);
  CHECK(fixture.state.order == Order{0, 1, 2});
  CHECK_FALSE(CompletionQueue::draining());
}

TEST_CASE("Completion queue: a callback that waits finds the later entries, each once") {
  Fixture fixture;
  for (std::size_t number : {0U, 1U, 2U}) fixture.state.append(fixture.queue, number);
  fixture.state.callback = [&](std::size_t number) {
    if (number == 0) CHECK(fixture.queue.drain() == 2);
    CHECK(CompletionQueue::draining());
  };
  CHECK(fixture.queue.drain() == 1);
  CHECK(fixture.state.order == Order{0, 1, 2});
}

TEST_CASE("Completion queue: it grows around its start") {
  Fixture fixture;
  Order expected;
  std::size_t number = 0;
  for (; number < 50; ++number) fixture.state.append(fixture.queue, number);
  fixture.queue.drain();
  for (; number < fixture.state.requests.size(); ++number)
    fixture.state.append(fixture.queue, number);
  fixture.queue.drain();
  for (std::size_t i = 0; i < number; ++i) expected.push_back(i);
  CHECK(fixture.state.order == expected);
}
