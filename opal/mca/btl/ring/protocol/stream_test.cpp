// Streams: order over both channels, credits, and rings that open and close; every interleaving of
// a small case.
// SPDX-License-Identifier: BSD-3-Clause
#include "stream.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::ring;

namespace {

constexpr std::uint32_t slots = 4;

struct Slots {
  struct alignas(line_bytes) Line {
    std::byte bytes[line_bytes];
  };
  std::array<Line, slots> lines;
  std::byte* data() { return lines[0].bytes; }
};

/// Both ends of one ring, without a network between them.
struct Rings {
  Slots sender;
  Slots receiver;
  SendRing send{sender.data(), slots, line_bytes};
  ReceiveRing receive{receiver.data(), slots, line_bytes};

  void carry(const MessageHeader& header) {
    const SendRing::Sealed sealed = send.seal(header);
    std::memcpy(receiver.data() + std::size_t{sealed.slot} * line_bytes, send.slot(sealed.slot),
                sealed.wire_bytes);
  }
  MessageHeader take(bool free) {
    ReceiveRing::Arrival arrival{};
    REQUIRE(receive.peek(arrival));
    receive.advance();
    if (free) receive.free(arrival.slot);
    return arrival.header;
  }
};

bool is_quiet(const Noted& noted) {
  return noted.fault == nullptr && !noted.send_ring_ended && !noted.receive_ring_ended;
}

}  // namespace

TEST_CASE("Stream: past, in order, duplicate and future messages (P2.5)") {
  Stream from(UINT32_MAX - 1);  // the numbers wrap
  Stream to(UINT32_MAX - 1);
  std::array<MessageHeader, 4> headers;
  for (MessageHeader& header : headers) header = from.next_header(1, 0, Channel::send_receive);
  CHECK(headers[0].sequence == UINT32_MAX - 1);
  CHECK(headers[2].sequence == 0);
  for (std::size_t turn = 0; turn < headers.size(); ++turn) {
    for (std::size_t i = 0; i < headers.size(); ++i) {
      CAPTURE(turn, i);
      CHECK(to.is_next(headers[i]) == (i == turn));
      CHECK(to.is_past(headers[i]) == (i < turn));
      if (i != turn)
        CHECK(to.accept(headers[i], Channel::send_receive).fault ==
              std::string("message out of its turn"));
    }
    CHECK(is_quiet(to.accept(headers[turn], Channel::send_receive)));
  }
}

TEST_CASE("Stream: an unordered message has always its turn and changes nothing (P2.5)") {
  Stream from;
  Stream to;
  const MessageHeader early = Stream::unordered_header(5, 8);
  const MessageHeader first = from.next_header(1, 0, Channel::send_receive);
  CHECK(find_fault(early, 8) == nullptr);
  CHECK(to.is_next(early));
  CHECK_FALSE(to.is_past(early));
  CHECK(is_quiet(to.accept(early, Channel::send_receive)));
  CHECK(to.is_next(first));
  CHECK(is_quiet(to.accept(first, Channel::send_receive)));
  CHECK(to.is_next(early));
  CHECK(to.accept(early, Channel::ring).fault != nullptr);
}

TEST_CASE("Stream: a ring is used while there is credit, and credits ride back (P2.4)") {
  Rings rings;
  Stream sender;
  Stream receiver;
  const std::uint32_t room = payload_max_bytes(line_bytes);
  CHECK(sender.route(0, room) == Channel::send_receive);
  receiver.ring_opened(&rings.receive);
  CHECK(is_quiet(sender.accept(receiver.next_header(0, sizeof(ControlBody), Channel::send_receive),
                               Channel::send_receive)));
  sender.attach_send_ring(&rings.send);
  CHECK(sender.route(room, room) == Channel::ring);
  CHECK(sender.route(room + 1, room) == Channel::send_receive);

  for (std::uint32_t i = 0; i < slots; ++i) {
    REQUIRE(sender.route(0, room) == Channel::ring);
    rings.carry(sender.next_header(1, 0, Channel::ring));
    CHECK(is_quiet(receiver.accept(rings.take(true), Channel::ring)));
    CHECK(receiver.wants_explicit() == (i + 1 >= slots / 2));  // half of the ring is owed
  }
  CHECK(sender.route(0, room) == Channel::send_receive);  // full: falls back, does not wait
  const MessageHeader fallen_back = sender.next_header(1, 0, Channel::send_receive);
  CHECK(is_quiet(receiver.accept(fallen_back, Channel::send_receive)));

  const MessageHeader back = receiver.next_header(1, 0, Channel::send_receive);
  CHECK(back.credits == slots);
  CHECK_FALSE(receiver.wants_explicit());
  CHECK(is_quiet(sender.accept(back, Channel::send_receive)));
  CHECK(rings.send.all_returned());
  CHECK(receiver.next_header(1, 0, Channel::send_receive).credits == 0);
}

