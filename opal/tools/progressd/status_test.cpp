// What --status prints.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/status.hpp"

#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"

namespace {

using namespace overlap::progressd;

Status example() {
  Status status;
  status.version = "1.2";
  status.process = 77;
  status.processor_us = 12'345;
  status.wakes_futile = 3;
  status.helpers = {{.processors = "3,11",
                     .state = "spinning",
                     .clients = 2,
                     .wakes = 40,
                     .polled = 5,
                     .obsolete = 2,
                     .unwanted = 1,
                     .sleeps = 9,
                     .processor_us = 12'000},
                    {.processors = "", .state = "off"}};
  status.clients = {{.process = 100,
                     .job = 0xabc,
                     .local_rank = 1,
                     .helper = 0,
                     .doze = "armed",
                     .watched = true,
                     .waits = 4,
                     .wakes = 41,
                     .wakes_futile = 3}};
  return status;
}

}  // namespace

TEST_CASE("the status as JSON", "[helper]") {
  const auto all = nlohmann::json::parse(json_of(example()));
  CHECK(all.at("process") == 77);
  CHECK(all.at("wakes") == 40);
  CHECK(all.at("futile_wakes") == 3);
  CHECK(all.at("helpers").size() == 2);
  CHECK(all.at("clients").at(0).at("waits") == 4);
  CHECK(all.at("clients").at(0).at("thread") == "armed");
}

TEST_CASE("the status as text", "[helper]") {
  const std::string text = text_of_json(json_of(example()));
  INFO(text);
  for (const char* part : {"ompi-progressd 1.2, process 77, on\n", "40 wakes, 3 futile wakes",
                           "12.3 ms", "3,11", "spinning", "armed", "0xabc", "yes"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("the status says why a helper rests", "[helper]") {
  Status status = example();
  status.why_off = "none of 2 cores is spare";
  CHECK(text_of_json(json_of(status)).find("resting: none of 2 cores is spare") !=
        std::string::npos);
  status.why_off.clear();
  status.on = false;
  CHECK(text_of_json(json_of(status)).find(", off\n") != std::string::npos);
  status.clients.clear();
  CHECK(text_of_json(json_of(status)).find("no clients") != std::string::npos);
}

TEST_CASE("what is no status has no text", "[helper]") {
  for (const char* wrong : {"", "{", "[]", "{}", "7", "{\"version\": 3}", "\xff\xfe"}) {
    CAPTURE(wrong);
    CHECK(text_of_json(wrong).empty());
  }
}
