// Which messages that could go eagerly are read, and who is not waited for.
// SPDX-License-Identifier: BSD-3-Clause
#include "eager_reads.hpp"

#include <algorithm>
#include <array>

#include "test/support/catch.hpp"

using namespace overlap;
using namespace overlap::speculative;

namespace {

constexpr std::uint64_t bytes = 16384;
std::uint64_t no_clock() noexcept { return 0; }
/// Five groups of four each way.
constexpr int first_messages = 40;

/// What a message takes, in ns.
struct Machine {
  std::uint64_t read_ns;
  std::uint64_t push_ns;  ///< of its own copy only
};
constexpr Machine reads_well{2000, 1300};
constexpr Machine pushes_well{6000, 1300};
constexpr Machine late{2'000'000, 1300};

/// A process that sends one message after the other, each when the last one has ended.
struct Sender {
  EagerReads reads;
  std::array<ReadPace, 4> paces;
  std::array<Replies, 4> replies;
  ExchangeRun run;
  std::uint32_t arrived = 0;  ///< answers, of any peer

  EagerReads::Receiver receiver(std::size_t peer = 0) { return {paces[peer], run, replies[peer]}; }
  int timed = 0;

  bool send(const Machine& machine, std::uint64_t size_bytes = bytes, std::size_t peer = 0) {
    const EagerReads::Send message{.bytes = size_bytes, .arrived = ++arrived};
    const EagerReads::Choice choice = reads.choose(receiver(peer), message, no_clock);
    timed += choice.timed ? 1 : 0;
    CHECK((choice.timed || !choice.sample));
    if (choice.way != CopyWay::read) {
      if (choice.sample) reads.pushed(size_bytes, machine.push_ns);
      return false;
    }
    CHECK(choice.paced);
    reads.read(receiver(peer), choice, size_bytes, machine.read_ns);
    return true;
  }
  int read_of(int messages, const Machine& machine, std::uint64_t size_bytes = bytes) {
    int read = 0;
    for (int i = 0; i < messages; ++i) read += send(machine, size_bytes) ? 1 : 0;
    return read;
  }
};

}  // namespace

TEST_CASE("EagerReads: messages go the way that has been faster") {
  Sender sender;
  SECTION("read") {
    sender.read_of(first_messages, reads_well);
    CHECK(sender.read_of(1000, reads_well) >= 980);
  }
  SECTION("pushed") {
    sender.read_of(first_messages, pushes_well);
    const int read = sender.read_of(1000, pushes_well);
    CHECK(read <= 20);
    CHECK(read > 0);  // tried again now and then
  }
}