TEST_CASE("Stream: a ring is closed when all before has been taken (P2.6)") {
  Rings rings;
  Stream sender;
  Stream receiver;
  receiver.ring_opened(&rings.receive);
  REQUIRE(is_quiet(sender.accept(
      receiver.next_header(0, sizeof(ControlBody), Channel::send_receive), Channel::send_receive)));
  sender.attach_send_ring(&rings.send);
  rings.carry(sender.next_header(1, 0, Channel::ring));

  receiver.close_ring();
  receiver.close_ring();  // asking twice is asking once
  CHECK(receiver.ring_state() == RingState::closing);
  CHECK(receiver.wants_explicit());
  const MessageHeader close = receiver.next_header(1, 0, Channel::send_receive);
  CHECK(close.control == control_bit::close_ring);
  CHECK_FALSE(receiver.wants_explicit());
  const Noted closed = sender.accept(close, Channel::send_receive);
  CHECK(closed.fault == nullptr);
  CHECK(closed.send_ring_ended);
  CHECK(sender.route(0, payload_max_bytes(line_bytes)) == Channel::send_receive);
  CHECK(sender.wants_explicit());

  const MessageHeader last = sender.next_header(1, 0, Channel::send_receive);
  CHECK(last.control == control_bit::ring_closed);
  CHECK_FALSE(receiver.is_next(last));  // the one in the ring comes first
  CHECK(receiver.accept(last, Channel::send_receive).fault != nullptr);
  CHECK(is_quiet(receiver.accept(rings.take(true), Channel::ring)));
  CHECK(rings.receive.credits() == 1);
  CHECK(receiver.next_header(1, 0, Channel::send_receive).credits == 0);  // nobody has a use for it
  CHECK(receiver.is_next(last));
  const Noted ended = receiver.accept(last, Channel::send_receive);
  CHECK(ended.fault == nullptr);
  CHECK(ended.receive_ring_ended);
  CHECK(receiver.ring_state() == RingState::none);
}

TEST_CASE("Stream: faults of the peer are named and change nothing") {
  Rings rings;
  Stream stream;
  MessageHeader header;
  header.tag = 1;
  const auto fault_of = [&](Channel channel) {
    const Noted noted = stream.accept(header, channel);
    CHECK_FALSE(noted.send_ring_ended);
    CHECK_FALSE(noted.receive_ring_ended);
    return std::string(noted.fault != nullptr ? noted.fault : "");
  };
  header.credits = 1;
  CHECK(fault_of(Channel::send_receive) == "more credits than slots are out");
  header.control = control_bit::close_ring;
  CHECK(fault_of(Channel::send_receive) == "more credits than slots are out");
  stream.attach_send_ring(&rings.send);
  CHECK(fault_of(Channel::send_receive) == "more credits than slots are out");
  header.control = 0;
  CHECK(fault_of(Channel::send_receive) == "more credits than slots are out");
  header.credits = 0;
  header.control = control_bit::ring_closed;
  CHECK(fault_of(Channel::send_receive) == "a ring is closed unasked");
  stream.ring_opened(&rings.receive);
  CHECK(fault_of(Channel::send_receive) == "a ring is closed unasked");
  stream.close_ring();
  CHECK(fault_of(Channel::send_receive) == "a ring is closed unasked");  // the peer cannot know yet
  static_cast<void>(stream.next_header(1, 0, Channel::send_receive));
  CHECK(fault_of(Channel::ring) == "a closed ring is used");
  header.sequence = 1;
  CHECK(fault_of(Channel::send_receive) == "message out of its turn");
  header.sequence = 0;
  CHECK(stream.accept(header, Channel::send_receive).receive_ring_ended);
  header.sequence = 1;
  header.control = control_bit::close_ring;
  CHECK(stream.accept(header, Channel::send_receive).send_ring_ended);
  header.sequence = 2;
  CHECK(fault_of(Channel::send_receive) == "a ring is closed twice");
}

