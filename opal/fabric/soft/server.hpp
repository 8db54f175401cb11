// The device process: clients and their shared queues around the engine.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "control.hpp"
#include "copier.hpp"
#include "engine/engine.hpp"
#include "layout.hpp"

namespace overlap::fabric::soft {

struct Session;

struct ServedPair {
  Session* session = nullptr;
  Pair* pair = nullptr;
  Mapping ring;
  std::uint32_t entries = 0;  ///< ours: what a client writes into the ring's header is not trusted
  std::uint32_t head = 0;     ///< next entry to fetch
  std::uint32_t cookie = 0;
};

struct ServedReceives {
  Receives* receives = nullptr;
  Mapping ring;
  std::uint32_t entries = 0;
  std::uint32_t users = 0;  ///< queue pairs
};

struct ServedManager {
  Manager* manager = nullptr;
  Mapping ring;
  std::uint32_t entries = 0;
  std::uint32_t head = 0;  ///< next entry to fetch
  struct ServedCompletions* completions = nullptr;
};

struct ServedCompletions {
  Completions* completions = nullptr;
  Mapping ring;
  std::uint32_t entries = 0;
  std::uint32_t tail = 0;
  std::uint32_t users = 0;
  bool of_manager = false;  ///< a management queue's alone
};

/// One connection: a client, or a tester that has not said hello.
struct Session {
  std::uint64_t id = 0;
  Descriptor socket;
  Descriptor process;  ///< pidfd: the socket may live on in a forked child
  pid_t pid = 0;
  Client* client = nullptr;  ///< set by hello
  Mapping doorbells;
  Descriptor arrivals;  ///< our end of the pair of sockets on whose other end the client sleeps
  bool ended = false;
  std::deque<Message> unsent;
  std::unordered_map<std::uint32_t, std::unique_ptr<ServedPair>> pairs;  ///< by the pair's number
  std::unordered_map<std::uint32_t, std::unique_ptr<ServedReceives>> receives;
  std::unordered_map<std::uint32_t, std::unique_ptr<ServedCompletions>> completions;
  std::unordered_map<std::uint32_t, std::unique_ptr<ServedManager>> managers;
  std::unordered_map<std::uint32_t, Mapping> mappings;  ///< by region key
  std::uint32_t next_number = 1;                        ///< of receives and completions
  std::uint64_t memory_bytes = 0;                       ///< registered
  std::uint64_t memory_limit_bytes = UINT64_MAX;        ///< fault on command
};

struct ServerOptions {
  std::string domain;
  Time linger_ns = 200'000'000;  ///< how long to stay without clients
};

/// Runs the device. One thread; sleeps whenever nothing is to be done.
class Server final : private Host {
 public:
  /// @param listening  see listen_at()
  Server(Descriptor listening, const ServerOptions& options);

  /// Serve until the last client has gone. @returns  the process's exit status
  [[nodiscard]] int run();

 private:
  // server.cpp
  [[nodiscard]] bool look_at_doorbells(Time now);
  void answer_doorbell(Session& session, std::uint32_t number, Time now);
  void look_at_everything(Session& session, Time now);
  void sleep_until(Time wake);
  void handle_events(Time timeout_ns);
  void take_connections();
  void read_messages(Session& session);
  void send(Session& session, const Message& message, const int* descriptors = nullptr,
            std::size_t count = 0);
  void send_unsent(Session& session);
  static void count_event(Session& session, const Message& sent) noexcept;
  void end(Session& session) noexcept;
  void bury_ended();
  [[nodiscard]] bool watch(int descriptor, std::uint64_t id, std::uint32_t events) noexcept;

  // server_requests.cpp
  void handle(Session& session, const Message& ask, Attached& attached);
  void handle_hello(Session& session, const Message& ask);
  [[nodiscard]] int probe(const Session& session, const Message& ask) const noexcept;
  [[nodiscard]] int register_memory(Session& session, const Message& ask, Attached& attached,
                                    Message& reply);
  [[nodiscard]] int make_completions(Session& session, const Message& ask, Attached& attached,
                                     Message& reply);
  [[nodiscard]] int make_receives(Session& session, const Message& ask, Attached& attached,
                                  Message& reply);
  [[nodiscard]] int make_pair(Session& session, const Message& ask, Attached& attached,
                              Message& reply);
  [[nodiscard]] int make_manager(Session& session, const Message& ask, Attached& attached,
                                 Message& reply);
  [[nodiscard]] int drop(Session& session, const Message& ask);
  [[nodiscard]] int drop_pair(Session& session, std::uint32_t number);
  [[nodiscard]] int drop_completions(Session& session, std::uint32_t number);
  [[nodiscard]] int drop_receives(Session& session, std::uint32_t number);
  [[nodiscard]] int drop_manager(Session& session, std::uint32_t number);
  [[nodiscard]] int handle_client(Session& session, const Message& ask, Attached& attached,
                                  Message& reply);
  [[nodiscard]] int handle_client_fault(Client& client, const Message& ask);
  [[nodiscard]] int handle_tester(const Message& ask, Message& reply);

  // server_host.cpp: the engine's view of the machine
  [[nodiscard]] Copied copy(const Client& to, std::span<const Piece> target, const Client& from,
                            std::span<const Piece> source, bool last) noexcept override;
  [[nodiscard]] Copied atomic(const Client& client, const Piece& target, const WorkRequest& request,
                              std::uint64_t& old) noexcept override;
  [[nodiscard]] bool fetch(Pair& pair, Submission& out) override;
  [[nodiscard]] bool take_receive(Receives& receives, Receive& out) override;
  [[nodiscard]] static bool put(ServedCompletions& served, const Completion& completion,
                                std::uint32_t position, std::uint32_t pair_number,
                                std::uint32_t pair_cookie) noexcept;
  [[nodiscard]] bool complete(Completions& completions, Pair& pair, const Completion& completion,
                              std::uint32_t position) override;
  [[nodiscard]] bool fetch(Manager& manager, Command& out) override;
  [[nodiscard]] Completions* find_counting(const Client& client,
                                           std::uint32_t number) noexcept override;
  void count(Completions& completions, Pair& pair, bool sent,
             std::uint32_t position) noexcept override;
  [[nodiscard]] bool complete(Manager& manager, const Completion& completion,
                              std::uint32_t position) override;
  void notify(Client& client) noexcept override;
  void event(Client& client, Pair* pair, const Event& event) override;

  ServerOptions options_;
  Descriptor listening_;
  Descriptor epoll_;
  Descriptor doorbell_;  ///< eventfd
  Descriptor page_file_;
  Mapping page_;
  std::uint64_t instance_ = 0;  ///< tells devices of the same name apart
  bool quit_ = false;
  bool anybody_ended_ = false;
  std::uint32_t clients_ = 0;  ///< sessions that have said hello; testers do not keep the device
  Time alone_since_ = 0;
  Time nap_ns_ = 0;  ///< the next one; grows while nothing is found
  Copier copier_;
  Engine engine_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Session>> sessions_;
  std::uint64_t next_session_ = 1;
};

/// CLOCK_MONOTONIC, the time of the wire.
[[nodiscard]] Time clock_now() noexcept;

}  // namespace overlap::fabric::soft
