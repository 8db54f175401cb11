// A helper and its clients in one process: service, refusals, garbage.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include <nlohmann/json.hpp>

#include "opal/mca/common/overlap/node/helper_client.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap;
using namespace overlap::progressd;
using node::Doze;
using node::Envelope;
using node::HelperClient;
using node::WaitKind;
using State = HelperClient::State;

constexpr Envelope awaited{.kind = WaitKind::message, .context = 1, .source = 2, .tag = 3};
constexpr Envelope other{.kind = WaitKind::message, .context = 1, .source = 2, .tag = 4};

/// Until something holds, or much too long.
bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 20'000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return false;
}

/// A helper in a thread.
class Running {
 public:
  explicit Running(const ServerLimits& limits = {}, Options options = shared()) {
    static int number = 0;
    which = "test-" + std::to_string(getpid()) + "-" + std::to_string(++number);
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    signal_ = Descriptor(ends[1]);
    Descriptor listening = node::listen_at(name());
    REQUIRE(listening);
    server_ = std::make_unique<Server>(
        std::move(listening), Descriptor(ends[0]), options,
        std::vector<Core>{{.processors = {0}, .numa_node = 0}}, [](const std::string&) {}, limits);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Running() { end(); }
  void end() {
    if (!thread_.joinable()) return;
    signal_ = Descriptor();
    thread_.join();
    server_.reset();
  }
  static Options shared() {
    Options options;
    options.placement.share_core = true;
    options.spin_ms = 10'000;  // a busy machine is no reason to nap
    return options;
  }
  [[nodiscard]] std::string name() const { return node::helper_socket_name(geteuid(), which); }
  [[nodiscard]] Descriptor connect() const { return node::connect_to(name()); }
  /// @returns  the answer, nullopt: the end
  std::optional<node::HelperAnswer> ask(const Descriptor& socket, node::HelperRequest request,
                                        node::Attached& attached) const {
    if (node::send_message(socket, request) != node::Delivery::done) return std::nullopt;
    return answer(socket, attached);
  }
  static std::optional<node::HelperAnswer> answer(const Descriptor& socket,
                                                  node::Attached& attached) {
    node::HelperAnswer answer;
    pollfd one{socket.get(), POLLIN, 0};
    if (poll(&one, 1, 10'000) <= 0) return std::nullopt;
    if (node::receive_message(socket, answer, attached) != node::Delivery::done)
      return std::nullopt;
    return answer;
  }
  bool command(node::HelperAsk what) const {
    node::HelperRequest request;
    request.ask = what;
    node::Attached attached;
    const auto answer = ask(connect(), request, attached);
    return answer && answer->reply == node::HelperReply::done;
  }
  nlohmann::json status() const {
    node::HelperRequest request;
    request.ask = node::HelperAsk::status;
    node::Attached attached;
    REQUIRE(ask(connect(), request, attached));
    std::string text(1 << 20, '\0');
    const ssize_t got = pread(attached[0].get(), text.data(), text.size(), 0);
    REQUIRE(got > 0);
    text.resize(static_cast<std::size_t>(got));
    return nlohmann::json::parse(text);
  }

  std::string which;

 private:
  Descriptor signal_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

/// A process that waits for one message.
struct Waiting {
  node::MappedArea area = node::MappedArea::make();
  node::Waits waits{area.get()};
  node::Bell bell;
  HelperClient helper;

  Waiting() {
    REQUIRE(area);
    REQUIRE(bell.open(*area.get()));
    static_cast<void>(waits.add(awaited));
  }
  State ask(const Running& running) {
    helper.ask({.job = 7, .local_rank = 3}, area, bell.ringing(), running.which);
    return helper.await_answer(10'000);
  }
  void arm() {
    area->doze = Doze::armed;
    helper.nudge();
  }
  bool is_watched() const { return area->watched_until_ms != 0; }
  bool is_rung() const {
    pollfd one{bell.descriptors()[0], POLLIN, 0};
    return poll(&one, 1, 0) > 0;
  }
};

}  // namespace

TEST_CASE("a helper wakes a client for what it waits for", "[helper][P4.1][P4.5]") {
  Running running;
  Waiting client;
  REQUIRE(client.ask(running) == State::served);
  client.arm();
  REQUIRE(eventually([&] { return client.is_watched(); }));
  REQUIRE(node::try_leave(*client.area.get(), other));
  REQUIRE(eventually([&] { return running.status().at("helpers").at(0).at("unwanted") == 1; }));
  CHECK_FALSE(client.is_rung());
  REQUIRE(node::try_leave(*client.area.get(), awaited));
  CHECK(eventually([&] { return client.is_rung(); }));
  CHECK(client.area->doze == Doze::claimed);
  CHECK(client.area->wakes == 1);
  const auto status = running.status();
  CHECK(status.at("wakes") == 1);
  CHECK(status.at("clients").at(0).at("job") == 7);
  CHECK(status.at("clients").at(0).at("local_rank") == 3);
  CHECK(status.at("clients").at(0).at("waits") == 1);
}

TEST_CASE("a bell that is not handed over is found by the area", "[helper]") {
  Running running;
  Waiting client;
  client.helper.ask({}, client.area, Descriptor(), running.which);
  REQUIRE(client.helper.await_answer(10'000) == State::served);
  client.arm();
  REQUIRE(eventually([&] { return client.is_watched(); }));
  REQUIRE(node::try_leave(*client.area.get(), awaited));
  CHECK(eventually([&] { return client.is_rung(); }));
}

TEST_CASE("nobody is watched who could not be rung", "[helper]") {
  Running running;
  node::MappedArea area = node::MappedArea::make();
  HelperClient helper;
  helper.ask({}, area, Descriptor(), running.which);
  REQUIRE(helper.await_answer(10'000) == State::served);
  area->doze = Doze::armed;
  area->bell_fd = 0;
  area->bell_inode = 12345;  // of nothing
  helper.nudge();
  REQUIRE(
      eventually([&] { return running.status().at("helpers").at(0).at("state") == "spinning"; }));
  CHECK(area->watched_until_ms == 0);
}

TEST_CASE("a helper that sleeps is nudged", "[helper][P4.12]") {
  Running running;
  Waiting client;
  REQUIRE(client.ask(running) == State::served);
  REQUIRE(
      eventually([&] { return running.status().at("helpers").at(0).at("state") == "sleeping"; }));
  CHECK_FALSE(client.is_watched());
  client.arm();
  CHECK(eventually([&] { return client.is_watched(); }));
}

TEST_CASE("a helper is switched off and on", "[helper][P4.12]") {
  Running running;
  Waiting client;
  REQUIRE(client.ask(running) == State::served);
  client.arm();
  REQUIRE(eventually([&] { return client.is_watched(); }));
  REQUIRE(running.command(node::HelperAsk::off));
  CHECK_FALSE(client.is_watched());
  CHECK(running.status().at("helpers").at(0).at("state") == "off");
  CHECK_FALSE(running.status().at("on").get<bool>());
  CHECK_FALSE(node::try_leave(*client.area.get(), awaited));  // a sender rings itself
  REQUIRE(running.command(node::HelperAsk::on));
  CHECK(eventually([&] { return client.is_rung(); }));
}

TEST_CASE("clients notice the end of a helper", "[helper]") {
  for (const bool stopped : {true, false}) {
    Running running;
    Waiting client;
    REQUIRE(client.ask(running) == State::served);
    client.arm();
    REQUIRE(eventually([&] { return client.is_watched(); }));
    if (stopped) REQUIRE(running.command(node::HelperAsk::stop));
    running.end();
    CHECK_FALSE(client.is_watched());
    pollfd one{client.helper.descriptor(), POLLIN, 0};
    REQUIRE(poll(&one, 1, 10'000) == 1);
    CHECK(client.helper.look() == State::gone);
    CHECK(client.helper.descriptor() == -1);
    CHECK(client.ask(running) == State::absent);
  }
}

TEST_CASE("clients that leave are forgotten", "[helper]") {
  Running running;
  {
    Waiting client;
    REQUIRE(client.ask(running) == State::served);
    client.arm();
    REQUIRE(eventually([&] { return client.is_watched(); }));
    client.helper.leave();
    REQUIRE(eventually([&] { return running.status().at("clients").empty(); }));
    CHECK_FALSE(client.is_watched());
  }
  Waiting next;
  CHECK(next.ask(running) == State::served);
}

TEST_CASE("a helper ends when it is idle", "[helper]") {
  Options options = Running::shared();
  options.exit_when_idle = true;
  ServerLimits limits;
  limits.idle_ms = 1;
  Running running(limits, options);
  {
    Waiting client;
    REQUIRE(client.ask(running) == State::served);
  }
  CHECK(eventually([&] {
    const Descriptor socket = running.connect();
    pollfd one{socket.get(), POLLIN, 0};
    return !socket || poll(&one, 1, 0) > 0;
  }));
}

TEST_CASE("clients are spread over helpers", "[helper][P4.1]") {
  Options options = Running::shared();
  options.placement.helpers = 2;
  Running running({}, options);
  Waiting clients[4];
  for (Waiting& each : clients) REQUIRE(each.ask(running) == State::served);
  const auto status = running.status();
  CHECK(status.at("helpers").at(0).at("clients") == 2);
  CHECK(status.at("helpers").at(1).at("clients") == 2);
}

TEST_CASE("a helper rests where no core is spare", "[helper][P4.6]") {
  Running running({}, Options());
  Waiting client;  // it may run on the only core
  REQUIRE(client.ask(running) == State::served);
  const auto status = running.status();
  CHECK(status.at("helpers").at(0).at("state") == "off");
  CHECK(status.at("why_off").get<std::string>().find("--share-core") != std::string::npos);
}

TEST_CASE("who is no client is refused with a reason", "[helper]") {
  ServerLimits limits;
  limits.clients = 1;
  Running running(limits);
  node::MappedArea area = node::MappedArea::make();
  Descriptor empty(memfd_create("test", MFD_CLOEXEC));
  Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  struct Row {
    std::function<void(node::HelperRequest&)> change;
    int descriptor;
    node::Refusal refusal;
  };
  const auto known = [](node::HelperRequest& each) { each.area_version = node::area_version; };
  const Row rows[] = {
      {known, -1, node::Refusal::no_area},
      {known, empty.get(), node::Refusal::no_area},
      {known, null.get(), node::Refusal::no_area},
      {[](auto& each) { each.area_version = 999; }, area.file().get(),
       node::Refusal::other_version},
      {[](auto& each) { each.version = 999; }, area.file().get(), node::Refusal::other_version},
      {[](auto& each) { each.magic = 1; }, area.file().get(), node::Refusal::malformed},
      {[](auto& each) { each.ask = static_cast<node::HelperAsk>(99); }, -1,
       node::Refusal::malformed},
      {[](auto& each) { each.ask = node::HelperAsk::nudge; }, -1, node::Refusal::malformed},
  };
  for (const Row& row : rows) {
    CAPTURE(static_cast<int>(row.refusal), row.descriptor);
    const Descriptor socket = running.connect();
    node::HelperRequest request;
    row.change(request);
    const auto sent = row.descriptor < 0
                          ? node::send_message(socket, request)
                          : node::send_message(socket, request, std::array{row.descriptor});
    REQUIRE(sent == node::Delivery::done);
    node::Attached attached;
    const auto answer = Running::answer(socket, attached);
    REQUIRE(answer);
    CHECK(answer->reply == node::HelperReply::refused);
    CHECK(answer->refusal == row.refusal);
  }
  Waiting first;
  REQUIRE(first.ask(running) == State::served);
  Waiting second;
  CHECK(second.ask(running) == State::refused);
  CHECK(second.helper.refusal() == node::Refusal::full);
}

TEST_CASE("clients cannot write to the helper's page", "[helper]") {
  Running running;
  Waiting client;
  const Descriptor socket = running.connect();
  node::HelperRequest request;
  request.area_version = node::area_version;
  REQUIRE(node::send_message(socket, request, std::array{client.area.file().get()}) ==
          node::Delivery::done);
  node::Attached attached;
  REQUIRE(Running::answer(socket, attached));
  void* at = mmap(nullptr, sizeof(node::HelperPage), PROT_READ | PROT_WRITE, MAP_SHARED,
                  attached[0].get(), 0);
  CHECK(at == MAP_FAILED);
  CHECK(ftruncate(attached[0].get(), 0) != 0);
}

TEST_CASE("a flood of connections leaves a helper's clients alone", "[helper]") {
  ServerLimits limits;
  limits.connections = 16;
  limits.hello_ms = 100;
  Running running(limits);
  Waiting client;
  REQUIRE(client.ask(running) == State::served);
  std::vector<Descriptor> flood;
  for (int i = 0; i < 200; ++i) flood.push_back(running.connect());
  client.arm();
  REQUIRE(eventually([&] { return client.is_watched(); }));
  REQUIRE(node::try_leave(*client.area.get(), awaited));
  CHECK(eventually([&] { return client.is_rung(); }));
  // Those that say nothing are dropped, so that others come in again.
  Waiting next;
  CHECK(eventually([&] { return next.ask(running) == State::served; }));
}

TEST_CASE("a bell that is full and would block stops nobody", "[helper]") {
  Running running;
  Waiting client;
  REQUIRE(client.ask(running) == State::served);
  // The client's own end, which it has handed over: writes to it block from now on.
  const int ringing = client.bell.ringing().get();
  REQUIRE(fcntl(ringing, F_SETFL, fcntl(ringing, F_GETFL) | O_NONBLOCK) == 0);
  const std::vector<char> rings(4096);
  while (write(ringing, rings.data(), rings.size()) > 0) {}
  while (write(ringing, rings.data(), 1) > 0) {}
  REQUIRE(fcntl(ringing, F_SETFL, fcntl(ringing, F_GETFL) & ~O_NONBLOCK) == 0);
  client.arm();
  REQUIRE(eventually([&] { return client.is_watched(); }));
  REQUIRE(node::try_leave(*client.area.get(), awaited));
  REQUIRE(eventually([&] { return client.area->doze == Doze::claimed; }));
  Waiting next;
  CHECK(next.ask(running) == State::served);
}

TEST_CASE("garbage in messages and areas harms nobody else", "[helper][fuzz]") {
  Running running;
  Waiting good;
  REQUIRE(good.ask(running) == State::served);
  std::mt19937_64 random(20261122);
  const auto any_of = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  Waiting bad[4];
  for (Waiting& each : bad) REQUIRE(each.ask(running) == State::served);

  const auto spoil = [&](node::Area& area) {
    auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(&area);
    for (int i = 0; i < 64; ++i) {
      const std::uint64_t word = any_of(4) == 0 ? UINT64_MAX : random();
      words[any_of(sizeof(node::Area) / 8)].store(word, std::memory_order_relaxed);
    }
    // Often something that is looked at.
    area.doze = any_of(2) == 0 ? Doze::armed : static_cast<Doze>(random());
    area.full = random();
  };
  const auto babble = [&] {
    const Descriptor socket = running.connect();
    if (!socket) return;
    unsigned char bytes[256];
    for (unsigned char& each : bytes) each = static_cast<unsigned char>(random());
    node::HelperRequest request;
    request.ask = static_cast<node::HelperAsk>(any_of(4));  // not those that switch or stop it
    if (any_of(2) == 0) request.area_version = node::area_version;
    std::memcpy(bytes, &request, any_of(2) * sizeof request);
    const std::size_t size = any_of(2) == 0 ? sizeof request : any_of(sizeof bytes);
    const int descriptors[] = {bad[any_of(4)].area.file().get(), STDIN_FILENO, socket.get(),
                               good.bell.descriptors()[0]};
    const int chosen[] = {descriptors[any_of(4)], descriptors[any_of(4)]};
    static_cast<void>(node::detail::send_bytes(socket, bytes, size, chosen, any_of(3)));
  };
  constexpr int rounds = 2000;
  for (int i = 0; i < rounds; ++i) {
    spoil(*bad[any_of(4)].area.get());
    if (i % 4 == 0) babble();
    if (i % 16 == 0) bad[any_of(4)].helper.nudge();
  }
  // The good client is served as before, while the areas of the others keep changing.
  for (int i = 0; i < 20; ++i) {
    static_cast<void>(good.bell.silence());
    good.arm();
    REQUIRE(eventually([&] {
      spoil(*bad[any_of(4)].area.get());
      return good.is_watched();
    }));
    REQUIRE(node::try_leave(*good.area.get(), awaited));
    CHECK(eventually([&] { return good.is_rung(); }));
  }
  CHECK(running.status().at("clients").size() >= 1);
}
