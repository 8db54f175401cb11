// Connections, one message at a time.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/server.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "opal/tools/progressd/machine.hpp"

namespace overlap::progressd {
namespace {

using node::HelperAnswer;
using node::HelperAsk;
using node::HelperReply;
using node::HelperRequest;
using node::Refusal;

std::uint64_t now_ms() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000U +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000U;
}

std::uint64_t process_us() noexcept {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000U +
         static_cast<std::uint64_t>(used.tv_nsec) / 1000U;
}

/// As an area has it, which may be anything.
const char* word_of(node::Doze doze) {
  switch (doze) {
    case node::Doze::awake: return "awake";
    case node::Doze::parked: return "parked";
    case node::Doze::napping: return "napping";
    case node::Doze::armed: return "armed";
    case node::Doze::claimed: return "claimed";
  }
  return "unknown";
}

/// A file without a name that holds a text. @returns  none: the kernel refuses
Descriptor file_of(const std::string& text) {
  Descriptor file(memfd_create("ompi-progressd-status", MFD_CLOEXEC));
  for (std::size_t at = 0; file && at < text.size();) {
    const ssize_t written = ::write(file.get(), text.data() + at, text.size() - at);
    if (written <= 0) return {};
    at += static_cast<std::size_t>(written);
  }
  return file;
}

}  // namespace

Server::Server(Descriptor listening, Descriptor signals, const Options& options,
               std::vector<Core> cores, std::function<void(const std::string&)> log,
               const ServerLimits& limits)
    : listening_(std::move(listening)),
      signals_(std::move(signals)),
      exit_when_idle_(options.exit_when_idle),
      limits_(limits),
      crew_(std::make_unique<Crew>(options, std::move(cores), std::move(log))),
      idle_since_ms_(now_ms()),
      idle_limit_ms_(limits.first_client_ms) {}

void Server::run() {
  settle();
  while (!ending_) {
    std::vector<pollfd> set;
    set.push_back({signals_.get(), POLLIN, 0});
    set.push_back({accepting_ ? listening_.get() : -1, POLLIN, 0});
    for (const Connection& each : connections_) set.push_back({each.socket.get(), POLLIN, 0});
    if (::poll(set.data(), set.size(), timeout_ms()) < 0 && errno != EINTR) break;
    if (set[0].revents != 0) break;
    accepting_ = true;
    const std::size_t known = connections_.size();
    for (std::size_t i = 0; i < known && !ending_; ++i) {
      if (set[i + 2].revents != 0 && serve(connections_[i]) == Keep::no) drop(connections_[i]);
    }
    drop_silent();
    std::erase_if(connections_, [](const Connection& each) { return !each.socket; });
    if (set[1].revents != 0) accept_all();
    const bool idle = exit_when_idle_ && client_count() == 0;
    if (idle && now_ms() - idle_since_ms_ >= idle_limit_ms_) break;
  }
  // Nobody is watched any more before anybody hears that this is the end.
  crew_.reset();
  connections_.clear();
}

/// Nothing needs the time while all connections are clients'.
int Server::timeout_ms() const {
  constexpr int refused_accept_ms = 100;
  if (!accepting_) return refused_accept_ms;
  const std::uint64_t now = now_ms();
  std::uint64_t next = UINT64_MAX;
  const auto until = [&](std::uint64_t at) { next = std::min(next, at > now ? at - now : 0); };
  for (const Connection& each : connections_) {
    if (each.client == nullptr) until(each.since_ms + limits_.hello_ms);
  }
  if (exit_when_idle_ && client_count() == 0) until(idle_since_ms_ + idle_limit_ms_);
  return next == UINT64_MAX ? -1 : static_cast<int>(next) + 1;
}

void Server::accept_all() {
  constexpr int at_once = 64;
  for (int i = 0; i < at_once; ++i) {
    Descriptor socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Without a descriptor the connection stays in the queue, which would wake poll for ever.
      accepting_ = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
      return;
    }
    const node::Peer peer = node::Peer::of(socket);
    if (peer.user != geteuid()) {
      static_cast<void>(refuse(socket, Refusal::other_user));
    } else if (connections_.size() >= limits_.connections) {
      static_cast<void>(refuse(socket, Refusal::full));
    } else {
      connections_.push_back(
          {.socket = std::move(socket), .peer = peer, .since_ms = now_ms(), .client = nullptr});
    }
  }
}

Server::Keep Server::serve(Connection& connection) {
  HelperRequest request;
  node::Attached attached;
  switch (node::receive_message(connection.socket, request, attached)) {
    case node::Delivery::done: return handle(connection, request, std::move(attached));
    case node::Delivery::would_block: return Keep::yes;
    case node::Delivery::malformed: return refuse(connection.socket, Refusal::malformed);
    case node::Delivery::ended: return Keep::no;
  }
  return Keep::no;
}

