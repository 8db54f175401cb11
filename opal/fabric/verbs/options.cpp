// Options of the verbs provider.
// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <charconv>

#include "convert.hpp"

namespace overlap::fabric::verbs {
namespace {

void check_range(const char* name, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return;
  throw Error(Error::Kind::bad_option, std::string(name) + " is " + std::to_string(value) +
                                           "; it must be " + std::to_string(min) + " to " +
                                           std::to_string(max));
}

}  // namespace

PortName parse_port_name(const std::string& text) {
  PortName name;
  const auto colon = text.find(':');
  name.device = text.substr(0, colon);
  if (colon == std::string::npos) return name;
  const char* first = text.data() + colon + 1;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, name.port);
  if (name.device.empty() || error != std::errc() || end != last || name.port == 0) {
    throw Error(Error::Kind::bad_option, "\"" + text +
                                             "\" is no RDMA device; write its name, or name and "
                                             "port as in \"mlx5_0:1\" (ibv_devices lists them)");
  }
  return name;
}

void check(const VerbsOptions& options) {
  (void)parse_port_name(options.device);
  if (options.mtu_bytes != 0 && mtu_code(options.mtu_bytes) == 0) {
    throw Error(Error::Kind::bad_option,
                "the MTU is " + std::to_string(options.mtu_bytes) +
                    " bytes; it must be 256, 512, 1024, 2048, 4096, or 0 for the port's");
  }
  check_range("the GID index", options.gid_index, -1, 255);
  check_range("the service level", options.service_level, -1, 15);
  check_range("the traffic class", options.traffic_class, -1, 255);
  check_range("the ACK timeout exponent", options.timeout_exponent, 0, 31);
  check_range("the retry count", options.retry_count, 0, 7);
  check_range("the receiver-not-ready retry count", options.rnr_retry_count, 0, 7);
  check_range("the receiver-not-ready timer", options.rnr_timer, 0, 31);
  check_range("the connect timeout in milliseconds", options.connect_timeout_ms, 1, 3600000);
  check_range("the inline size", options.inline_bytes, 0, 65536);
  check_range("the read depth", options.read_depth, 0, 255);
}

}  // namespace overlap::fabric::verbs
