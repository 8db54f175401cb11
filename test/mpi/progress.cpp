// P4: large messages move while their processes compute; nobody calls MPI in between.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

#include <sys/wait.h>

#include <filesystem>

using namespace overlap::test;

namespace {

// More than two sockets take in while nobody reads.
constexpr int bytes = 24 << 20;
constexpr int tag = 5;

/// Look at a message until it is there, byte by byte; its end first, which mostly comes last.
bool watch_message(const Bytes& data, std::uint64_t seed) {
  const Bytes expected = pattern(data.size(), seed);
  return watch_until([&] {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // somebody else writes it
    return data.back() == expected.back() && data == expected;
  });
}

/// One message, whose sides start in an order that `early` sets; then both compute until it is
/// there.
enum class First : std::uint8_t { sender, receiver };
struct Exchange {
  First first = First::receiver;
  bool any_source = false;
  bool synchronous = false;
  MPI_Comm comm = MPI_COMM_WORLD;
  int peer = partner();  ///< its rank there
  std::size_t bytes = ::bytes;
};

void exchange(Steps& steps, int& step, const Exchange& how, std::uint64_t seed) {
  const std::size_t bytes = how.bytes;
  const auto count = static_cast<int>(bytes);
  Bytes data = sender() ? pattern(bytes, seed) : empty(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  const auto start = [&] {
    if (receiver()) {
      MPI_Irecv(data.data(), count, MPI_BYTE, how.any_source ? MPI_ANY_SOURCE : how.peer, tag,
                how.comm, &request);
    } else {
      (how.synchronous ? MPI_Issend : MPI_Isend)(data.data(), count, MPI_BYTE, how.peer, tag,
                                                 how.comm, &request);
    }
  };
  const bool early = sender() == (how.first == First::sender);
  if (early) start();
  { const OutsideMpi turn(steps, step); }
  if (!early) start();
  {
    const OutsideMpi computing(steps, step);
    if (receiver() && interrupts()) CHECK(watch_message(data, seed));
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (receiver()) CHECK(first_wrong(data.data(), bytes, seed) == bytes);
}

}  // namespace

TEST_CASE("P4.3: a message arrives while both sides compute") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Counters counters;
  Steps steps;
  int step = 0;
  for (std::uint64_t i = 0; i < 3; ++i) {
    exchange(steps, step, {First::receiver}, 10 + i);
    exchange(steps, step, {First::sender}, 20 + i);
    exchange(steps, step, {First::receiver, true}, 30 + i);
    exchange(steps, step, {First::sender, true}, 40 + i);
    exchange(steps, step, {First::receiver, false, true}, 50 + i);
  }
  CHECK((counters["interrupt_turns"] > 0) == interrupts());
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("P4.12: nothing waits, nobody is woken") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  int step = 0;
  // Small messages, waited for at once, and a pause outside MPI.
  MPI_Barrier(MPI_COMM_WORLD);
  Counters counters;
  for (int i = 0; i < 200; ++i) scene.meet();
  { const OutsideMpi turn(steps, step); }
  CHECK(counters["interrupt_rings"] == 0);
  CHECK(counters["interrupt_turns"] == 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("P4.12: switched off and on at run time") {
  TWO_RANKS_WITH_COUNTERS();
  if (!interrupts()) return;
  Scene scene;
  Counters counters;
  int index = -1;
  REQUIRE(MPI_T_cvar_get_index("common_overlap_progress", &index) == MPI_SUCCESS);
  MPI_T_cvar_handle handle{};
  int count = 0;
  REQUIRE(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS);
  const auto set = [&handle](int value) {
    REQUIRE(MPI_T_cvar_write(handle, &value) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
  };
  int before = -1;
  REQUIRE(MPI_T_cvar_read(handle, &before) == MPI_SUCCESS);
  Steps steps;
  int step = 0;
  set(0);
  const auto turns = counters["interrupt_turns"];
  {
    Bytes data = sender() ? pattern(bytes, 3) : empty(bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    if (receiver())
      MPI_Irecv(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &request);
    else
      MPI_Isend(data.data(), bytes, MPI_BYTE, partner(), tag, MPI_COMM_WORLD, &request);
    {
      const OutsideMpi computing(steps, step);
      compute(microseconds(20000));
      // A write through shared memory is the sender's call.
      if (receiver() && over_tcp()) CHECK(first_wrong(data.data(), bytes, 3) < bytes);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (receiver()) CHECK(first_wrong(data.data(), bytes, 3) == bytes);
  }
  CHECK(counters["interrupt_turns"] == turns);
  set(before);
  exchange(steps, step, {First::receiver}, 60);
  MPI_T_cvar_handle_free(&handle);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("P4.3: more messages than a BTL has room for arrive while both sides compute") {
  TWO_RANKS_WITH_COUNTERS();
  if (!interrupts()) return;
  constexpr int count = 150, each_bytes = 128 << 10;
  Scene scene;
  Steps steps;
  int step = 0;
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    const auto seed = [turn](std::size_t i) { return 300 + 200 * turn + i; };
    std::vector<Bytes> data;
    std::vector<MPI_Request> requests(count);
    for (std::size_t i = 0; i < count; ++i)
      data.push_back(sender() ? pattern(each_bytes, seed(i)) : empty(each_bytes));
    const auto start_all = [&] {
      for (int i = 0; i < count; ++i) {
        if (receiver())
          MPI_Irecv(data[i].data(), each_bytes, MPI_BYTE, partner(), i, scene.comm, &requests[i]);
        else
          MPI_Isend(data[i].data(), each_bytes, MPI_BYTE, partner(), i, scene.comm, &requests[i]);
      }
    };
    if (receiver()) start_all();
    { const OutsideMpi receiver_computes(steps, step); }
    if (sender()) start_all();
    {
      const OutsideMpi computing(steps, step);
      for (std::size_t i = 0; i < count && receiver(); ++i)
        REQUIRE(watch_message(data[i], seed(i)));
    }
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
  }
}

TEST_CASE("P4.3: both directions at once, several messages, many sizes") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  int step = 0;
  const std::vector<std::size_t> sizes{65'537, 131'072, 262'145, 1 << 20, (8 << 20) + 3};
  std::vector<Bytes> in, out;
  std::vector<MPI_Request> requests;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    in.push_back(empty(sizes[i]));
    out.push_back(pattern(sizes[i], 100 + i + 10 * static_cast<std::size_t>(rank())));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int n = static_cast<int>(sizes[i]);
    MPI_Request& receive = requests.emplace_back();
    MPI_Irecv(in[i].data(), n, MPI_BYTE, partner(), static_cast<int>(i), scene.comm, &receive);
    MPI_Request& send = requests.emplace_back();
    MPI_Isend(out[i].data(), n, MPI_BYTE, partner(), static_cast<int>(i), scene.comm, &send);
  }
  const auto seed = [](std::size_t i) {
    return 100 + i + 10 * static_cast<std::size_t>(partner());
  };
  {
    const OutsideMpi computing(steps, step);
    for (std::size_t i = 0; i < sizes.size() && interrupts(); ++i)
      CHECK(watch_message(in[i], seed(i)));
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    CHECK(first_wrong(in[i].data(), sizes[i], seed(i)) == sizes[i]);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("P4.3: from a process that this one has never talked to") {
  if (size() != 4) return;
  constexpr int from = 2, to = 1;  // collectives connect these two to others only
  Steps steps;
  Bytes data = rank() == from ? pattern(bytes, 80) : empty(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank() == to)
    MPI_Irecv(data.data(), bytes, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == from) {
    MPI_Isend(data.data(), bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    poke(microseconds(20000));  // until the connection is there
    steps.reach(1);
  }
  if (rank() == to) {
    steps.wait_for(1);
    compute(microseconds(20000));  // long enough for the announcement; right or not without it
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank() == to) CHECK(first_wrong(data.data(), bytes, 80) == bytes);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("P4.3: again and again, between threads that sleep already") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  int step = 0;
  constexpr int length = 1 << 20;
  for (std::uint64_t i = 0; i < 12; ++i) {
    Bytes data = sender() ? pattern(length, 300 + i) : empty(length);
    MPI_Request request = MPI_REQUEST_NULL;
    if (receiver())
      MPI_Irecv(data.data(), length, MPI_BYTE, MPI_ANY_SOURCE, tag, scene.comm, &request);
    { const OutsideMpi turn(steps, step); }
    compute(microseconds(3000));  // the receiver's thread has looked, and sleeps
    if (sender()) MPI_Isend(data.data(), length, MPI_BYTE, partner(), tag, scene.comm, &request);
    {
      const OutsideMpi computing(steps, step);
      if (receiver() && interrupts()) CHECK(watch_message(data, 300 + i));
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

TEST_CASE("P4.3: an announcement behind many small messages is seen") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  int step = 0;
  constexpr int length = 1 << 20;
  // A poll takes 16 completions; a ring has 100 slots.
  for (const int before : {15, 16, 17, 33, 100, 132, 140}) {
    if (before > 100 && !over_ring()) continue;  // shared memory has room for so many
    const auto seed = static_cast<std::uint64_t>(before);
    Bytes data = sender() ? pattern(length, seed) : empty(length);
    MPI_Request request = MPI_REQUEST_NULL;
    if (receiver())
      MPI_Irecv(data.data(), length, MPI_BYTE, MPI_ANY_SOURCE, tag, scene.comm, &request);
    { const OutsideMpi turn(steps, step); }
    if (sender()) {
      for (int i = 0; i < before; ++i) MPI_Send(&i, 1, MPI_INT, partner(), tag + 1, scene.comm);
      MPI_Isend(data.data(), length, MPI_BYTE, partner(), tag, scene.comm, &request);
    }
    {
      const OutsideMpi computing(steps, step);
      if (receiver() && interrupts()) CHECK(watch_message(data, seed));
    }
    for (int i = 0, got = 0; receiver() && i < before; ++i) {
      MPI_Recv(&got, 1, MPI_INT, partner(), tag + 1, scene.comm, MPI_STATUS_IGNORE);
      CHECK(got == i);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

TEST_CASE("P4.3: messages arrive in computations between short waits") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  constexpr int length = 1 << 18;
  constexpr int rounds = 60;
  constexpr std::size_t messages = 2 * rounds;
  std::vector<Bytes> data;
  std::vector<MPI_Request> requests(messages);
  for (std::uint64_t i = 0; i < messages; ++i)
    data.push_back(sender() ? pattern(length, 900 + i) : empty(length));
  for (std::size_t i = 0; receiver() && i < messages; ++i)
    MPI_Irecv(data[i].data(), length, MPI_BYTE, partner(), tag, scene.comm, &requests[i]);
  MPI_Barrier(scene.comm);
  const auto send = [&](std::size_t i) {
    MPI_Isend(data[i].data(), length, MPI_BYTE, partner(), tag, scene.comm, &requests[i]);
  };
  int served = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto waited = static_cast<std::size_t>(2 * i);
    const std::size_t computed = waited + 1;
    int word = 0;
    if (receiver()) {
      // A blocking call: nothing rings behind it. The first message finds it inside.
      MPI_Send(&word, 1, MPI_INT, partner(), tag + 1, scene.comm);
      MPI_Recv(&word, 1, MPI_INT, partner(), tag + 2, scene.comm, MPI_STATUS_IGNORE);
      steps.reach(2 * i + 1);
      compute_busily(microseconds(4000));
      served += data[computed] == pattern(length, 900 + computed) ? 1 : 0;
      steps.reach(2 * i + 2);
    } else if (sender()) {
      MPI_Recv(&word, 1, MPI_INT, partner(), tag + 1, scene.comm, MPI_STATUS_IGNORE);
      send(waited);
      compute_busily(microseconds(300));
      MPI_Send(&word, 1, MPI_INT, partner(), tag + 2, scene.comm);
      steps.wait_for(2 * i + 1);
      send(computed);
      while (steps.now() < 2 * i + 2)
        MPI_Iprobe(partner(), tag + 3, scene.comm, &word, MPI_STATUS_IGNORE);
    }
  }
  // A thread that comes too late in one computation is in time for another.
  if (receiver() && interrupts()) CHECK(served >= rounds / 8);
  MPI_Waitall(static_cast<int>(messages), requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; receiver() && i < messages; ++i)
    CHECK(first_wrong(data[i].data(), length, 900 + i) == length);
}

TEST_CASE("P4.3: more messages arrive than queues have room for at once") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  int step = 0;
  constexpr int length = 1 << 17;
  constexpr std::uint64_t messages = 400;  // a queue pair has room for 128 gets and their DONEs
  std::vector<Bytes> data;
  std::vector<MPI_Request> requests(messages);
  for (std::uint64_t i = 0; i < messages; ++i)
    data.push_back(sender() ? pattern(length, 500 + i) : empty(length));
  for (std::size_t i = 0; receiver() && i < messages; ++i)
    MPI_Irecv(data[i].data(), length, MPI_BYTE, MPI_ANY_SOURCE, tag, scene.comm, &requests[i]);
  { const OutsideMpi turn(steps, step); }
  for (std::size_t i = 0; sender() && i < messages; ++i)
    MPI_Isend(data[i].data(), length, MPI_BYTE, partner(), tag, scene.comm, &requests[i]);
  {
    const OutsideMpi computing(steps, step);
    bool all = true;
    // Through shared memory so many may stop until the next MPI call.
    const bool watched = receiver() && interrupts() && delayed();
    for (std::size_t i = 0; watched && all && i < messages; ++i)
      all = watch_message(data[i], 500 + i);
    CHECK(all);
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

TEST_CASE("P4.3: data with gaps moves in fragments while both sides compute") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  int step = 0;
  constexpr int blocks = 1024, block_bytes = 1024;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(blocks, block_bytes, 2 * block_bytes, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  constexpr std::size_t span = std::size_t{2} * blocks * block_bytes;
  Bytes data = sender() ? pattern(span, 400) : empty(span);
  Bytes expected = empty(span);
  const Bytes all = pattern(span, 400);
  for (std::size_t i = 0; i < span; ++i)
    if (i / block_bytes % 2 == 0) expected[i] = all[i];
  MPI_Request request = MPI_REQUEST_NULL;
  if (receiver())
    MPI_Irecv(data.data(), 1, type, partner(), tag, scene.comm, &request);
  else
    MPI_Isend(data.data(), 1, type, partner(), tag, scene.comm, &request);
  {
    const OutsideMpi computing(steps, step);
    // Through shared memory their flow may stop until the next MPI call.
    if (receiver() && interrupts() && delayed())
      CHECK(watch_until([&] {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return data == expected;
      }));
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (receiver()) CHECK(data == expected);
  MPI_Type_free(&type);
}

TEST_CASE("P4.3: the message of a matched probe arrives while both sides compute") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  int step = 0;
  constexpr int small = 600'000;  // one pass
  for (const int length : {small, bytes}) {
    const auto seed = static_cast<std::uint64_t>(length);
    Bytes data = sender() ? pattern(static_cast<std::size_t>(length), seed)
                          : empty(static_cast<std::size_t>(length));
    MPI_Request request = MPI_REQUEST_NULL;
    if (sender()) {
      MPI_Isend(data.data(), length, MPI_BYTE, partner(), tag, scene.comm, &request);
    } else {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Mprobe(partner(), tag, scene.comm, &message, MPI_STATUS_IGNORE);
      MPI_Imrecv(data.data(), length, MPI_BYTE, &message, &request);
    }
    {
      const OutsideMpi computing(steps, step);
      if (receiver() && interrupts()) CHECK(watch_message(data, seed));
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

namespace {

enum class Made : std::uint8_t { by_dup, by_split, between_two };

MPI_Comm make(Made how) {
  MPI_Comm comm = MPI_COMM_NULL;
  switch (how) {
    case Made::by_dup: MPI_Comm_dup(MPI_COMM_WORLD, &comm); break;
    case Made::by_split: MPI_Comm_split(MPI_COMM_WORLD, 0, rank(), &comm); break;
    case Made::between_two:
      MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, partner(), tag, &comm);
      break;
  }
  return comm;
}

}  // namespace

TEST_CASE("P4.3: communicators are made and freed, and the first message of each arrives") {
  TWO_RANKS_WITH_COUNTERS();
  Steps steps;
  int step = 0;
  const bool any = GENERATE(false, true);
  const auto made = GENERATE(Made::by_dup, Made::by_split, Made::between_two);
  INFO("any source " << any << ", made " << static_cast<int>(made));
  // It is the way there that is new: elsewhere no socket takes in what nobody reads.
  const std::size_t length = over_tcp() ? bytes : 2 << 20;
  for (std::uint64_t i = 0; i < 4; ++i) {
    MPI_Comm comm = make(made);
    const First first = i % 2 == 0 ? First::receiver : First::sender;
    const int peer = made == Made::between_two ? 0 : partner();
    exchange(steps, step,
             {.first = first, .any_source = any, .comm = comm, .peer = peer, .bytes = length},
             200 + i);
    MPI_Comm_free(&comm);
  }
}

TEST_CASE("P4: a neighbour costs one descriptor at most") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  int step = 0;
  exchange(steps, step, {First::receiver}, 90);
  unsigned areas = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // that of the folder itself
    const std::string target = std::filesystem::read_symlink(each, gone);
    areas += target.find("overlap-node-area") != std::string::npos ? 1 : 0;
  }
  CHECK(areas <= 1);  // this process's own
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("P4: a child process lives beside the thread") {
  TWO_RANKS_WITH_COUNTERS();
  Scene scene;
  Steps steps;
  int step = 0;
  exchange(steps, step, {First::receiver}, 70);
  Bytes data = sender() ? pattern(bytes, 71) : empty(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  if (receiver())
    MPI_Irecv(data.data(), bytes, MPI_BYTE, partner(), tag, scene.comm, &request);
  else
    MPI_Isend(data.data(), bytes, MPI_BYTE, partner(), tag, scene.comm, &request);
  const pid_t child = fork();
  if (child == 0) _exit(7);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 7);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (receiver()) CHECK(first_wrong(data.data(), bytes, 71) == bytes);
}
