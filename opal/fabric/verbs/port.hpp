// The port of an RDMA device that is used, with the IP address that connections are made through.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "failure.hpp"
#include "wire.hpp"

namespace overlap::fabric::verbs {

using Channel = Handle<rdma_event_channel, rdma_destroy_event_channel>;
using CmId = Handle<rdma_cm_id, rdma_destroy_id>;
using Context = Handle<ibv_context, ibv_close_device>;

/// An opened device and one active port of it.
struct Port {
  Context context;
  Channel channel;  ///< non-blocking
  std::uint8_t number = 0;
  Transport transport = Transport::infiniband;
  ibv_device_attr device{};
  ibv_port_attr attributes{};
  std::uint64_t subnet_prefix = 0;  ///< of the first GID, in network order
  IpAddress ip;                     ///< of the port; its TCP-like port number is 0

  [[nodiscard]] const char* device_name() const noexcept {
    return ibv_get_device_name(context->device);
  }
  [[nodiscard]] std::string name() const {
    return std::string(device_name()) + ":" + std::to_string(number);
  }
  /// Is this identifier of librdmacm on this very port? It opens devices for itself: handles cannot
  /// be compared.
  [[nodiscard]] bool has(const rdma_cm_id& id) const noexcept;
};

/// The port that the options name, or of the active ones that have an IP address the fastest, among
/// equals the first.
/// @throws Error: no_device, no_permission, memory_limit, bad_option, system
[[nodiscard]] Port find_port(const VerbsOptions& options);

}  // namespace overlap::fabric::verbs
