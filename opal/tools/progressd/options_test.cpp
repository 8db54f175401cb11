// The command line: what it means, and what wrong ones answer.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/options.hpp"

#include <vector>

#include "test/support/catch.hpp"

namespace {

using overlap::progressd::Command;
using overlap::progressd::Options;
using overlap::progressd::UsageError;

Options parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ompi-progressd");
  return overlap::progressd::parse(static_cast<int>(arguments.size()), arguments.data());
}

}  // namespace

TEST_CASE("the command line", "[helper]") {
  CHECK(parse({}).command == Command::serve);
  CHECK(parse({}).placement.helpers == 1);
  CHECK_FALSE(parse({}).exit_when_idle);
  CHECK(parse({"--status"}).command == Command::status);
  CHECK(parse({"--status", "--json"}).json);
  CHECK(parse({"--on"}).command == Command::on);
  CHECK(parse({"--off"}).command == Command::off);
  CHECK(parse({"--stop"}).command == Command::stop);
  CHECK(parse({"--version"}).command == Command::version);
  const Options help = parse({"--help"});
  CHECK(help.command == Command::help);
  for (const char* option : {"--foreground", "--helpers", "--bind", "--share-core", "--spin-ms",
                             "--exit-when-idle", "--status", "--json", "--on", "--off", "--stop"}) {
    CAPTURE(option);
    CHECK(help.help.find(option) != std::string::npos);
  }
  const Options all = parse({"--foreground", "--helpers", "3", "--bind=1,4-5", "--share-core",
                             "--spin-ms", "0", "--exit-when-idle", "--name", "a-b_9"});
  CHECK(all.foreground);
  CHECK(all.placement.helpers == 3);
  CHECK(all.placement.bind == overlap::progressd::Processors{1, 4, 5});
  CHECK(all.placement.share_core);
  CHECK(all.spin_ms == 0);
  CHECK(all.exit_when_idle);
  CHECK(all.name == "a-b_9");
}

TEST_CASE("a wrong command line is answered with what to change", "[helper]") {
  struct Row {
    std::vector<const char*> arguments;
    const char* named;  ///< in the message
  };
  const Row rows[] = {
      {{"--statsu"}, "--statsu"},         {{"now"}, "now"},
      {{"--status", "--stop"}, "--stop"}, {{"--json"}, "--status"},
      {{"--helpers", "0"}, "1 to 64"},    {{"--helpers", "65"}, "1 to 64"},
      {{"--helpers", "two"}, "\"two\""},  {{"--helpers"}, "--helpers"},
      {{"--spin-ms", "-1"}, "--spin-ms"}, {{"--spin-ms", "10001"}, "0 to 10000"},
      {{"--bind", "1;2"}, "0,2-5"},       {{"--name", "a/b"}, "letters"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.named);
    try {
      static_cast<void>(parse(row.arguments));
      FAIL("no message");
    } catch (const UsageError& error) {
      CAPTURE(error.what());
      CHECK(std::string(error.what()).find(row.named) != std::string::npos);
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
    }
  }
}
