// Tests: options of the verbs provider.
// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::verbs;

TEST_CASE("device names with and without a port", "[verbs]") {
  CHECK(parse_port_name("").device.empty());
  CHECK(parse_port_name("").port == 0);
  CHECK(parse_port_name("mlx5_0").device == "mlx5_0");
  CHECK(parse_port_name("mlx5_0").port == 0);
  CHECK(parse_port_name("mlx5_0:2").device == "mlx5_0");
  CHECK(parse_port_name("mlx5_0:2").port == 2);
}

TEST_CASE("what is no device name is refused with its text", "[verbs]") {
  for (const char* text :
       {":1", "rxe0:", "rxe0:0", "rxe0:x", "rxe0:1x", "rxe0:256", "rxe0:-1", "rxe0:1:2"}) {
    INFO(text);
    try {
      (void)parse_port_name(text);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.kind == Error::Kind::bad_option);
      CHECK(std::string(error.what()).find(text) != std::string::npos);
    }
  }
}

TEST_CASE("defaults hold, and each option has its range", "[verbs]") {
  CHECK_NOTHROW(check(VerbsOptions{}));
  const auto refused = [](auto change) {
    VerbsOptions options;
    change(options);
    try {
      check(options);
    } catch (const Error& error) {
      return error.kind == Error::Kind::bad_option;
    }
    return false;
  };
  CHECK(refused([](VerbsOptions& o) { o.device = "rxe0:"; }));
  CHECK(refused([](VerbsOptions& o) { o.mtu_bytes = 1500; }));
  CHECK(refused([](VerbsOptions& o) { o.gid_index = -2; }));
  CHECK(refused([](VerbsOptions& o) { o.gid_index = 256; }));
  CHECK(refused([](VerbsOptions& o) { o.service_level = -2; }));
  CHECK(refused([](VerbsOptions& o) { o.service_level = 16; }));
  CHECK(refused([](VerbsOptions& o) { o.traffic_class = -2; }));
  CHECK(refused([](VerbsOptions& o) { o.traffic_class = 256; }));
  CHECK(refused([](VerbsOptions& o) { o.timeout_exponent = 32; }));
  CHECK(refused([](VerbsOptions& o) { o.retry_count = 8; }));
  CHECK(refused([](VerbsOptions& o) { o.rnr_retry_count = 8; }));
  CHECK(refused([](VerbsOptions& o) { o.rnr_timer = 32; }));
  CHECK(refused([](VerbsOptions& o) { o.connect_timeout_ms = 0; }));
  CHECK(refused([](VerbsOptions& o) { o.inline_bytes = 1U << 20; }));
  CHECK(refused([](VerbsOptions& o) { o.read_depth = 256; }));
  CHECK_FALSE(refused([](VerbsOptions& o) { o.mtu_bytes = 1024; }));
}
