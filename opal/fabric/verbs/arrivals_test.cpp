// What a device's completion channel is asked for; its events need a device.
// SPDX-License-Identifier: BSD-3-Clause
#include "arrivals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <utility>

#include "test/support/catch.hpp"

using namespace overlap::fabric::verbs;

namespace {

int asked = 0;           // of either queue
int asked_for_all = -1;  // the last time: not only for solicited entries

int note_request(ibv_cq* queue, int solicited_only) {
  ++asked;
  asked_for_all = solicited_only == 0 ? 1 : 0;
  return queue == nullptr ? -1 : 0;
}

/// What libibverbs looks at of a device and two completion queues.
struct FakeDevice {
  FakeDevice() {
    REQUIRE(::pipe(ends) == 0);
    REQUIRE(::pthread_mutex_init(&context.mutex, nullptr) == 0);
    context.ops.req_notify_cq = note_request;
    first.context = second.context = &context;
    asked = 0;
    asked_for_all = -1;
  }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;
  ~FakeDevice() {
    ::close(ends[0]);
    remove();
  }
  /// The channel has an end of file: poll() reports it until the channel is closed.
  void remove() {
    if (ends[1] != -1) ::close(std::exchange(ends[1], -1));
  }
  /// A channel without events, as libibverbs frees it.
  CompletionChannel make_channel() {
    auto* channel = static_cast<ibv_comp_channel*>(std::calloc(1, sizeof(ibv_comp_channel)));
    if (channel == nullptr) throw std::bad_alloc();
    channel->context = &context;
    channel->fd = ::dup(ends[0]);
    return CompletionChannel(channel);
  }

  int ends[2] = {-1, -1};
  ibv_context context{};
  ibv_cq first{};
  ibv_cq second{};
};

bool is_readable(const Arrivals& arrivals) {
  pollfd sleeper{arrivals.descriptor(), POLLIN, 0};
  return ::poll(&sleeper, 1, 0) == 1;
}

}  // namespace

TEST_CASE("Without a channel there is nothing to sleep on and nothing to arm",
          "[verbs][arrivals]") {
  FakeDevice device;
  Arrivals arrivals(nullptr);
  REQUIRE(arrivals.descriptor() == -1);
  REQUIRE(arrivals.channel() == nullptr);  // completion queues are made without one
  arrivals.add(device.first);
  arrivals.arm();
  arrivals.remove(device.first);
  REQUIRE(asked == 0);
}

TEST_CASE("Arming asks each queue that is there for solicited entries", "[verbs][arrivals]") {
  FakeDevice device;
  Arrivals arrivals(device.make_channel());
  REQUIRE(arrivals.channel() != nullptr);
  REQUIRE((::fcntl(arrivals.descriptor(), F_GETFL) & O_NONBLOCK) != 0);
  REQUIRE((::fcntl(arrivals.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
  arrivals.add(device.first);
  arrivals.add(device.second);
  REQUIRE(asked == 0);
  arrivals.arm();
  REQUIRE(asked == 2);
  REQUIRE(asked_for_all == 0);
  arrivals.remove(device.first);
  arrivals.arm();
  REQUIRE(asked == 3);
}

TEST_CASE("A queue that is made while others are armed is asked at once", "[verbs][arrivals]") {
  FakeDevice device;
  Arrivals arrivals(device.make_channel());
  arrivals.arm();
  REQUIRE(asked == 0);
  arrivals.add(device.first);
  REQUIRE(asked == 1);
  REQUIRE(asked_for_all == 0);
}

TEST_CASE("The channel of a removed device wakes once, not for ever", "[verbs][arrivals]") {
  FakeDevice device;
  Arrivals arrivals(device.make_channel());
  REQUIRE(arrivals.channel() != nullptr);
  arrivals.add(device.first);
  arrivals.arm();
  REQUIRE_FALSE(is_readable(arrivals));
  device.remove();
  REQUIRE(is_readable(arrivals));
  for (int look = 0; look < 2; ++look) {
    arrivals.arm();
    REQUIRE_FALSE(is_readable(arrivals));
  }
}

TEST_CASE("A channel that cannot be made non-blocking is none", "[verbs][arrivals]") {
  FakeDevice device;
  CompletionChannel channel = device.make_channel();
  ::close(channel->fd);
  channel->fd = -1;
  REQUIRE(Arrivals(std::move(channel)).descriptor() == -1);
}
