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
#include <utility>
#include <vector>

#include "convert.hpp"
#include "excuse.hpp"
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

struct OpenedDevice {
  Context context;
  ibv_device_attr attributes{};

  [[nodiscard]] std::string name() const { return ibv_get_device_name(context->device); }
};

/// An active port of a device that has been opened.
struct Candidate {
  OpenedDevice* device;
  std::uint8_t number;
  ibv_port_attr attributes;

  [[nodiscard]] std::uint32_t mbytes_s() const noexcept {
    return rate_mbytes_s(attributes.active_speed, attributes.active_width);
  }
};

/// A host's slow adapter, for its file system or as a plain network card, may come first. What is
/// iWARP breaks connections where a message finds no receive.
bool goes_before(const Candidate& one, const Candidate& other) noexcept {
  const auto rank = [](const Candidate& each) {
    const ibv_device& device = *each.device->context->device;
    return std::pair(transport_of(device, each.attributes) != Transport::iwarp, each.mbytes_s());
  };
  return rank(one) > rank(other);
}

/// All devices, or the one that is wanted.
/// @throws Error  about the one that is wanted; what goes wrong with others is an excuse
std::vector<OpenedDevice> open_devices(const DeviceList& list, const PortName& wanted,
                                       Excuse& excuse) {
  std::vector<OpenedDevice> opened;
  for (ibv_device** device = list.get(); *device != nullptr; ++device) {
    if (!wanted.device.empty() && wanted.device != ibv_get_device_name(*device)) continue;
    try {
      OpenedDevice made{open_device(**device), {}};
      if (ibv_query_device(made.context.get(), &made.attributes) != 0)
        throw failure("cannot query " + made.name(), errno);
      opened.push_back(std::move(made));
    } catch (const Error& error) {
      if (!wanted.device.empty()) throw;
      excuse.note(error.kind, error.what());
    }
  }
  return opened;
}

/// @throws Error: bad_option
void add_active_ports(std::vector<Candidate>& candidates, OpenedDevice& device,
                      std::uint8_t wanted_port, Excuse& excuse) {
  const std::string name = device.name();
  const std::uint8_t count = device.attributes.phys_port_cnt;
  if (wanted_port > count) {
    throw Error(Error::Kind::bad_option, name + " has no port " + std::to_string(wanted_port) +
                                             "; its last port is " + std::to_string(count));
  }
  const ibv_transport_type type = device.context->device->transport_type;
  if (type != IBV_TRANSPORT_IB && type != IBV_TRANSPORT_IWARP) {
    excuse.note(Error::Kind::no_device, name + " has no reliable connections");
    return;
  }
  for (std::uint8_t number = 1; number <= count; ++number) {
    if (wanted_port != 0 && number != wanted_port) continue;
    Candidate port{&device, number, {}};
    const std::string port_name = name + ":" + std::to_string(number);
    if (ibv_query_port(device.context.get(), number, &port.attributes) != 0) {
      excuse.note(Error::Kind::system, failure("cannot query " + port_name, errno).what());
    } else if (port.attributes.state != IBV_PORT_ACTIVE) {
      excuse.note(Error::Kind::no_device, port_name + " is not active (" +
                                              ibv_port_state_str(port.attributes.state) +
                                              "): check its cable and its network interface");
    } else {
      candidates.push_back(port);
    }
  }
}

/// Make `port` of a candidate, whose device it takes if that has an address that connections can be
/// made through. @returns  false, and the device has not been taken
bool try_candidate(Port& port, const Candidate& candidate, int gid_index, Excuse& excuse) {
  port.context = std::move(candidate.device->context);
  port.device = candidate.device->attributes;
  port.number = candidate.number;
  port.attributes = candidate.attributes;
  port.transport = transport_of(*port.context->device, port.attributes);
  port.subnet_prefix = 0;
  if (ibv_gid gid{}; ibv_query_gid(port.context.get(), port.number, 0, &gid) == 0)
    port.subnet_prefix = gid.global.subnet_prefix;
  if (find_ip(port, gid_index)) return true;
  excuse.note(
      Error::Kind::no_device,
      port.name() + " has no IP address" +
          (gid_index >= 0 ? " at GID index " + std::to_string(gid_index) : std::string()) +
          ", which connections are made through: give one to its network interface (on InfiniBand: "
          "IPoIB)");
  candidate.device->context = std::move(port.context);
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
  Excuse excuse;
  std::vector<OpenedDevice> opened = open_devices(devices, wanted, excuse);
  if (!wanted.device.empty() && opened.empty()) {
    throw Error(Error::Kind::no_device,
                "there is no RDMA device " + wanted.device + "; this host has " + join(known));
  }
  std::vector<Candidate> candidates;
  for (OpenedDevice& device : opened) add_active_ports(candidates, device, wanted.port, excuse);
  std::stable_sort(candidates.begin(), candidates.end(), goes_before);
  if (!candidates.empty()) {
    Port port;
    port.channel = open_channel();
    for (const Candidate& candidate : candidates) {
      if (try_candidate(port, candidate, options.gid_index, excuse)) return port;
    }
  }
  throw excuse.error();
}

}  // namespace overlap::fabric::verbs
