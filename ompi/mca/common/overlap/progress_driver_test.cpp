// What the driver takes over from opal_progress, and gives back.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/progress_driver.hpp"

#include "ompi/mca/common/overlap/process.hpp"
#include "ompi/mca/common/overlap/sim/fake_btl.hpp"
#include "ompi/mca/common/overlap/sim/osc_components.hpp"
#include "test/support/catch.hpp"

#include <unistd.h>

namespace {

using overlap::ProgressDriver;
using overlap::sim::FakeBtl;

int used_calls, unused_calls, other_calls;

int poll_used() { return ++used_calls, 1; }
int poll_unused() { return ++unused_calls, 0; }
int poll_other() { return ++other_calls, 0; }

/// Open MPI's lower layer as far as polling needs it: two BTLs, of which the BML has registered
/// one, and somebody else's progress function.
class Host {
 public:
  Host() {
    static const int started = [] {
      OBJ_CONSTRUCT(&mca_btl_base_modules_initialized, opal_list_t);
      return overlap::start_progress_alone();
    }();
    REQUIRE(started == OPAL_SUCCESS);
    opal_progress_set_event_flag(0);  // no event loop here
    used_calls = unused_calls = other_calls = 0;
    for (auto* entry : {&used_entry_, &unused_entry_}) {
      OBJ_CONSTRUCT(entry, mca_btl_base_selected_module_t);
      opal_list_append(&mca_btl_base_modules_initialized, &entry->super);
    }
    used_entry_.btl_module = &used_;
    unused_entry_.btl_module = &unused_;
    opal_progress_register(poll_used);
    opal_progress_register(poll_other);
  }
  ~Host() {
    for (auto* entry : {&used_entry_, &unused_entry_})
      opal_list_remove_item(&mca_btl_base_modules_initialized, &entry->super);
    opal_progress_unregister(poll_used);
    opal_progress_unregister(poll_other);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

 private:
  FakeBtl used_{"used", poll_used};
  FakeBtl unused_{"unused", poll_unused};
  mca_btl_base_selected_module_t used_entry_{};
  mca_btl_base_selected_module_t unused_entry_{};
};

/// What a process with a PML has, as far as windows need it.
struct PmlParts {
  PmlParts() { overlap::process = &process; }
  ~PmlParts() {
    driver.give_back();
    overlap::process = nullptr;
  }
  PmlParts(const PmlParts&) = delete;
  PmlParts& operator=(const PmlParts&) = delete;

