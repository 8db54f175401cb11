// What clients and testers ask over the control socket.
// SPDX-License-Identifier: BSD-3-Clause
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "server.hpp"

namespace overlap::fabric::soft {
namespace {

/// Map a client's ring. @returns  empty with errno set when it is not what it should be
[[nodiscard]] Mapping map_ring(const Attached& attached, std::uint32_t entries,
                               std::size_t bytes) noexcept {
  if (entries == 0 || !attached[0] || !is_sealed(attached[0].get())) {
    errno = EINVAL;
    return {};
  }
  return Mapping::map(attached[0].get(), 0, bytes);
}

[[nodiscard]] bool is_about_client(Ask ask) noexcept {
  return ask == Ask::end_client || ask == Ask::lose_requests || ask == Ask::delay_requests ||
         ask == Ask::limit_memory;
}

[[nodiscard]] int answer(bool good, int otherwise) noexcept { return good ? 0 : otherwise; }

}  // namespace

void Server::handle(Session& session, const Message& ask, Attached& attached) {
  if (ask.ask == Ask::hello) {
    handle_hello(session, ask);
    return;
  }
  Message reply;
  reply.ask = ask.ask;
  try {
    reply.status = session.client != nullptr && ask.ask < Ask::list
                       ? handle_client(session, ask, attached, reply)
                       : handle_tester(ask, reply);
  } catch (const std::bad_alloc&) {
    reply.status = ENOMEM;
  }
  send(session, reply);
}

void Server::handle_hello(Session& session, const Message& ask) {
  Message reply;
  reply.ask = Ask::welcome;
  Descriptor doorbells = make_memory_file("overlap-doorbells", sizeof(Doorbells));
  Mapping mapping = Mapping::map(doorbells.get(), 0, sizeof(Doorbells));
  // A pair of sockets, one end each: flags of a shared one, an eventfd's say, would be the client's
  // to change under us.
  int ends[2] = {-1, -1};
  if (ask.numbers[0] != layout_version || session.client != nullptr) {
    reply.status = EPROTO;
  } else if (!mapping ||
             ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    reply.status = errno;
  }
  Descriptor arrivals(ends[0]);
  const Descriptor sleeper(ends[1]);
  if (reply.status != 0) {
    send(session, reply);
    return;
  }
  mapping.as<Doorbells>()->header = AreaHeader{.entries = Doorbells::entries};
  session.doorbells = std::move(mapping);
  session.arrivals = std::move(arrivals);
  const WireSettings settings{.bytes_per_ns = static_cast<double>(ask.values[0]) / 1000.0,
                              .latency_ns = static_cast<Time>(ask.values[1]),
                              .message_ns = static_cast<Time>(ask.values[2])};
  ++clients_;
  const RetrySettings retry{.receive_retry_ns = static_cast<Time>(ask.values[3]),
                            .receive_retries = ask.numbers[2],
                            .answer_ns = static_cast<Time>(ask.values[4])};
  session.client = &engine_.directory().add_client(ask.numbers[1], settings, &session, retry);
  session.client->task_ns = static_cast<Time>(ask.numbers[3]);
  reply.numbers[0] = session.client->id;
  reply.values[0] = instance_;
  const int descriptors[] = {page_file_.get(), doorbells.get(), doorbell_.get(), sleeper.get()};
  send(session, reply, descriptors, 4);
}

int Server::probe(const Session& session, const Message& ask) const noexcept {
  std::uint64_t word = 0;
  const iovec local{&word, sizeof(word)};
  const iovec remote{reinterpret_cast<void*>(ask.values[0]), sizeof(word)};
  if (::process_vm_readv(session.pid, &local, 1, &remote, 1, 0) !=
      static_cast<ssize_t>(sizeof(word)))
    return errno != 0 ? errno : EFAULT;
  // Another process's memory at this address: the client lives in a pid namespace that we do not
  // see.
  return word == ask.values[1] ? 0 : ESRCH;
}

int Server::handle_client(Session& session, const Message& ask, Attached& attached,
                          Message& reply) {
  switch (ask.ask) {
    case Ask::probe: return probe(session, ask);
    case Ask::register_memory: return register_memory(session, ask, attached, reply);
    case Ask::make_completions: return make_completions(session, ask, attached, reply);
    case Ask::make_receives: return make_receives(session, ask, attached, reply);
    case Ask::make_pair: return make_pair(session, ask, attached, reply);
    case Ask::make_manager: return make_manager(session, ask, attached, reply);
    case Ask::deregister:
    case Ask::drop_completions:
    case Ask::drop_receives:
    case Ask::drop_pair:
    case Ask::drop_manager: return drop(session, ask);
    case Ask::connect:
    case Ask::accept: {
      const auto found = session.pairs.find(ask.numbers[0]);
      if (found == session.pairs.end()) return EINVAL;
      Pair& pair = *found->second->pair;
      if (ask.ask == Ask::accept) return answer(engine_.accept(ask.values[0], pair), EINVAL);
      PrivateData data;
      data.bytes = ask.data;
      data.size_bytes = std::min<std::uint32_t>(ask.data_bytes, private_max_bytes);
      // Client ids start at 1: another device's client is nobody here.
      return answer(
          engine_.connect(pair, ask.values[0] == instance_ ? ask.numbers[1] : 0, data, clock_now()),
          EINVAL);
    }
    case Ask::reject: engine_.reject(ask.values[0], *session.client); return 0;
    case Ask::hello:
    case Ask::welcome:
    case Ask::event:
    case Ask::list:
    case Ask::end_client:
    case Ask::fail_next:
    case Ask::stall:
    case Ask::delay:
    case Ask::link_down:
    case Ask::tear:
    case Ask::lose_requests:
    case Ask::delay_requests:
    case Ask::limit_memory:
    case Ask::quit: return EINVAL;
  }
  return EINVAL;
}

int Server::register_memory(Session& session, const Message& ask, Attached& attached,
                            Message& reply) {
  if (ask.values[1] > session.memory_limit_bytes - session.memory_bytes) return ENOMEM;
  Region region;
  region.client = session.client->id;
  region.address = ask.values[0];
  region.bytes = ask.values[1];
  region.rights = ask.numbers[0];
  // A backing is a hint: what cannot be mapped is reached like any other memory.
  Mapping mapping;
  if (attached[0]) mapping = Mapping::map(attached[0].get(), ask.values[2], region.bytes);
  region.mapping = mapping ? mapping.data() : nullptr;
  const std::uint32_t key = engine_.regions().add(region);
  if (mapping) session.mappings.emplace(key, std::move(mapping));
  session.memory_bytes += region.bytes;
  reply.numbers[0] = key;
  return 0;
}

int Server::make_completions(Session& session, const Message& ask, Attached& attached,
                             Message& reply) {
  auto served = std::make_unique<ServedCompletions>();
  served->entries = ask.numbers[0];
  served->ring = map_ring(attached, served->entries, ring_bytes<CompletionRing>(served->entries));
  if (!served->ring) return errno;
  served->completions = &engine_.directory().add_completions(*session.client, served.get());
  served->completions->counting = ask.numbers[1] != 0;
  reply.numbers[0] = session.next_number++;
  session.completions.emplace(reply.numbers[0], std::move(served));
  return 0;
}

int Server::make_receives(Session& session, const Message& ask, Attached& attached,
                          Message& reply) {
  auto served = std::make_unique<ServedReceives>();
  served->entries = ask.numbers[0];
  served->ring = map_ring(attached, served->entries, ring_bytes<ReceiveRing>(served->entries));
  if (!served->ring) return errno;
  served->receives = &engine_.directory().add_receives(*session.client, served.get());
  reply.numbers[0] = session.next_number++;
  session.receives.emplace(reply.numbers[0], std::move(served));
  return 0;
}

int Server::make_pair(Session& session, const Message& ask, Attached& attached, Message& reply) {
  const auto completions = session.completions.find(ask.numbers[0]);
  const auto receives = session.receives.find(ask.numbers[1]);
  const auto of_receives = ask.values[2] != 0
                               ? session.completions.find(static_cast<std::uint32_t>(ask.values[2]))
                               : completions;
  if (completions == session.completions.end() || of_receives == session.completions.end() ||
      (ask.numbers[1] != 0 && receives == session.receives.end()))
    return EINVAL;
  if (completions->second->of_manager || of_receives->second->of_manager) return EINVAL;
  const bool manages_receives = ask.values[1] != 0;
  if (ask.numbers[1] == 0 ? manages_receives
                          : receives->second->users > 0 &&
                                (manages_receives || receives->second->receives->managed))
    return EINVAL;  // they would be another queue pair's, too
  auto served = std::make_unique<ServedPair>();
  served->session = &session;
  served->entries = ask.numbers[2];
  served->cookie = ask.numbers[3];
  served->ring = map_ring(attached, served->entries, ring_bytes<SendRing>(served->entries));
  if (!served->ring) return errno;
  Receives* queue = ask.numbers[1] != 0 ? receives->second->receives : nullptr;
  served->pair = &engine_.directory().add_pair(*session.client, *completions->second->completions,
                                               queue, served.get());
  served->pair->remote_rights = ask.numbers[4];
  served->pair->receive_completions = of_receives->second->completions;
  served->pair->managed = ask.values[0] != 0;
  if (queue != nullptr) queue->managed = manages_receives;
  ++completions->second->users;
  ++of_receives->second->users;
  if (queue != nullptr) ++receives->second->users;
  reply.numbers[0] = served->pair->number;
  session.pairs.emplace(reply.numbers[0], std::move(served));
  return 0;
}

int Server::make_manager(Session& session, const Message& ask, Attached& attached, Message& reply) {
  const auto completions = session.completions.find(ask.numbers[1]);
  if (completions == session.completions.end() || completions->second->users > 0 ||
      completions->second->completions->counting)
    return EINVAL;
  auto served = std::make_unique<ServedManager>();
  served->entries = ask.numbers[0];
  served->ring = map_ring(attached, served->entries, ring_bytes<ManagementRing>(served->entries));
  if (!served->ring) return errno;
  served->completions = completions->second.get();
  served->completions->of_manager = true;
  served->manager = &engine_.directory().add_manager(*session.client, served.get());
  ++completions->second->users;
  reply.numbers[0] = session.next_number++;
  session.managers.emplace(reply.numbers[0], std::move(served));
  return 0;
}

int Server::drop(Session& session, const Message& ask) {
  const std::uint32_t number = ask.numbers[0];
  if (ask.ask == Ask::drop_pair) return drop_pair(session, number);
  if (ask.ask == Ask::drop_completions) return drop_completions(session, number);
  if (ask.ask == Ask::drop_receives) return drop_receives(session, number);
  if (ask.ask == Ask::drop_manager) return drop_manager(session, number);
  const Region* region = engine_.regions().own(number, session.client->id);
  if (region == nullptr) return EINVAL;
  session.memory_bytes -= region->bytes;
  engine_.regions().remove(number);
  session.mappings.erase(number);
  return 0;
}

int Server::drop_pair(Session& session, std::uint32_t number) {
  const auto found = session.pairs.find(number);
  if (found == session.pairs.end()) return EINVAL;
  Pair& pair = *found->second->pair;
  --static_cast<ServedCompletions*>(pair.completions->host)->users;
  --static_cast<ServedCompletions*>(pair.receive_completions->host)->users;
  if (pair.receives != nullptr) --static_cast<ServedReceives*>(pair.receives->host)->users;
  engine_.remove_pair(pair, "the peer closed the connection", clock_now());
  session.pairs.erase(found);
  return 0;
}

int Server::drop_completions(Session& session, std::uint32_t number) {
  const auto found = session.completions.find(number);
  if (found == session.completions.end() || found->second->users > 0) return EINVAL;
  engine_.remove_completions(*found->second->completions, clock_now());
  session.completions.erase(found);
  return 0;
}

int Server::drop_receives(Session& session, std::uint32_t number) {
  const auto found = session.receives.find(number);
  if (found == session.receives.end() || found->second->users > 0) return EINVAL;
  engine_.directory().remove_receives(*found->second->receives);
  session.receives.erase(found);
  return 0;
}

int Server::drop_manager(Session& session, std::uint32_t number) {
  const auto found = session.managers.find(number);
  if (found == session.managers.end()) return EINVAL;
  --found->second->completions->users;
  engine_.remove_manager(*found->second->manager, clock_now());
  session.managers.erase(found);
  return 0;
}

int Server::handle_client_fault(Client& client, const Message& ask) {
  Session& session = *static_cast<Session*>(client.host);
  if (ask.ask == Ask::end_client) {
    end(session);
  } else if (ask.ask == Ask::limit_memory) {
    session.memory_limit_bytes = std::max(ask.values[0], session.memory_bytes);
  } else {
    client.request_delay_ns = static_cast<Time>(ask.values[0]);
    client.lose_requests = ask.ask == Ask::lose_requests ? ask.numbers[1] : 0;
  }
  return 0;
}

int Server::handle_tester(const Message& ask, Message& reply) {
  if (ask.ask == Ask::list) {
    std::uint32_t index = 0;
    int status = ENOENT;
    engine_.directory().each_pair([&](const Pair& pair) {
      if (index++ != ask.numbers[0]) return;
      status = 0;
      const Pair* peer = pair.peer;
      reply.numbers = {pair.number, peer != nullptr ? peer->number : 0, pair.client->id,
                       peer != nullptr ? peer->client->id : 0, pair.client->node_number};
      reply.values[0] = static_cast<std::uint64_t>(static_cast<Session*>(pair.client->host)->pid);
    });
    return status;
  }
  if (ask.ask == Ask::link_down) {
    engine_.set_link(ask.numbers[0], ask.numbers[1] != 0, clock_now());
    return 0;
  }
  if (ask.ask == Ask::quit) {
    quit_ = true;
    return 0;
  }
  if (Client* client = engine_.directory().find_client(ask.numbers[0]); is_about_client(ask.ask)) {
    return client == nullptr ? ENOENT : handle_client_fault(*client, ask);
  }
  Pair* pair = engine_.directory().find_pair(ask.numbers[0]);
  if (pair == nullptr) return ENOENT;
  if (ask.ask == Ask::fail_next) {
    pair->faults.fail_next = static_cast<CompletionStatus>(ask.numbers[1]);
  } else if (ask.ask == Ask::stall) {
    engine_.stall(*pair, ask.numbers[1] != 0, clock_now());
  } else if (ask.ask == Ask::delay) {
    pair->faults.delay_ns = static_cast<Time>(ask.values[0]);
  } else if (ask.ask == Ask::tear) {
    pair->faults.tear_ns = static_cast<Time>(ask.values[0]);
  } else {
    return EINVAL;
  }
  return 0;
}

}  // namespace overlap::fabric::soft
