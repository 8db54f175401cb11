// A client and whatever answers at the helper's name.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/helper_client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <string_view>

#include "opal/mca/common/overlap/node/bell.hpp"
#include "opal/mca/common/overlap/node/helper_start.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap;
using namespace overlap::node;
using State = HelperClient::State;

/// The helper's end, played by the test.
struct FakeHelper {
  std::string which = "client-test-" + std::to_string(getpid());
  Descriptor listening = listen_at(helper_socket_name(geteuid(), which));
  Descriptor connection;
  HelperRequest request;
  Attached attached;

  FakeHelper() { REQUIRE(listening); }
  /// A client says hello; hear it.
  void hear(HelperClient& client, const MappedArea& area, const Descriptor& ringing) {
    REQUIRE(client.ask({.job = 5, .local_rank = 2}, area, ringing, which) == State::asked);
    connection = Descriptor(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(connection);
    REQUIRE(receive_message(connection, request, attached) == Delivery::done);
  }
};

/// @param seals  F_SEAL_...; 0: none
Descriptor make_page(int seals, std::uint32_t version) {
  Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(file.get(), sizeof(HelperPage)) == 0);
  HelperPage page;
  page.version = version;
  page.state = HelperState::sleeping;
  REQUIRE(pwrite(file.get(), static_cast<const void*>(&page), sizeof page, 0) == sizeof page);
  if (seals != 0) REQUIRE(fcntl(file.get(), F_ADD_SEALS, seals) == 0);
  return file;
}
constexpr int sealed = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

TEST_CASE("without a helper nothing happens", "[helper]") {
  HelperClient client;
  const MappedArea area = MappedArea::make();
  CHECK(client.look() == State::none);
  client.nudge();
  client.leave();
  CHECK(client.ask({}, area, Descriptor(), "nobody-here") == State::absent);
  CHECK(client.await_answer(0) == State::absent);
  CHECK(client.look() == State::absent);
  client.nudge();
  CHECK(client.descriptor() == -1);
  CHECK(client.ask({}, MappedArea(), Descriptor(), "nobody-here") == State::absent);
}