TEST_CASE("EagerReads: a push takes both copies and its way, and nobody waits for DONE behind it") {
  Sender sender;
  SECTION("a receiver whose copies are not known takes twice the sender's") {
    CHECK(sender.read_of(first_messages, {4100, 1300}) == first_messages / 2);
    CHECK(sender.read_of(200, {4100, 1300}) >= 190);
    CHECK(sender.read_of(600, {4700, 1300}) <= 40);
  }
  SECTION("small ones") {
    CHECK(sender.read_of(first_messages, {900, 10}, 4096) == first_messages / 2);
    CHECK(sender.read_of(200, {900, 10}, 4096) >= 190);
  }
  SECTION("it takes what this process takes") {
    for (int i = 0; i < 10; ++i) sender.reads.copied(bytes, 4600);
    sender.read_of(first_messages, {5700, 1300});
    CHECK(sender.read_of(200, {5700, 1300}) >= 180);
    for (int i = 0; i < 30; ++i) sender.reads.copied(bytes, 1000);
    sender.read_of(600, {5700, 1300});
    CHECK(sender.read_of(600, {5700, 1300}) <= 60);
  }
  SECTION("and nothing is known of other sizes") {
    sender.reads.copied(bytes, 100'000);
    CHECK(sender.read_of(first_messages, {2100, 400}, bytes / 2) == first_messages / 2);
    CHECK(sender.read_of(200, {2100, 400}, bytes / 2) <= 20);
  }
}

TEST_CASE("EagerReads: the kernel's way is slow for the first dozen messages, and not misjudged") {
  Sender sender;
  int reads = 0;
  int read = 0;
  for (int i = 0; i < 1000; ++i) {
    const bool was_read = sender.send({std::uint64_t{reads < 12 ? 13000U : 2000U}, 1300});
    reads += was_read ? 1 : 0;
    read += i >= first_messages && was_read ? 1 : 0;
  }
  CHECK(read >= 900);
}

TEST_CASE("EagerReads: each size has its own way") {
  Sender sender;
  for (int i = 0; i < 60; ++i) {
    sender.send(pushes_well, 8191);
    sender.send(reads_well, 8192);
    sender.send(pushes_well, 32768);
  }
  CHECK(sender.read_of(15, pushes_well, 8191) <= 1);
  CHECK(sender.read_of(15, reads_well, 8192) >= 14);
  CHECK(sender.read_of(15, pushes_well, 32768) <= 1);
}

TEST_CASE("EagerReads: data that is written from now on is noticed") {
  Sender sender;
  sender.read_of(300, reads_well);
  sender.read_of(60, pushes_well);
  CHECK(sender.read_of(300, pushes_well) <= 16);
}

TEST_CASE("EagerReads: each read is timed, and of pushes one in four") {
  Sender sender;
  const int read = sender.read_of(1000, reads_well);
  CHECK(read <= sender.timed);
  sender.timed = 0;
  sender.read_of(1000, pushes_well);
  CHECK(sender.timed <= 350);
}

TEST_CASE("EagerReads: a peer that computes is waited for less and less often") {
  Sender sender;
  CHECK(sender.read_of(9, late) == 1);
  CHECK(sender.read_of(17, late) == 1);
  CHECK(sender.read_of(2000, late) <= 7);
}

TEST_CASE("EagerReads: who is late now and then is not waited for each time, wherever that is") {
  constexpr int rounds = 20000;
  for (const std::size_t peers : {1U, 4U}) {
    for (std::size_t late_one = 0; late_one < 4; ++late_one) {
      Sender sender;
      int waited = 0;
      for (int round = 0; round < rounds; ++round) {
        for (std::size_t message = 0; message < 4; ++message) {
          const bool is_late = message == late_one;
          const bool read = sender.send(is_late ? late : reads_well, bytes, message % peers);
          waited += is_late && read ? 1 : 0;
        }
      }
      CAPTURE(peers, late_one);
      CHECK(waited <= rounds / 200);
    }
  }
}

TEST_CASE("EagerReads: a late receiver says nothing of what reads take") {
  Sender sender;
  sender.read_of(300, reads_well);
  for (int i = 0; i < 3000; ++i) sender.send(late, bytes, 1);
  CHECK(sender.read_of(100, reads_well) >= 90);
}

TEST_CASE("EagerReads: a way that has never been seen to end is not kept to") {
  EagerReads reads;
  ReadPace pace;
  ExchangeRun run;
  Replies replies;
  int read = 0;
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    const EagerReads::Choice choice =
        reads.choose({pace, run, replies}, {.bytes = bytes, .arrived = i}, no_clock);
    read += choice.way == CopyWay::read ? 1 : 0;
  }
  CHECK(read <= 60);
}

TEST_CASE("EagerReads: a bad while is forgotten, although reads are slow for their first dozen") {
  Sender sender;
  sender.read_of(400, reads_well);
  sender.read_of(200, {14000, 1300});
  int in_a_row = 0;
  int read = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t read_ns = in_a_row < 12 ? 12000 : 2000;
    const bool was_read = sender.send({read_ns, 1300});
    in_a_row = was_read ? in_a_row + 1 : std::max(0, in_a_row - 1);
    if (i >= 2000) read += was_read ? 1 : 0;
  }
  CHECK(read >= 1900);
}

TEST_CASE("EagerReads: sends behind sends are pushed, and neither timed nor counted") {
  Sender sender;
  sender.read_of(300, reads_well);
  for (int i = 0; i < 100; ++i) {
    // Nothing has come since the last one.
    const EagerReads::Send ahead{.bytes = bytes, .arrived = sender.arrived};
    const EagerReads::Choice choice = sender.reads.choose(sender.receiver(), ahead, no_clock);
    CHECK(choice.way == CopyWay::fragments);
    CHECK_FALSE(choice.timed);
  }
  CHECK(sender.read_of(100, reads_well) >= 90);
}

TEST_CASE("EagerReads: a synchronous send that waits for its receive says nothing") {
  Sender sender;
  sender.read_of(300, reads_well);
  for (int i = 0; i < 3000; ++i) {
    const EagerReads::Send send{
        .bytes = bytes, .arrived = ++sender.arrived, .kind = EagerReads::Kind::synchronous};
    const EagerReads::Choice choice = sender.reads.choose(sender.receiver(), send, no_clock);
    if (choice.way == CopyWay::read)
      sender.reads.read(sender.receiver(), choice, bytes, late.read_ns);
    else if (choice.sample)
      sender.reads.pushed(bytes, reads_well.push_ns);
  }
  CHECK(sender.read_of(100, reads_well) >= 90);
}

