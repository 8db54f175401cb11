// Checks of the kernel module ompi_wake, for a guest that has loaded it: run.sh runs them there.
//
//   wake_check SCENARIO [ARGUMENT]    exit status 0, or a line that begins with "failed:"
//
// Scenarios: see the table at the end. The processes of a scenario find out by /proc whether
// another one sleeps; nothing waits for a time.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/vm/wake_check.hpp"

int main(int argc, char** argv) {
  using namespace wake_check;
  for (const auto* part : {&basics, &rules, &loads}) {
    for (const Scenario& scenario : *part) {
      if (argc < 2 || std::strcmp(scenario.name, argv[1]) != 0) continue;
      scenario.run(argc > 2 ? std::atoi(argv[2]) : scenario.argument);
      return 0;
    }
  }
  std::printf("failed: no such scenario\n");
  return 2;
}
