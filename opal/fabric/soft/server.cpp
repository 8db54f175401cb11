// The loop of the device process: doorbells, the engine, sleep, sockets.
// SPDX-License-Identifier: BSD-3-Clause
#include "server.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

namespace overlap::fabric::soft {
namespace {

// What epoll reports: one of these, or a session's id times two, plus one for its process.
constexpr std::uint64_t listening_id = 0;
constexpr std::uint64_t doorbell_id = 1;

constexpr Time socket_look_pieces = 8;  ///< pieces copied between two looks at the sockets

// A client that has polled in vain so recently still does.
constexpr Time still_waits_ns = 100'000;
// A large message that was posted during a nap loses nothing: it starts when it was posted.
constexpr Time nap_min_ns = 30'000;
constexpr Time nap_max_ns = 60'000;

}  // namespace

Time clock_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<Time>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Server::Server(Descriptor listening, const ServerOptions& options)
    : options_(options),
      listening_(std::move(listening)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      doorbell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      page_file_(make_memory_file("overlap-softdevice", sizeof(DevicePage))),
      page_(Mapping::map(page_file_.get(), 0, sizeof(DevicePage))),
      engine_(*this) {
  // Edge-triggered: the eventfd wakes at each write and need not be read.
  if (!epoll_ || !doorbell_ || !page_ ||
      ::getrandom(&instance_, sizeof(instance_), 0) != sizeof(instance_) ||
      !watch(listening_.get(), listening_id, EPOLLIN) ||
      !watch(doorbell_.get(), doorbell_id, EPOLLIN | EPOLLET)) {
    throw std::runtime_error("the software device process cannot set up its descriptors");
  }
  page_.as<DevicePage>()->header = AreaHeader{};
}

bool Server::watch(int descriptor, std::uint64_t id, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

int Server::run() {
  alone_since_ = clock_now();
  Time pieces = 0;
  while (!quit_) {
    const Time now = clock_now();
    if (look_at_doorbells(now)) nap_ns_ = nap_min_ns;
    engine_.advance(now);
    if (anybody_ended_) bury_ended();  // before it sleeps: nobody else would wake it for that
    if (engine_.has_backlog()) {
      engine_.move_piece();
      if (++pieces % socket_look_pieces == 0) handle_events(0);
    } else {
      sleep_until(engine_.next_wake());
    }
    if (anybody_ended_) bury_ended();
    if (clients_ == 0 && clock_now() - alone_since_ >= options_.linger_ns) break;
  }
  // From here on nobody gets in; who is in the queue of connections sees its end and starts a new
  // device.
  listening_.reset();
  return 0;
}

bool Server::look_at_doorbells(Time now) {
  bool any = false;
  for (auto& [id, session] : sessions_) {
    if (!session->doorbells) continue;
    Doorbells& doorbells = *session->doorbells.as<Doorbells>();
    std::uint32_t head = doorbells.head.load(std::memory_order_relaxed);
    const std::uint32_t tail =
        doorbells.tail.load(std::memory_order_seq_cst);  // D2, R of DevicePage
    if (tail - head > Doorbells::entries) {
      end(*session);
      continue;
    }
    for (; head != tail; ++head) {
      any = true;
      const std::uint32_t number = doorbells.rings[head % Doorbells::entries];
      doorbells.head.store(head + 1, std::memory_order_release);  // D3, pairs with D4
      answer_doorbell(*session, number, now);
    }
    if (doorbells.overflow.load(std::memory_order_seq_cst) != 0) {
      any = true;
      doorbells.overflow.store(0, std::memory_order_seq_cst);
      look_at_everything(*session, now);
    }
  }
  return any;
}

void Server::answer_doorbell(Session& session, std::uint32_t number, Time now) {
  const std::uint32_t plain = number & ~(Doorbells::receive_bit | Doorbells::management_bit);
  if ((number & Doorbells::receive_bit) != 0) {
    if (const auto found = session.receives.find(plain); found != session.receives.end()) {
      engine_.receives_posted(*found->second->receives, now);
    }
  } else if ((number & Doorbells::management_bit) != 0) {
    if (const auto found = session.managers.find(plain); found != session.managers.end())
      engine_.ring(*found->second->manager, now);
  } else if (const auto found = session.pairs.find(plain); found != session.pairs.end()) {
    engine_.ring(*found->second->pair, now);
  }
}

void Server::look_at_everything(Session& session, Time now) {
  for (auto& [number, pair] : session.pairs) engine_.ring(*pair->pair, now);
  for (auto& [number, receives] : session.receives)
    engine_.receives_posted(*receives->receives, now);
  for (auto& [number, manager] : session.managers) engine_.ring(*manager->manager, now);
}

void Server::sleep_until(Time wake) {
  const Time now = clock_now();
  if (wake <= now) {
    // Busy to the nanosecond: sockets still get their turn.
    handle_events(0);
    return;
  }
  DevicePage& page = *page_.as<DevicePage>();
  const bool naps = now - page.waited_ns.load(std::memory_order_relaxed) < still_waits_ns;
  page.cpu.store(static_cast<std::uint32_t>(::sched_getcpu()), std::memory_order_relaxed);
  page.state.store(naps ? doze::napping : doze::asleep,
                   std::memory_order_seq_cst);  // S of DevicePage
  if (!look_at_doorbells(now)) {
    Time timeout = wake == never ? never : wake - now;
    if (naps) {
      timeout = std::min(timeout, nap_ns_);
      nap_ns_ = std::min(2 * nap_ns_, nap_max_ns);
    }
    if (clients_ == 0)
      timeout = std::min(timeout, std::max<Time>(0, alone_since_ + options_.linger_ns - now));
    handle_events(timeout);
  } else {
    nap_ns_ = nap_min_ns;
  }
  page.state.store(doze::awake, std::memory_order_seq_cst);
  page.noted.store(0, std::memory_order_relaxed);
}

/// Wait for a doorbell or a socket, at most so long; `never` is for ever.
void Server::handle_events(Time timeout_ns) {
  std::array<epoll_event, 32> events{};
  timespec timeout{};
  if (timeout_ns != never) {
    timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
  }
  const int count = ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                   timeout_ns != never ? &timeout : nullptr, nullptr);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
    if (id == doorbell_id) continue;  // only a reason to wake up
    if (id == listening_id) {
      take_connections();
    } else if (const auto found = sessions_.find(id / 2); found != sessions_.end()) {
      Session& session = *found->second;
      if (id % 2 != 0) {
        end(session);
        continue;
      }
      send_unsent(session);
      read_messages(session);
    }
  }
}

void Server::take_connections() {
  for (;;) {
    Descriptor socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    auto session = std::make_unique<Session>();
    int pid = 0;
    if (!is_same_user(socket.get(), pid)) continue;
    session->pid = pid;
    session->id = ++next_session_;
    session->socket = std::move(socket);
    session->process = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!watch(session->socket.get(), session->id * 2, EPOLLIN)) continue;
    if (session->process)
      static_cast<void>(watch(session->process.get(), session->id * 2 + 1, EPOLLIN));
    sessions_.emplace(session->id, std::move(session));
  }
}