Server::Keep Server::handle(Connection& connection, const HelperRequest& request,
                            node::Attached attached) {
  const bool is_client = connection.client != nullptr;
  if (request.magic != node::helper_magic) return refuse(connection.socket, Refusal::malformed);
  if (request.version != node::helper_version)
    return refuse(connection.socket, Refusal::other_version);
  if (is_client) {
    if (request.ask != HelperAsk::nudge) return refuse(connection.socket, Refusal::malformed);
    (*crew_)[connection.client->watcher].nudge();
    return Keep::yes;
  }
  HelperAnswer answer;
  answer.reply = HelperReply::done;
  switch (request.ask) {
    case HelperAsk::hello: return welcome(connection, request, std::move(attached));
    case HelperAsk::status: {
      const Descriptor file = file_of(json_of(status()));
      if (!file) return refuse(connection.socket, Refusal::full);
      static_cast<void>(node::send_message(connection.socket, answer, std::array{file.get()}));
      return Keep::no;
    }
    case HelperAsk::on:
    case HelperAsk::off: {
      crew_->switch_on(request.ask == HelperAsk::on);
      settle();
      static_cast<void>(node::send_message(connection.socket, answer));
      return Keep::no;
    }
    case HelperAsk::stop: {
      ending_ = true;
      crew_->switch_on(false);
      settle();
      // No other helper may find the name taken once this one has been told to have ended.
      listening_ = Descriptor();
      static_cast<void>(node::send_message(connection.socket, answer));
      return Keep::no;
    }
    case HelperAsk::nudge: break;
  }
  return refuse(connection.socket, Refusal::malformed);
}

Server::Keep Server::welcome(Connection& connection, const HelperRequest& request,
                             node::Attached attached) {
  if (request.area_version != node::area_version)
    return refuse(connection.socket, Refusal::other_version);
  if (client_count() >= limits_.clients) return refuse(connection.socket, Refusal::full);
  auto client = Client::of(connection.peer, request, std::move(attached));
  if (client == nullptr) return refuse(connection.socket, Refusal::no_area);
  client->binding = {.process = connection.peer.process,
                     .processors = binding_of(connection.peer.process)};
  // Of processes in another container nothing is known: they may be anywhere.
  if (client->binding.processors.empty()) client->binding.processors = crew_->everywhere();
  connection.client = client;
  settle();
  client->watcher = least_busy(*client);
  Watcher& watcher = (*crew_)[client->watcher];
  watcher.add(client);
  HelperAnswer answer;
  answer.reply = HelperReply::welcome;
  const auto sent = node::send_message(connection.socket, answer, std::array{watcher.page().get()});
  return sent == node::Delivery::done ? Keep::yes : Keep::no;
}

std::size_t Server::least_busy(const Client& other) const {
  std::vector<std::size_t> clients(crew_->size(), 0);
  for (const Connection& each : connections_) {
    if (each.client != nullptr && each.client.get() != &other) ++clients[each.client->watcher];
  }
  return crew_->least_busy(clients);
}

Server::Keep Server::refuse(const Descriptor& socket, Refusal why) const {
  HelperAnswer answer;
  answer.refusal = why;
  static_cast<void>(node::send_message(socket, answer));
  return Keep::no;
}

void Server::drop(Connection& connection) {
  connection.socket = Descriptor();
  if (connection.client == nullptr) return;
  const std::shared_ptr<Client> client = std::exchange(connection.client, nullptr);
  (*crew_)[client->watcher].remove(client);
  futile_of_gone_ += client->area->wakes_futile.load(std::memory_order_relaxed);
  idle_since_ms_ = now_ms();
  idle_limit_ms_ = limits_.idle_ms;
  settle();
}

void Server::drop_silent() {
  const std::uint64_t now = now_ms();
  for (Connection& each : connections_) {
    if (each.client == nullptr && now - each.since_ms >= limits_.hello_ms)
      each.socket = Descriptor();
  }
}

std::size_t Server::client_count() const {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const Connection& each) { return each.client != nullptr; }));
}

void Server::settle() {
  std::vector<Binding> bindings;
  for (const Connection& each : connections_) {
    if (each.client != nullptr) bindings.push_back(each.client->binding);
  }
  crew_->settle(bindings);
}

Status Server::status() {
  Status status;
  status.version = OVERLAP_VERSION;
  status.process = getpid();
  status.on = crew_->is_on();
  status.why_off = crew_->is_on() ? crew_->why_off() : "";
  status.exit_when_idle = exit_when_idle_;
  status.processor_us = process_us();
  status.wakes_futile = futile_of_gone_;
  for (std::size_t i = 0; i < crew_->size(); ++i) status.helpers.push_back(crew_->status(i));
  for (const Connection& connection : connections_) {
    if (connection.client == nullptr) continue;
    const Client& each = *connection.client;
    const node::Area& area = *each.area.get();
    ++status.helpers[each.watcher].clients;
    status.clients.push_back(
        {.process = each.peer.process,
         .job = each.hello.job,
         .local_rank = each.hello.local_rank,
         .helper = each.watcher,
         .doze = word_of(area.doze.load(std::memory_order_relaxed)),
         .watched = each.is_watched(),
         .waits = static_cast<std::uint64_t>(std::popcount(area.listed.load())) +
                  area.unlisted.load(std::memory_order_relaxed),
         .wakes = area.wakes.load(std::memory_order_relaxed),
         .wakes_futile = area.wakes_futile.load(std::memory_order_relaxed)});
    status.wakes_futile += status.clients.back().wakes_futile;
  }
  return status;
}

}  // namespace overlap::progressd