TEST_CASE("a client says hello with its area and its bell", "[helper]") {
  FakeHelper helper;
  HelperClient client;
  MappedArea area = MappedArea::make();
  Bell bell;
  REQUIRE(bell.open(*area.get()));
  helper.hear(client, area, bell.ringing());
  CHECK(helper.request.job == 5);
  CHECK(helper.request.local_rank == 2);
  CHECK(helper.request.area_version == area_version);
  CHECK(MappedArea::map(std::move(helper.attached[0])));
  CHECK(helper.attached[1]);
  CHECK(client.look() == State::asked);  // no answer yet
  const Descriptor page = make_page(sealed, helper_version);
  HelperAnswer answer;
  answer.reply = HelperReply::welcome;
  REQUIRE(send_message(helper.connection, answer, std::array{page.get()}) == Delivery::done);
  CHECK(client.await_answer(1000) == State::served);
  // It sleeps: it is nudged.
  client.nudge();
  CHECK(receive_message(helper.connection, helper.request, helper.attached) == Delivery::done);
  CHECK(helper.request.ask == HelperAsk::nudge);
  // It is awake: no system call, no message.
  HelperPage awake;
  REQUIRE(pwrite(page.get(), static_cast<const void*>(&awake), sizeof awake, 0) == sizeof awake);
  client.nudge();
  CHECK(receive_message(helper.connection, helper.request, helper.attached) ==
        Delivery::would_block);
  // Nudges that nobody reads do not block.
  HelperPage asleep;
  asleep.state = HelperState::sleeping;
  REQUIRE(pwrite(page.get(), static_cast<const void*>(&asleep), sizeof asleep, 0) == sizeof asleep);
  for (int i = 0; i < 10'000; ++i) client.nudge();
  helper.connection = Descriptor();
  client.nudge();
  CHECK(client.look() == State::gone);
}

TEST_CASE("answers of no sense end in doing without a helper", "[helper]") {
  struct Row {
    const char* what;
    std::function<void(FakeHelper&)> answer;
    State state;
    Refusal refusal = Refusal::none;
  };
  const auto reply = [](HelperReply kind, int descriptor, Refusal refusal = Refusal::none) {
    return [=](FakeHelper& helper) {
      HelperAnswer answer;
      answer.reply = kind;
      answer.refusal = refusal;
      const auto sent = descriptor < 0
                            ? send_message(helper.connection, answer)
                            : send_message(helper.connection, answer, std::array{descriptor});
      REQUIRE(sent == Delivery::done);
    };
  };
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const Descriptor unsealed = make_page(0, helper_version);
  const Descriptor newer = make_page(sealed, helper_version + 1);
  const Row rows[] = {
      {"refused", reply(HelperReply::refused, -1, Refusal::full), State::refused, Refusal::full},
      {"no page", reply(HelperReply::welcome, -1), State::refused, Refusal::other_version},
      {"no memory file", reply(HelperReply::welcome, null.get()), State::refused,
       Refusal::other_version},
      {"a page that may shrink", reply(HelperReply::welcome, unsealed.get()), State::refused,
       Refusal::other_version},
      {"a page of another version", reply(HelperReply::welcome, newer.get()), State::refused,
       Refusal::other_version},
      {"an answer to something else", reply(HelperReply::done, -1), State::gone},
      {"too short",
       [](FakeHelper& helper) {
         REQUIRE(send_message(helper.connection, std::uint32_t{7}) == Delivery::done);
       },
       State::gone},
      {"too long",
       [](FakeHelper& helper) {
         REQUIRE(send_message(helper.connection, std::array<char, 4096>{}) == Delivery::done);
       },
       State::gone},
      {"the end", [](FakeHelper& helper) { helper.connection = Descriptor(); }, State::gone},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    FakeHelper helper;
    HelperClient client;
    const MappedArea area = MappedArea::make();
    helper.hear(client, area, Descriptor());
    CHECK_FALSE(helper.attached[1]);
    row.answer(helper);
    CHECK(client.await_answer(1000) == row.state);
    CHECK(client.refusal() == row.refusal);
    CHECK(client.descriptor() == -1);
    client.nudge();
  }
}

TEST_CASE("only one helper has a name, and it goes with its process", "[helper]") {
  const std::string name = helper_socket_name(geteuid(), "one-" + std::to_string(getpid()));
  {
    const Descriptor first = listen_at(name);
    REQUIRE(first);
    CHECK_FALSE(listen_at(name));
    const Descriptor socket = connect_to(name);
    CHECK(Peer::of(socket).user == geteuid());
    CHECK(Peer::of(socket).process == getpid());
  }
  CHECK(listen_at(name));
  CHECK(helper_socket_name(1) != helper_socket_name(2));
}

TEST_CASE("a helper that does not come up is not waited for", "[helper]") {
  char path[] = "/tmp/overlap-slow-helper-XXXXXX";
  Descriptor file(mkostemp(path, O_CLOEXEC));
  REQUIRE(file);
  constexpr std::string_view script = "#!/bin/sh\nexec sleep 2\n";
  REQUIRE(::write(file.get(), script.data(), script.size()) == static_cast<ssize_t>(script.size()));
  REQUIRE(::fchmod(file.get(), S_IRWXU) == 0);
  // Nobody may have it open for writing when it is executed.
  file = Descriptor();
  CHECK(start_helper(path) == HelperStart::unknown);  // and not that it runs, two seconds later
  ::unlink(path);
}

TEST_CASE("a program that is no helper is not started", "[helper]") {
  CHECK(start_helper("/nowhere/ompi-progressd") == HelperStart::failed);
  CHECK(start_helper("/bin/false") == HelperStart::failed);
  CHECK(start_helper("/bin/true") == HelperStart::runs);
}
