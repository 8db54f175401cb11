// Areas and bells between processes.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/area_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "opal/mca/common/overlap/node/bell.hpp"
#include "test/support/catch.hpp"

namespace {

using overlap::Descriptor;
using overlap::node::Bell;
using overlap::node::BellRope;
using overlap::node::DescriptorAddress;
using overlap::node::Doze;
using overlap::node::MappedArea;

/// Run `body` in another process. @returns  what it returns
bool in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool is_readable(int fd) {
  pollfd set{fd, POLLIN, 0};
  return poll(&set, 1, 0) > 0;
}

}  // namespace

TEST_CASE("another process maps an area by its address", "[node]") {
  const MappedArea own = MappedArea::make();
  REQUIRE(own);
  const auto address = DescriptorAddress::of(own.file());
  REQUIRE(address);
  own->turns = 7;
  CHECK(in_child([&] {
    const MappedArea theirs = MappedArea::map(address->open(O_RDWR));
    if (!theirs || theirs->turns != 7) return false;
    theirs->doze = Doze::armed;
    return true;
  }));
  CHECK(own->doze == Doze::armed);
}

TEST_CASE("a descriptor's number that stands for another file is not opened", "[node]") {
  const MappedArea own = MappedArea::make();
  REQUIRE(own);
  auto address = *DescriptorAddress::of(own.file());
  const int taken = dup(own.file().get());
  REQUIRE(dup2(STDIN_FILENO, taken) == taken);
  auto other = address;
  other.descriptor = taken;
  CHECK_FALSE(other.open(O_RDWR));
  close(taken);
  CHECK_FALSE(other.open(O_RDWR));  // nobody's now
  other = address;
  other.pid = 0;
  CHECK_FALSE(other.open(O_RDWR));
  other.pid = INT32_MAX;
  CHECK_FALSE(other.open(O_RDWR));
  CHECK(address.open(O_RDWR));
}

TEST_CASE("what is no area is not mapped as one", "[node]") {
  CHECK_FALSE(MappedArea::map(Descriptor()));
  CHECK_FALSE(MappedArea::map(Descriptor(open("/dev/null", O_RDWR | O_CLOEXEC))));
  Descriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(unsealed.get(), sizeof(overlap::node::Area)) == 0);
  CHECK_FALSE(MappedArea::map(Descriptor(dup(unsealed.get()))));
  // Sealed, and nothing in it.
  REQUIRE(fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  CHECK_FALSE(MappedArea::map(Descriptor(dup(unsealed.get()))));
  MappedArea own = MappedArea::make();
  own->version += 1;
  CHECK_FALSE(MappedArea::map(DescriptorAddress::of(own.file())->open(O_RDWR)));
}

TEST_CASE("an area cannot be made smaller under its readers", "[node]") {
  const MappedArea own = MappedArea::make();
  CHECK(ftruncate(own.file().get(), 0) != 0);
  CHECK(own->magic == overlap::node::area_magic);
}

TEST_CASE("another process rings a bell", "[node][wake]") {
  MappedArea own = MappedArea::make();
  REQUIRE(own);
  CHECK_FALSE(BellRope::to(*own.get()));  // not there yet
  Bell bell;
  REQUIRE(bell.open(*own.get()));
  CHECK_FALSE(is_readable(bell.descriptors()[0]));
  CHECK(in_child([&] {
    const BellRope rope = BellRope::to(*own.get());
    if (!rope) return false;
    rope.ring();
    rope.ring();
    return true;
  }));
  CHECK(is_readable(bell.descriptors()[0]));
  CHECK(bell.silence());
  CHECK_FALSE(bell.silence());
}

TEST_CASE("a ring for a process that has gone is no signal", "[node][wake]") {
  MappedArea own = MappedArea::make();
  BellRope rope;
  {
    Bell bell;
    REQUIRE(bell.open(*own.get()));
    rope = BellRope::to(*own.get());
    REQUIRE(rope);
  }
  rope.ring();                            // SIGPIPE would end this process
  CHECK_FALSE(BellRope::to(*own.get()));  // its number is free
}

TEST_CASE("a bell that nobody hears takes any number of rings", "[node][wake]") {
  MappedArea own = MappedArea::make();
  Bell bell;
  REQUIRE(bell.open(*own.get()));
  const BellRope rope = BellRope::to(*own.get());
  REQUIRE(rope);
  for (int i = 0; i < 100'000; ++i) rope.ring();  // more than a pipe holds
  CHECK(bell.silence());
  CHECK_FALSE(is_readable(bell.descriptors()[0]));
}
