// Identity of streams: eras, incarnations, messages held and dropped.
// SPDX-License-Identifier: BSD-3-Clause
#include "streams.hpp"

#include <algorithm>

namespace overlap::speculative {
namespace {

/// Where a process's incarnations start: not where its neighbours' do, so that a number from one
/// process seldom means anything at another.
std::uint16_t first_incarnation(std::uint64_t process) noexcept {
  return static_cast<std::uint16_t>((process + 1) * 0x9e3779b97f4a7c15U >> 48U);
}

std::uint32_t key_of(std::uint16_t context, std::uint16_t incarnation) noexcept {
  return std::uint32_t{context} << 16U | incarnation;
}

bool speculates(const Communicator& comm, const EraPrefix& prefix) noexcept {
  return comm.speculates && (prefix.flags & flag::speculation_off) == 0;
}

}  // namespace

Streams::Streams(Host& host, std::uint64_t process, bool speculation, HeldBound bound,
                 std::uint32_t first_agreed)
    : host_(host),
      process_(process),
      speculation_(speculation),
      last_incarnation_(first_incarnation(process)),
      first_agreed_(first_agreed),
      held_(bound) {}

Communicator* Streams::find_agreed(std::uint16_t context,
                                   std::uint16_t incarnation) const noexcept {
  const auto found = agreed_.find(key_of(context, incarnation));
  return found != agreed_.end() ? found->second.get() : nullptr;
}

Communicator& Streams::add(const NewCommunicator& fresh) {
  ++era_;
  if (!fresh.agreed_incarnation && ++last_incarnation_ == 0) last_incarnation_ = 1;
  auto made = std::make_unique<Communicator>(fresh.context, fresh.my_rank, fresh.size,
                                             fresh.agreed_incarnation.value_or(last_incarnation_));
  made->incarnation_is_agreed = fresh.agreed_incarnation.has_value();
  made->speculates = fresh.speculates;
  made->host_data = fresh.host_data;
  made->birth = fresh.agreed_by_messages ? era_ : 0;
  made->has_predecessor = existed(fresh.context);
  if (is_agreed(fresh.context))
    return *(agreed_[key_of(fresh.context, made->incarnation)] = std::move(made));
  if (communicators_.size() <= fresh.context) {
    communicators_.resize(fresh.context + 1U);
    existed_.resize(fresh.context + 1U);
  }
  existed_[fresh.context] = true;
  communicators_[fresh.context] = std::move(made);
  return *communicators_[fresh.context];
}

void Streams::remove(Communicator& comm) {
  for (std::size_t rank = 0; rank < comm.size(); ++rank) {
    const Peer* peer = comm.peer_if_known(static_cast<std::int32_t>(rank));
    if (peer == nullptr || peer->bound == unbound_incarnation || comm.incarnation_is_agreed)
      continue;
    tombstones_.bury(
        {comm.context, static_cast<std::uint16_t>(peer->bound), static_cast<std::int32_t>(rank)});
  }
  if (comm.incarnation_is_agreed) ended_agreed_[comm.context] = comm.incarnation;
  (void)take_held(comm);  // a successor cannot exist anywhere before this one is gone here
  if (is_agreed(comm.context))
    agreed_.erase(key_of(comm.context, comm.incarnation));
  else
    communicators_[comm.context].reset();
}

EraPrefix Streams::announce(Peer& peer) noexcept {
  peer.told_era = era_;
  const bool off = !speculation_ || !peer.comm->speculates;
  return {kind_version(Kind::era), off ? flag::speculation_off : std::uint8_t{0}, 0, era_,
          process_};
}

Streams::Admission Streams::admit(const SequencedHeader& head, const EraPrefix* prefix,
                                  const IncomingMessage& whole) {
  if (prefix != nullptr) note_era(prefix->era);
  Communicator* comm = find(head);
  if (comm == nullptr) return without_communicator(head, prefix != nullptr, whole);
  if (is_forward(kind_of(head.kind_version))) return forward_to(*comm, head, prefix, whole);
  // A reverse message names this process's own incarnation: nothing is left to find out.
  if (head.incarnation != comm->incarnation) return {Verdict::stale};
  if (static_cast<std::size_t>(head.source) >= comm->size())
    return {Verdict::fault, nullptr, "a source rank outside the communicator"};
  return {Verdict::pass, &comm->peer(head.source)};
}

bool Streams::has_ended_as_agreed(const SequencedHeader& head) const noexcept {
  const auto ended = ended_agreed_.find(head.context);
  return ended != ended_agreed_.end() && ended->second == head.incarnation;
}

Streams::Admission Streams::without_communicator(const SequencedHeader& head, bool has_prefix,
                                                 const IncomingMessage& whole) {
  const StreamIdentity identity = identity_of(head);
  const bool forward = is_forward(kind_of(head.kind_version));
  if (head.incarnation == 0 || is_agreed(head.context)) {
    // Known to all of its processes, so that messages of either direction may come before it.
    return has_ended_as_agreed(head) ? Admission{Verdict::stale} : hold(identity, whole);
  }
  if (!existed(head.context)) {
    // Nobody can echo an incarnation that has not been given yet.
    return forward ? hold(identity, whole) : Admission{Verdict::stale};
  }
  if (!forward || (!has_prefix && tombstones_.knows(identity))) return {Verdict::stale};
  if (kind_of(head.kind_version) == Kind::stream_end) {
    // Its sender has left a communicator that this process is not in: it left it before, too.
    tombstones_.bury(identity);
    return {Verdict::stale, nullptr, nullptr, take_held(identity).size()};
  }
  return hold(identity, whole);
}

Streams::Admission Streams::forward_to(Communicator& comm, const SequencedHeader& head,
                                       const EraPrefix* prefix, const IncomingMessage& whole) {
  if (static_cast<std::size_t>(head.source) >= comm.size()) {
    if (comm.has_predecessor && head.incarnation != 0) return {Verdict::stale};
    return {Verdict::fault, nullptr, "a source rank outside the communicator"};
  }
  Peer& peer = comm.peer(head.source);
  const StreamIdentity identity = identity_of(head);
  if (peer.bound == head.incarnation) {
    if (prefix != nullptr) peer.speculates = speculates(comm, *prefix);
    return {Verdict::pass, &peer};
  }
  if (peer.bound != unbound_incarnation) return {Verdict::stale};
  if (prefix == nullptr)
    return tombstones_.knows(identity) ? Admission{Verdict::stale} : hold(identity, whole);
  if (is_dead(comm, head.source, *prefix)) {
    tombstones_.bury(identity);
    return {Verdict::stale, nullptr, nullptr, take_held(identity).size()};
  }
  peer.bound = head.incarnation;
  peer.speculates = speculates(comm, *prefix);
  tombstones_.revive(identity);
  const auto others = held_.take([&](const StreamIdentity& held) {
    return held.context == identity.context && held.source == identity.source && held != identity;
  });
  return {Verdict::bound, &peer, nullptr, others.size()};
}

/// Is the sender of a first message a member of a communicator that had this context before?
///
/// A process that is in both has taken part in the agreement on this one after it had freed the
/// other: this process's era was past the era of everything it had sent there. One that is not in
/// this one, at this rank, cannot mean it.
bool Streams::is_dead(const Communicator& comm, std::int32_t source, const EraPrefix& prefix) {
  if (!comm.has_predecessor) return false;
  return prefix.era < comm.birth || prefix.process != host_.process_of(comm, source);
}

Streams::Admission Streams::hold(const StreamIdentity& identity, const IncomingMessage& whole) {
  std::size_t dropped = 0;
  // Where a communicator had this context before and none has it now, a message is nearly always a
  // stale one: those make room.
  while (!held_.fits(whole.bytes.size())) {
    if (!held_.drop_oldest([this](const StreamIdentity& held) {
          return existed(held.context) && find(held.context) == nullptr;
        })) {
      return {Verdict::fault, nullptr,
              "one more message for a communicator that does not exist here yet than can be kept"};
    }
    ++dropped;
  }
  held_.put(identity, whole);
  return {Verdict::held, nullptr, nullptr, dropped};
}

std::vector<HeldMessages::Held> Streams::take_held(const Communicator& comm) {
  if (held_.empty()) return {};
  return held_.take([&](const StreamIdentity& held) {
    return held.context == comm.context &&
           (!is_agreed(comm.context) || held.incarnation == comm.incarnation);
  });
}

std::vector<HeldMessages::Held> Streams::take_held(const StreamIdentity& identity) {
  if (held_.empty()) return {};
  return held_.take([&](const StreamIdentity& held) { return held == identity; });
}

}  // namespace overlap::speculative