void Server::read_messages(Session& session) {
  while (!session.ended) {
    Message ask;
    Attached attached;
    switch (receive_message(session.socket.get(), ask, &attached, false)) {
      case Transfer::would_block: return;
      case Transfer::ended: end(session); return;
      case Transfer::done: handle(session, ask, attached); break;
    }
  }
}

void Server::send(Session& session, const Message& message, const int* descriptors,
                  std::size_t count) {
  if (session.ended) return;
  Transfer transfer = Transfer::would_block;
  if (session.unsent.empty())
    transfer = send_message(session.socket.get(), message, descriptors, count, false);
  if (transfer == Transfer::ended) end(session);
  if (transfer == Transfer::done) count_event(session, message);
  if (transfer != Transfer::would_block) return;
  // Only events can pile up: a client waits for each reply.
  session.unsent.push_back(message);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT;
  event.data.u64 = session.id * 2;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, session.socket.get(), &event);
}

/// Only when it is there to be received: who sees the count looks once.
void Server::count_event(Session& session, const Message& sent) noexcept {
  if (sent.ask != Ask::event || !session.doorbells) return;
  session.doorbells.as<Doorbells>()->events.fetch_add(
      1, std::memory_order_release);  // D5, pairs with D6
}

void Server::send_unsent(Session& session) {
  if (session.unsent.empty()) return;
  while (!session.unsent.empty()) {
    const Transfer transfer =
        send_message(session.socket.get(), session.unsent.front(), nullptr, 0, false);
    if (transfer == Transfer::would_block) return;
    if (transfer == Transfer::ended) return end(session);
    count_event(session, session.unsent.front());
    session.unsent.pop_front();
    if (session.client != nullptr) notify(*session.client);
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = session.id * 2;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, session.socket.get(), &event);
}

/// Mark; the session goes when nobody uses it any more.
void Server::end(Session& session) noexcept {
  if (session.ended) return;
  session.ended = true;
  anybody_ended_ = true;
}

void Server::bury_ended() {
  anybody_ended_ = false;
  for (auto entry = sessions_.begin(); entry != sessions_.end();) {
    Session& session = *entry->second;
    if (!session.ended) {
      ++entry;
      continue;
    }
    if (session.client != nullptr) {
      engine_.remove_client(*session.client, clock_now());
      if (--clients_ == 0) alone_since_ = clock_now();
    }
    entry = sessions_.erase(entry);
  }
}

}  // namespace overlap::fabric::soft
