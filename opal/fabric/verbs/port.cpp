// Choice of device and port.
// SPDX-License-Identifier: BSD-3-Clause
#include "port.hpp"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "options.hpp"

namespace overlap::fabric::verbs {
namespace {

using DeviceList = Handle<ibv_device*, ibv_free_device_list>;

/// Names in /sys/class/infiniband: what the kernel knows, whether or not user space may use it.
std::vector<std::string> kernel_devices() {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator each("/sys/class/infiniband", error), end;
       !error && each != end; each.increment(error)) {
    names.push_back(each->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string join(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

/// libibverbs looks for drivers and may warn on stderr: it is only asked when the kernel has a
/// device.
DeviceList list_devices(const std::vector<std::string>& known) {
  if (known.empty()) {
    throw Error(Error::Kind::no_device,
                "this host has no RDMA device (/sys/class/infiniband has none): its driver is "
                "not loaded, or there is no adapter");
  }
  // With a capability instead of the limit it would work, but for a warning of libibverbs on each
  // start of each process.
  if (memory_limit_is_hopeless())
    throw Error(Error::Kind::memory_limit, "RDMA cannot be used: " + memory_limit_advice());
  int count = 0;
  DeviceList list(ibv_get_device_list(&count));
  if (list == nullptr) throw failure("cannot list RDMA devices", errno);
  if (count == 0) {
    std::error_code error;
    const bool uverbs = std::filesystem::exists("/sys/class/infiniband_verbs/abi_version", error);
    throw Error(Error::Kind::no_device,
                "the RDMA devices of this host (" + join(known) + ") cannot be used: " +
                    (uverbs ? "their user-space driver is missing (Debian: ibverbs-providers)"
                            : "the kernel module ib_uverbs is not loaded"));
  }
  return list;
}

Transport transport_of(const ibv_device& device, const ibv_port_attr& port) noexcept {
  if (device.transport_type == IBV_TRANSPORT_IWARP) return Transport::iwarp;
  return port.link_layer == IBV_LINK_LAYER_ETHERNET ? Transport::roce : Transport::infiniband;
}

Context open_device(ibv_device& device) {
  errno = 0;
  Context context(ibv_open_device(&device));
  if (context == nullptr) {
    const int error = errno != 0 ? errno : EIO;
    const std::string file = std::string("/dev/infiniband/") + device.dev_name;
    throw failure("cannot open " + std::string(ibv_get_device_name(&device)) + " (" + file + ")",
                  open_error(file, error));
  }
  return context;
}

Channel open_channel() {
  Channel channel(rdma_create_event_channel());
  if (channel == nullptr) {
    const int error = open_error("/dev/infiniband/rdma_cm", errno);
    if (error == ENOENT || error == ENODEV) {
      throw Error(Error::Kind::no_device,
                  "RDMA connections cannot be made: the kernel module rdma_ucm is not loaded");
    }
    throw failure("cannot open /dev/infiniband/rdma_cm", error);
  }
  const int flags = fcntl(channel->fd, F_GETFL);
  if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0)
    throw failure("cannot set up RDMA connections", errno);
  return channel;
}

/// Addresses of this host that peers may reach: IPv4 first, then IPv6, link-local ones last.
std::vector<IpAddress> host_addresses() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) throw failure("cannot list the addresses of this host", errno);
  const Handle<ifaddrs, freeifaddrs> list(raw);
  std::vector<IpAddress> addresses;
  for (const ifaddrs* each = raw; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0 ||
        (each->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    IpAddress address;
    std::memcpy(&address.storage, each->ifa_addr,
                family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    address.set_port(0);
    addresses.push_back(address);
  }
  const auto rank = [](const IpAddress& address) {
    return address.is_v4() ? 0 : address.is_link_local() ? 2 : 1;
  };
  std::stable_sort(addresses.begin(), addresses.end(),
                   [&](const IpAddress& a, const IpAddress& b) { return rank(a) < rank(b); });
  return addresses;
}

/// Is this the address that stands in the port's GID table at `gid_index`? On InfiniBand GIDs are
/// not made of IP addresses.
bool has_gid(const Port& port, const IpAddress& address, int gid_index) {
  if (gid_index < 0 || port.transport != Transport::roce) return true;
  ibv_gid gid{};
  const auto bytes = address.as_v6();
  return ibv_query_gid(port.context.get(), port.number, gid_index, &gid) == 0 &&
         std::memcmp(gid.raw, bytes.data(), bytes.size()) == 0;
}

/// The address of the network interface that belongs to the port. librdmacm knows which it is, for
/// every kind of network: bind to each address of the host and look where that leads.
bool find_ip(Port& port, int gid_index) {
  for (IpAddress& address : host_addresses()) {
    rdma_cm_id* raw = nullptr;
    if (rdma_create_id(port.channel.get(), &raw, nullptr, RDMA_PS_TCP) != 0)
      throw failure("cannot set up RDMA connections", errno);
    const CmId id(raw);
    if (rdma_bind_addr(raw, address.socket_address()) != 0 || !port.has(*raw)) continue;
    if (!has_gid(port, address, gid_index)) continue;
    port.ip = address;
    return true;
  }
  return false;
}

/// One device whose ports are tried in turn. @returns false with the reason when none will do
bool try_device(Port& port, const VerbsOptions& options, std::uint8_t wanted_port,
                std::string& why) {
  const std::string name = port.device_name();
  if (ibv_query_device(port.context.get(), &port.device) != 0)
    throw failure("cannot query " + name, errno);
  if (wanted_port > port.device.phys_port_cnt) {
    throw Error(Error::Kind::bad_option, name + " has no port " + std::to_string(wanted_port) +
                                             "; its last port is " +
                                             std::to_string(port.device.phys_port_cnt));
  }
  const ibv_transport_type type = port.context->device->transport_type;
  if (type != IBV_TRANSPORT_IB && type != IBV_TRANSPORT_IWARP) {
    why = name + " has no reliable connections";
    return false;
  }
  for (std::uint8_t number = 1; number <= port.device.phys_port_cnt; ++number) {
    if (wanted_port != 0 && number != wanted_port) continue;
    port.number = number;
    if (ibv_query_port(port.context.get(), number, &port.attributes) != 0)
      throw failure("cannot query " + port.name(), errno);
    if (port.attributes.state != IBV_PORT_ACTIVE) {
      why = port.name() + " is not active (" + ibv_port_state_str(port.attributes.state) +
            "): check its cable and its network interface";
      continue;
    }
    port.transport = transport_of(*port.context->device, port.attributes);
    if (ibv_gid gid{}; ibv_query_gid(port.context.get(), number, 0, &gid) == 0)
      port.subnet_prefix = gid.global.subnet_prefix;
    if (find_ip(port, options.gid_index)) return true;
    why = port.name() + " has no IP address" +
          (options.gid_index >= 0 ? " at GID index " + std::to_string(options.gid_index)
                                  : std::string()) +
          ", which connections are made through: give one to its network interface (on InfiniBand: "
          "IPoIB)";
  }
  return false;
}

}  // namespace

bool Port::has(const rdma_cm_id& id) const noexcept {
  return id.verbs != nullptr && id.port_num == number &&
         std::strcmp(ibv_get_device_name(id.verbs->device), device_name()) == 0;
}

Port find_port(const VerbsOptions& options) {
  check(options);
  const PortName wanted = parse_port_name(options.device);
  const std::vector<std::string> known = kernel_devices();
  const DeviceList devices = list_devices(known);
  std::string why;
  Error::Kind kind = Error::Kind::no_device;
  for (ibv_device** device = devices.get(); *device != nullptr; ++device) {
    if (!wanted.device.empty() && wanted.device != ibv_get_device_name(*device)) continue;
    try {
      Port port;
      port.context = open_device(**device);
      port.channel = open_channel();
      if (try_device(port, options, wanted.port, why)) return port;
      kind = Error::Kind::no_device;
    } catch (const Error& error) {
      // Another device may still do.
      if (!wanted.device.empty()) throw;
      why = error.what();
      kind = error.kind;
    }
  }
  if (!wanted.device.empty() && why.empty()) {
    throw Error(Error::Kind::no_device,
                "there is no RDMA device " + wanted.device + "; this host has " + join(known));
  }
  throw Error(kind, why);
}

}  // namespace overlap::fabric::verbs
