// Spare cores of machines on paper.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/placement.hpp"

#include "test/support/catch.hpp"

namespace {

using overlap::progressd::Binding;
using overlap::progressd::Core;
using overlap::progressd::place;
using overlap::progressd::Placement;
using overlap::progressd::Processors;
using overlap::progressd::processors_of;
using overlap::progressd::text_of;

/// Two NUMA nodes of four cores with two processors each: core i has i and i + 8.
std::vector<Core> machine() {
  std::vector<Core> cores;
  for (unsigned i = 0; i < 8; ++i) cores.push_back({.processors = {i, i + 8}, .numa_node = i / 4});
  return cores;
}
Binding bound(int process, Processors processors) { return {process, std::move(processors)}; }
Binding unbound(int process) {
  Processors all;
  for (unsigned i = 0; i < 16; ++i) all.insert(i);
  return {process, all};
}

}  // namespace

TEST_CASE("a helper sits on a spare core of its clients' NUMA node", "[helper][P4.6]") {
  const Placement placement = place(machine(), {bound(1, {0}), bound(2, {1})}, {});
  CHECK(placement.helpers == std::vector<Processors>{{3, 11}});
  CHECK(place(machine(), {bound(1, {4}), bound(2, {5})}, {}).helpers ==
        std::vector<Processors>{{7, 15}});
}

TEST_CASE("where that node is full it sits on the other one", "[helper][P4.6]") {
  const Placement placement =
      place(machine(), {bound(1, {0, 8}), bound(2, {1}), bound(3, {2}), bound(4, {3})}, {});
  CHECK(placement.helpers == std::vector<Processors>{{7, 15}});
}

TEST_CASE("a core is not spare when a client has one of its processors", "[helper][P4.6]") {
  std::vector<Core> cores = {{.processors = {0, 1}, .numa_node = 0}};
  const Placement placement = place(cores, {bound(1, {1})}, {});
  CHECK(placement.helpers.empty());
  CHECK(placement.refusal.find("--share-core") != std::string::npos);
}

TEST_CASE("clients that are not bound take a core each", "[helper][P4.6]") {
  std::vector<Binding> clients;
  for (int i = 0; i < 7; ++i) clients.push_back(unbound(i));
  CHECK(place(machine(), clients, {}).helpers == std::vector<Processors>{{}});
  CHECK(place(machine(), clients, {.helpers = 3}).helpers.size() == 1);
  clients.push_back(unbound(7));
  CHECK(place(machine(), clients, {}).helpers.empty());
  CHECK(place(machine(), clients, {.share_core = true}).helpers.size() == 1);
}

TEST_CASE("several helpers sit on several cores", "[helper][P4.6]") {
  const Placement placement = place(machine(), {bound(1, {0})}, {.helpers = 4});
  CHECK(placement.helpers == std::vector<Processors>{{3, 11}, {2, 10}, {1, 9}, {7, 15}});
}

TEST_CASE("a helper does not sit where a client is bound", "[helper][P4.6]") {
  const std::vector<Binding> clients = {bound(41, {2}), bound(42, {3, 11})};
  const Placement refused = place(machine(), clients, {.bind = {11}});
  CHECK(refused.helpers.empty());
  CHECK(refused.refusal.find("process 42") != std::string::npos);
  CHECK(refused.refusal.find("processor 11") != std::string::npos);
  CHECK(refused.refusal.find("--share-core") != std::string::npos);
  CHECK(place(machine(), clients, {.bind = {11}, .share_core = true}).helpers ==
        std::vector<Processors>{{11}});
  CHECK(place(machine(), clients, {.bind = {12}}).helpers == std::vector<Processors>{{12}});
  CHECK(place(machine(), {unbound(1)}, {.bind = {11}}).helpers == std::vector<Processors>{{11}});
}

TEST_CASE("lists of processors", "[helper]") {
  CHECK(processors_of("3") == Processors{3});
  CHECK(processors_of("0,2-4") == Processors{0, 2, 3, 4});
  for (const char* wrong :
       {"", ",", "1,", "a", "-1", "3-2", "1-", "1 2", "99999999", "0-99999999"}) {
    CAPTURE(wrong);
    CHECK_FALSE(processors_of(wrong));
  }
  CHECK(text_of({0, 1, 2, 5, 7, 8}) == "0-2,5,7,8");
  CHECK(text_of({}).empty());
}
