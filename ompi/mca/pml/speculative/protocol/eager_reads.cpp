// What pushes and reads have taken, and what is no time of a read.
// SPDX-License-Identifier: BSD-3-Clause
#include "eager_reads.hpp"

namespace overlap::speculative {
namespace {

/// What a receiver takes that this process knows nothing of, in times of the sender's copy: the
/// data is in the sender's cache.
constexpr std::uint64_t receive_copies = 2;
/// A push on its way, and DONE of a read, which comes behind the data and which nobody waits for
/// behind a push. Measured, as the next one, on two cores of one socket.
constexpr std::uint64_t push_ns = 1100;

/// Behind a read the data lies in the receiver's cache, and its sender writes the next message into
/// memory that is not in its own.
constexpr std::uint64_t lost_cache_ns(std::uint64_t bytes) noexcept { return bytes / 28; }

/// Who is in MPI begins soon, and copies 2 GB/s at least, its own messages first. In an exchange of
/// several both wait for each other anyway, and its first read may be slow when there have been
/// none for a while.
constexpr bool is_late(std::uint64_t bytes, bool exchange, std::uint64_t took_ns) noexcept {
  return took_ns > (exchange ? 50'000 : 8000) + bytes / 2;
}

}  // namespace

EagerReads::Choice EagerReads::choose(const Receiver& receiver, const Send& send,
                                      Clock& now_ns) noexcept {
  Replies& replies = receiver.replies;
  Replies::Place place = replies.note_send(send.arrived);
  if (send.kind == Kind::waiting) place = place.of_waiting();
  if (send.kind == Kind::synchronous) place = Replies::Place::of_synchronous();
  if (place.turn == SendTurn::several) {
    // The first one decides for all: the receiver is in time, or late, for all.
    if (place.first) replies.set_reads(exchange_is_read(receiver, place, send, now_ns));
    if (!replies.reads()) return {};
    return {.way = CopyWay::read, .timed = place.first, .paced = place.first, .place = place};
  }
  if (place.turn == SendTurn::ahead || !receiver.pace.may_read()) return {};
  const CopyWay way = ways_.choose(send.bytes);
  const bool sample = ways_.ends_group();
  const bool read = way == CopyWay::read;
  return {.way = way, .timed = sample || read, .sample = sample, .paced = read && place.first};
}

bool EagerReads::exchange_is_read(const Receiver& receiver, const Replies::Place& place,
                                  const Send& send, Clock& now_ns) noexcept {
  if (!receiver.pace.may_read(place.among)) {
    ExchangeWays::begin_pushed(receiver.run);
    return false;
  }
  if (!send.leads) return place.to_reads;
  return exchange_ways_.begin(receiver.run, {.owner = &receiver.replies,
                                             .bytes = send.bytes,
                                             .messages = place.among,
                                             .now_ns = now_ns()});
}

void EagerReads::pushed(std::uint64_t bytes, std::uint64_t took_ns) noexcept {
  const std::uint64_t known_ns = copies_.ns(bytes);
  const std::uint64_t receive_ns = known_ns != 0 ? known_ns : receive_copies * took_ns;
  ways_.took(CopyWay::fragments, bytes, took_ns + receive_ns + push_ns);
}

void EagerReads::read(const Receiver& receiver, const Choice& choice, std::uint64_t bytes,
                      std::uint64_t took_ns) noexcept {
  const bool exchange = choice.place.turn == SendTurn::several && choice.place.first;
  const std::uint64_t sent = exchange ? receiver.replies.end_first(choice.place) : 1;
  const bool late = is_late(sent * bytes, exchange, took_ns);
  if (choice.paced) receiver.pace.end(late);
  if (choice.paced && late) receiver.replies.set_reads(false);
  if (choice.sample && !late) ways_.took(CopyWay::read, bytes, took_ns + lost_cache_ns(bytes));
}

void EagerReads::refused(const Receiver& receiver) noexcept {
  receiver.pace.refuse();
  receiver.replies.set_reads(false);
}

}  // namespace overlap::speculative