// --- Every interleaving ----------------------------------------------------------------

namespace {

/// Two processes that send `messages` messages and open and close their rings `rounds` times,
/// whenever they like. What is under way lies in four queues. States are visited by replaying the
/// choices that lead there.
class Explorer {
 public:
  Explorer(std::array<int, 2> messages, std::array<int, 2> rounds)
      : messages_(messages), rounds_(rounds) {}

  /// @returns  "" or what went wrong
  std::string explore() {
    std::vector<std::vector<int>> open{{}};
    while (!open.empty()) {
      const std::vector<int> path = std::move(open.back());
      open.pop_back();
      World world(*this);
      for (const int choice : path) world.take(choice);
      if (!world.fault.empty()) return world.fault;
      if (!seen_.insert(world.key()).second) continue;
      const std::vector<int> choices = world.choices();
      if (choices.empty()) {
        ++ends;
        const std::string wrong = world.find_wrong_end();
        if (!wrong.empty()) return wrong;
      }
      for (const int choice : choices) {
        open.push_back(path);
        open.back().push_back(choice);
      }
    }
    return "";
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }
  int ends = 0;  ///< states in which nothing is left to do

 private:
  enum Move { send, open_ring, close_ring, say, land, deliver, look, moves };
  struct Side {
    Stream stream;
    std::vector<std::unique_ptr<Rings>>
        rings;  ///< whose receiver this side is, the last one is the present one
    bool ring_is_there = false;
    std::deque<MessageHeader> held;
    std::deque<std::pair<Rings*, MessageHeader>> writes;   ///< to this side
    std::deque<std::pair<MessageHeader, Rings*>> channel;  ///< to this side; Rings: of a ring_open
    Rings* to_peer = nullptr;                              ///< the ring that this side sends into
    std::deque<Rings*> opens_held;
    int sent = 0;
    int received = 0;
    int opened = 0;
  };

  struct World {
    explicit World(const Explorer& options) : options(options) {}
    const Explorer& options;
    std::array<Side, 2> sides;
    std::string fault;