TEST_CASE("EagerReads: a way that is slow when it has not been used for a while is not misjudged") {
  Sender sender;
  bool last_read = false;
  int read = 0;
  for (int i = 0; i < 2000; ++i) {
    last_read = sender.send({std::uint64_t{last_read ? 2000U : 8000U}, 1300});
    read += last_read ? 1 : 0;
  }
  CHECK(read >= 1950);
}

namespace {

std::uint64_t exchange_now_ns = 1;
std::uint64_t exchange_clock() noexcept { return exchange_now_ns; }

/// A process that sends several at a time to one that sends as many.
struct Exchanger {
  static constexpr std::uint8_t several = 16;
  static constexpr std::uint64_t push_ns = 40'000;

  EagerReads reads;
  ReadPace pace;
  ExchangeRun run;
  Replies replies;
  bool leads = true;
  bool is_read_from = false;  ///< of a follower: what it has got
  std::uint32_t arrived = 0;
  std::uint64_t delay_ns = 0;  ///< of its receiver

  EagerReads::Receiver receiver() { return {pace, run, replies}; }
  void arrive(std::uint32_t messages, std::uint64_t size_bytes = bytes) {
    arrived += messages;
    if (size_bytes < Replies::message_min_bytes) return;
    for (std::uint32_t i = 0; i < messages; ++i) replies.note_message(is_read_from);
  }
  EagerReads::Choice send(EagerReads::Kind kind = EagerReads::Kind::plain) {
    const EagerReads::Send message{
        .bytes = bytes, .arrived = arrived, .kind = kind, .leads = leads};
    return reads.choose(receiver(), message, exchange_clock);
  }
  /// @returns  messages that were read, none or all
  int round(std::uint64_t read_ns) {
    arrive(several);
    std::array<EagerReads::Choice, several> choices;
    for (EagerReads::Choice& choice : choices) choice = send();
    int read = 0;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      CHECK_FALSE(choices[i].sample);
      if (choices[i].way != CopyWay::read) continue;
      ++read;
      CHECK(choices[i].timed == (i == 0));
      CHECK(choices[i].paced == (i == 0));
      reads.read(receiver(), choices[i], bytes, read_ns + delay_ns);
    }
    CHECK((read == 0 || read == several));
    exchange_now_ns += read > 0 ? read_ns + delay_ns : push_ns;
    return read;
  }
  int rounds_read(int rounds, std::uint64_t read_ns) {
    int read = 0;
    for (int i = 0; i < rounds; ++i) read += round(read_ns) > 0 ? 1 : 0;
    return read;
  }
};

}  // namespace