  ProgressDriver driver;
  overlap::Endpoints endpoints;
  overlap::NodeArea node;
  overlap::InterruptThread interrupts{driver, endpoints, node};
  overlap::CompletionQueue completions{nullptr};
  overlap::Process process{endpoints, driver, interrupts, completions, nullptr, nullptr, nullptr};
};

}  // namespace

TEST_CASE("Progress driver: BTLs in use are polled by it alone, others' functions stay") {
  const Host host;
  ProgressDriver driver;
  driver.adopt_btls();
  opal_progress();
  CHECK(used_calls == 0);
  CHECK(other_calls == 1);
  CHECK(driver.poll() == 1);
  CHECK(used_calls == 1);
  CHECK(unused_calls == 0);
  CHECK(other_calls == 1);
  driver.adopt_btls();  // nothing new
  CHECK(driver.poll() == 1);
  CHECK(used_calls == 2);
  driver.give_back();
}

TEST_CASE(
    "Progress driver: what the BML registers anew while a window is made is taken over again") {
  const Host host;
  PmlParts pml;
  pml.driver.adopt_btls();
  const overlap::sim::Components components;
  ompi_win_t* window = overlap::sim::make_window();
  static_cast<void>(overlap::sim::Components::ask(window));
  opal_progress_register(poll_used);  // osc/rdma meets a process,
  overlap::claim_window(*window);     // and osc/newrma is chosen
  opal_progress();
  CHECK(used_calls == 0);
  OBJ_RELEASE(window);
}

TEST_CASE(
    "Progress driver: windows of others begin and end under the lock, in calls that may leave") {
  const Host host;
  static int calls_inside, calls_outside;  // at the end of a call that may leave MPI
  calls_inside = calls_outside = 0;
  overlap::BtlCapability sleeper;
  sleeper.wake_now = []() noexcept {
    ++(overlap::progress_lock.held_by_me_hint() ? calls_inside : calls_outside);
  };
  PmlParts pml;
  pml.interrupts.wake_others(sleeper);
  const overlap::sim::Components components;
  ompi_win_t* window = overlap::sim::make_window();
  static_cast<void>(overlap::sim::Components::ask(window));
  CHECK(calls_inside == 1);
  overlap::claim_window(*window);
  CHECK(calls_inside == 2);
  static_cast<void>(overlap::sim::Components::ask(window));
  CHECK(calls_inside == 3);
  OBJ_RELEASE(window);
  CHECK(calls_inside == 4);
  CHECK(calls_outside == 0);
}

TEST_CASE("Progress driver: what was taken over is given back, once") {
  const Host host;
  ProgressDriver driver;
  driver.adopt_btls();
  driver.give_back();
  CHECK(driver.poll() == 0);
  CHECK(used_calls == 0);
  opal_progress();
  CHECK(used_calls == 1);
  CHECK(unused_calls == 0);
  CHECK(other_calls == 1);
  driver.give_back();
  opal_progress();
  CHECK(used_calls == 2);
}

TEST_CASE("Progress driver: after a turn of an interrupt thread, what waits goes on") {
  const Host host;
  opal_event_base_t* const before = std::exchange(opal_sync_event_base, event_base_new());
  static int after_turns;
  after_turns = 0;
  const ProgressDriver::Pollable waits{[]() noexcept { return 0; },
                                       []() noexcept { return ++after_turns; }};
  ProgressDriver driver;
  const auto turn = [&driver] {
    const auto knows_none = [](const opal_process_name_t&, const void*) noexcept { return false; };
    static_cast<void>(driver.turn_in_thread({.events = true}, knows_none, nullptr));
    return after_turns;
  };
  driver.set_pollable(waits, true);
  CHECK(turn() == 1);
  driver.need_events();
  CHECK(turn() == 2);
  static_cast<void>(driver.turn_in_thread({}, nullptr, nullptr));
  CHECK(after_turns == 2);  // it may call no BTL
  driver.set_pollable(waits, false);
  CHECK(turn() == 2);  // nothing waits
  driver.give_back();
  event_base_free(std::exchange(opal_sync_event_base, before));
}

TEST_CASE("Progress driver: a connection is news once") {
  const Host host;
  opal_event_base_t* const before = std::exchange(opal_sync_event_base, event_base_new());
  ProgressDriver driver;
  CHECK_FALSE(driver.has_new_events());
  driver.need_events();  // nobody may have had anything to serve before
  CHECK(driver.take_new_events());
  driver.need_events();
  driver.poll_thoroughly();
  CHECK_FALSE(driver.take_new_events());
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  event* const watched = event_new(
      opal_sync_event_base, ends[0], EV_READ | EV_PERSIST, [](int, short, void*) {}, nullptr);
  event_add(watched, nullptr);
  driver.poll_thoroughly();
  CHECK(driver.has_new_events());
  CHECK(driver.take_new_events());
  CHECK_FALSE(driver.take_new_events());
  driver.poll_thoroughly();
  CHECK_FALSE(driver.has_new_events());
  event_free(watched);
  driver.poll_thoroughly();
  CHECK(driver.take_new_events());
  for (const int end : ends) close(end);
  driver.give_back();
  opal_progress_set_event_flag(0);
  event_base_free(std::exchange(opal_sync_event_base, before));
}

TEST_CASE("Progress driver: each pollable is polled once a turn, until it takes itself out") {
  const Host host;
  static int first_polls, second_polls;
  static ProgressDriver* polled;
  first_polls = second_polls = 0;
  ProgressDriver driver;
  polled = &driver;
  const ProgressDriver::Pollable first{[]() noexcept { return ++first_polls; }, nullptr};
  static const ProgressDriver::Pollable second{[]() noexcept {
                                                 if (++second_polls == 2)
                                                   polled->set_pollable(second, false);
                                                 return 0;
                                               },
                                               nullptr};
  driver.set_pollable(first, true);
  driver.set_pollable(second, true);
  driver.set_pollable(first, true);
  for (int turn = 1; turn <= 3; ++turn) {
    driver.poll();
    CHECK(first_polls == turn);
  }
  CHECK(second_polls == 2);
  const auto knows_none = [](const opal_process_name_t&, const void*) noexcept { return false; };
  CHECK_FALSE(
      driver.turn_in_thread({.events = true}, knows_none, nullptr).moved);  // nothing for a thread
  driver.set_pollable(first, false);
  driver.poll();
  CHECK(first_polls == 3);
}

TEST_CASE("Progress driver: an interrupt thread polls the BTLs that it may, all of them") {
  used_calls = other_calls = 0;
  ProgressDriver driver;
  driver.let_thread_poll(poll_used);
  driver.let_thread_poll(poll_other);
  const auto knows_none = [](const opal_process_name_t&, const void*) noexcept { return false; };
  CHECK_FALSE(driver.turn_in_thread({.events = true}, knows_none, nullptr).moved);
  CHECK((used_calls == 0 && other_calls == 0));
  CHECK_FALSE(driver.turn_in_thread({.btls = true}, knows_none, nullptr).moved);
  CHECK((used_calls == 1 && other_calls == 1));
  CHECK(driver.look_at_thread_btls());  // one has done something: there may be more
  CHECK((used_calls == 2 && other_calls == 2));
  driver.give_back();
  CHECK_FALSE(driver.look_at_thread_btls());
  CHECK((used_calls == 2 && other_calls == 2));
}

TEST_CASE("Progress driver: an MPI thread that stays is noticed, and the helper sees its turns") {
  const Host host;
  ProgressDriver driver;
  unsigned stays = 0;
  std::atomic<std::uint32_t> shown{0};
  driver.poll();
  CHECK(driver.turns() == 0);  // nobody wants to know
  driver.set_on_stay([](void* count) { ++*static_cast<unsigned*>(count); }, &stays, &shown);
  for (int i = 0; i < 15; ++i) driver.poll();
  CHECK(stays == 0);
  CHECK(shown == 15);
  driver.note_leaving();
  for (int i = 0; i < 15; ++i) driver.poll();
  CHECK(stays == 0);
  driver.poll();
  CHECK(stays == 1);
  CHECK(shown == driver.turns());
  driver.set_on_stay(nullptr, nullptr);
  for (int i = 0; i < 40; ++i) driver.poll();
  CHECK(stays == 1);
  driver.give_back();
}

TEST_CASE("Progress driver: the event loop is given back where it was taken over") {
  const Host host;
  ProgressDriver driver;
  SECTION("no BTL needed it") {
    driver.give_back();
    CHECK(opal_progress_set_event_flag(0) == 0);
  }
  SECTION("one did") {
    driver.need_events();
    CHECK(driver.turns_events());
    driver.give_back();
    CHECK_FALSE(driver.turns_events());
    CHECK(opal_progress_set_event_flag(0) == (OPAL_EVLOOP_ONCE | OPAL_EVLOOP_NONBLOCK));
  }
}

TEST_CASE("Progress driver: with several threads opal_progress turns the event loop in none") {
  const Host host;
  opal_event_base_t* const before = std::exchange(opal_sync_event_base, event_base_new());
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  static int turns;
  turns = 0;
  event* const watched = event_new(
      opal_sync_event_base, ends[0], EV_READ | EV_PERSIST, [](int, short, void*) { ++turns; },
      nullptr);
  event_add(watched, nullptr);
  REQUIRE(write(ends[1], "x", 1) == 1);
  ProgressDriver driver;
  driver.own_events();
  CHECK_FALSE(driver.turns_events());  // an interrupt thread has nothing to serve in it
  for (int i = 0; i < 16; ++i) {
    opal_progress_set_event_flag(OPAL_EVLOOP_NONBLOCK);  // as MPI_Init does
    driver.poll();
    CHECK(opal_progress_set_event_flag(0) == 0);
    if (i == 0) CHECK(turns == 1);  // a connection comes in
  }
  const int turned = turns;
  driver.need_events();
  driver.poll_thoroughly();
  CHECK(turns == turned + 1);
  driver.give_back();
  CHECK(opal_progress_set_event_flag(0) == (OPAL_EVLOOP_ONCE | OPAL_EVLOOP_NONBLOCK));
  event_free(watched);
  close(ends[0]);
  close(ends[1]);
  event_base_free(std::exchange(opal_sync_event_base, before));
}