    [[nodiscard]] bool can(int side, int move) {
      const auto i = static_cast<std::size_t>(side);
      Side& me = sides[i];
      switch (move) {
        case send: return me.sent < options.messages_[i];
        case open_ring:
          return me.stream.ring_state() == RingState::none && me.opened < options.rounds_[i];
        case close_ring: return me.stream.ring_state() == RingState::open;
        case say: return me.stream.wants_explicit();
        case land: return !me.writes.empty();
        case deliver: return !me.channel.empty();
        default: {
          ReceiveRing::Arrival arrival{};
          return (me.ring_is_there && me.rings.back()->receive.peek(arrival) &&
                  me.stream.is_next(arrival.header)) ||
                 (!me.held.empty() && me.stream.is_next(me.held.front()));
        }
      }
    }
    [[nodiscard]] std::vector<int> choices() {
      std::vector<int> all;
      for (int side = 0; side < 2; ++side) {
        for (int move = 0; move < moves; ++move) {
          if (can(side, move)) all.push_back(side * moves + move);
        }
      }
      return all;
    }
    void take(int choice) {
      Side& me = sides[static_cast<std::size_t>(choice / moves)];
      Side& other = sides[static_cast<std::size_t>(1 - choice / moves)];
      switch (choice % moves) {
        case send: {
          ++me.sent;
          const Channel channel = me.stream.route(0, payload_max_bytes(line_bytes));
          const MessageHeader header = me.stream.next_header(1, 0, channel);
          if (channel == Channel::ring) {
            other.writes.emplace_back(me.to_peer, header);
          } else {
            other.channel.emplace_back(header, nullptr);
          }
          break;
        }
        case open_ring:
          ++me.opened;
          me.rings.push_back(std::make_unique<Rings>());
          me.ring_is_there = true;
          me.stream.ring_opened(&me.rings.back()->receive);
          other.channel.emplace_back(
              me.stream.next_header(0, sizeof(ControlBody), Channel::send_receive),
              me.rings.back().get());
          break;
        case close_ring: me.stream.close_ring(); break;
        case say:
          other.channel.emplace_back(
              me.stream.next_header(0, sizeof(ControlBody), Channel::send_receive), nullptr);
          break;
        case land:
          if (!me.ring_is_there || me.writes.front().first != me.rings.back().get())
            fault = "a write into a ring that is gone";
          me.writes.front().first->carry(me.writes.front().second);
          me.writes.pop_front();
          break;
        case deliver:
          me.held.push_back(me.channel.front().first);
          me.opens_held.push_back(me.channel.front().second);
          me.channel.pop_front();
          break;
        default: look_once(me); break;
      }
    }
    void look_once(Side& me) {
      ReceiveRing::Arrival arrival{};
      if (me.ring_is_there && me.rings.back()->receive.peek(arrival) &&
          me.stream.is_next(arrival.header)) {
        note(me, me.stream.accept(me.rings.back()->take(true), Channel::ring));
        ++me.received;
        return;
      }
      const MessageHeader header = me.held.front();
      Rings* const opened = me.opens_held.front();
      me.held.pop_front();
      me.opens_held.pop_front();
      note(me, me.stream.accept(header, Channel::send_receive));
      if (header.tag != 0) ++me.received;
      if (opened == nullptr) return;
      if (me.to_peer != nullptr) fault = "two rings at once";
      me.to_peer = opened;
      me.stream.attach_send_ring(&opened->send);
    }
    void note(Side& me, const Noted& noted) {
      if (noted.fault != nullptr) fault = noted.fault;
      if (noted.send_ring_ended) me.to_peer = nullptr;
      if (!noted.receive_ring_ended) return;
      ReceiveRing::Arrival arrival{};
      if (me.rings.back()->receive.peek(arrival))
        fault = "a ring ends before its messages are taken";
      me.ring_is_there = false;
    }
    [[nodiscard]] std::string find_wrong_end() {
      for (std::size_t i = 0; i < 2; ++i) {
        if (sides[i].received != options.messages_[1 - i]) return "a message is lost";
        if (sides[i].stream.ring_state() != RingState::none) return "a ring never ends";
        if (sides[i].to_peer != nullptr) return "somebody sends into a closed ring";
      }
      return "";
    }
    /// All that the future depends on.
    [[nodiscard]] std::string key() {
      std::string text;
      const auto add = [&text](std::uint64_t value) { text += std::to_string(value) + ' '; };
      const auto add_header = [&add](const MessageHeader& header) {
        add(header.sequence), add(header.control), add(header.credits), add(header.tag);
      };
      for (Side& side : sides) {
        add(static_cast<std::uint64_t>(side.sent)), add(static_cast<std::uint64_t>(side.received));
        add(static_cast<std::uint64_t>(side.opened)), add(side.ring_is_there),
            add(side.to_peer != nullptr);
        add(static_cast<std::uint64_t>(side.stream.ring_state())),
            add(side.stream.wants_explicit());
        if (side.to_peer != nullptr) add(side.to_peer->send.free_slots());
        if (side.ring_is_there) {
          ReceiveRing& ring = side.rings.back()->receive;
          ReceiveRing::Arrival arrival{};
          add(ring.head()), add(ring.credits()), add(ring.peek(arrival));
        }
        Stream copy = side.stream;  // what its next message would carry, and which number it has
        copy.attach_receive_ring(nullptr);  // the credits are the real one's
        add_header(copy.next_header(0, 0, Channel::send_receive));
        for (const auto& [ring, header] : side.writes) add_header(header);
        text += '|';
        for (std::size_t i = 0; i < side.held.size(); ++i)
          add_header(side.held[i]), add(side.opens_held[i] != nullptr);
        text += '|';
        for (const auto& [header, ring] : side.channel) add_header(header), add(ring != nullptr);
        text += '\n';
      }
      return text;
    }
  };

  std::array<int, 2> messages_;  ///< of each process
  std::array<int, 2> rounds_;
  std::set<std::string> seen_;
};

}  // namespace

TEST_CASE("Stream: rings opened and closed by both sides, every interleaving (P2.5, P2.6)") {
  struct Case {
    std::array<int, 2> messages;
    std::array<int, 2> rounds;
  };
  for (const Case& one : {Case{{1, 1}, {1, 1}}, Case{{0, 0}, {2, 2}}, Case{{3, 0}, {0, 2}},
                          Case{{2, 1}, {0, 2}}, Case{{2, 1}, {1, 0}}}) {
    CAPTURE(one.messages, one.rounds);
    Explorer explorer(one.messages, one.rounds);
    REQUIRE(explorer.explore() == "");
    CHECK(explorer.ends > 0);
    CHECK(explorer.states() > 1000);
    std::printf("explored: %zu states, %d ends\n", explorer.states(), explorer.ends);
  }
}