TEST_CASE("EagerReads: several at a time all go the way of exchanges") {
  Exchanger exchanger;
  exchanger.rounds_read(300, 30'000);
  CHECK(exchanger.rounds_read(1000, 30'000) >= 950);
  exchanger.rounds_read(300, 60'000);
  CHECK(exchanger.rounds_read(1000, 60'000) <= 100);
}

TEST_CASE("EagerReads: who does not lead sends the way that it was sent to") {
  Exchanger follower;
  follower.leads = false;
  CHECK(follower.rounds_read(100, 30'000) == 0);
  follower.is_read_from = true;
  CHECK(follower.rounds_read(100, 60'000) == 100);
}

TEST_CASE("EagerReads: several to a process that computes are waited for less and less often") {
  Exchanger exchanger;
  exchanger.leads = GENERATE(true, false);
  exchanger.is_read_from = true;
  exchanger.rounds_read(100, 30'000);
  exchanger.delay_ns = 2'000'000;
  const int waited = exchanger.rounds_read(4000, 30'000);
  CHECK(waited <= 75);  // 1024 messages are 64 exchanges
  // What leads tries both ways, and only reads are late.
  CHECK(waited >= (exchanger.leads ? 5 : 60));
}

TEST_CASE("EagerReads: an exchange takes as long as all of its messages, and nobody is late") {
  Exchanger exchanger;
  exchanger.leads = false;
  exchanger.is_read_from = true;
  CHECK(exchanger.rounds_read(100, 170'000) == 100);
}

TEST_CASE("EagerReads: a tenth of a millisecond for two is late") {
  Exchanger exchanger;
  exchanger.leads = false;
  exchanger.is_read_from = true;
  int read = 0;
  for (int i = 0; i < 1000; ++i) {
    exchanger.arrive(2);
    const EagerReads::Choice first = exchanger.send();
    static_cast<void>(exchanger.send());
    if (first.way != CopyWay::read) continue;
    ++read;
    exchanger.reads.read(exchanger.receiver(), first, bytes, i < 100 ? 50'000 : 100'000);
  }
  CHECK(read >= 100);
  CHECK(read <= 110);
}

TEST_CASE("EagerReads: who sends one after the other is not read from behind a stream") {
  Exchanger exchanger;
  exchanger.leads = false;
  exchanger.is_read_from = true;
  exchanger.arrive(200);
  const std::uint64_t took_ns = GENERATE(30'000, 600'000);
  int read = 0;
  for (int i = 0; i < 100; ++i) {
    const EagerReads::Choice choice = exchanger.send();
    if (choice.way != CopyWay::read) continue;
    ++read;
    exchanger.reads.read(exchanger.receiver(), choice, bytes, took_ns);
  }
  CHECK(read == 1);
  // One message late by that is late, whatever it may have been among.
  exchanger.arrive(1);
  CHECK((exchanger.send().way == CopyWay::read) == (took_ns < 100'000));
}

TEST_CASE("EagerReads: behind a late read the rest of its exchange is pushed") {
  Exchanger exchanger;
  exchanger.leads = false;
  exchanger.is_read_from = true;
  static_cast<void>(exchanger.rounds_read(10, 30'000));
  exchanger.arrive(Exchanger::several);
  const EagerReads::Choice first = exchanger.send();
  REQUIRE(first.way == CopyWay::read);
  CHECK(exchanger.send().way == CopyWay::read);
  exchanger.reads.read(exchanger.receiver(), first, bytes, 2'000'000);
  for (int i = 2; i < Exchanger::several; ++i) CHECK(exchanger.send().way == CopyWay::fragments);
}

TEST_CASE("EagerReads: behind a late read of an earlier exchange the rest is pushed, too") {
  Exchanger exchanger;
  exchanger.leads = false;
  exchanger.is_read_from = true;
  exchanger.arrive(Exchanger::several);
  const EagerReads::Choice earlier = exchanger.send();
  static_cast<void>(exchanger.send());
  exchanger.arrive(Exchanger::several);
  REQUIRE(exchanger.send().way == CopyWay::read);
  exchanger.reads.read(exchanger.receiver(), earlier, bytes, 2'000'000);
  CHECK(exchanger.send().way == CopyWay::fragments);
}

TEST_CASE(
    "EagerReads: behind a refused read the rest of its exchange is pushed, and the next ones") {
  Exchanger exchanger;
  exchanger.leads = false;
  exchanger.is_read_from = true;
  static_cast<void>(exchanger.rounds_read(10, 30'000));
  exchanger.arrive(Exchanger::several);
  REQUIRE(exchanger.send().way == CopyWay::read);
  EagerReads::refused(exchanger.receiver());
  CHECK(exchanger.send().way == CopyWay::fragments);
  CHECK(exchanger.rounds_read(60, 30'000) == 0);
}

TEST_CASE("EagerReads: behind a first send that waits nothing goes an earlier exchange's way") {
  const auto kind = GENERATE(EagerReads::Kind::waiting, EagerReads::Kind::synchronous);
  Exchanger exchanger;
  exchanger.leads = false;
  exchanger.is_read_from = true;
  static_cast<void>(exchanger.rounds_read(10, 30'000));
  exchanger.arrive(4);
  static_cast<void>(exchanger.send(kind));
  CHECK(exchanger.send().way == CopyWay::fragments);
  CHECK(exchanger.send().way == CopyWay::fragments);
}

TEST_CASE("EagerReads: answers to small messages are alone, whoever leads") {
  Exchanger exchanger;
  exchanger.leads = GENERATE(true, false);
  int read = 0;
  for (int i = 0; i < 400; ++i) {
    exchanger.arrive(2, 8);
    const EagerReads::Choice choice = exchanger.send();
    if (choice.way == CopyWay::read)
      exchanger.reads.read(exchanger.receiver(), choice, bytes, 2000);
    else if (choice.sample)
      exchanger.reads.pushed(bytes, 1300);
    read += i >= first_messages && choice.way == CopyWay::read ? 1 : 0;
  }
  CHECK(read >= 340);
}
