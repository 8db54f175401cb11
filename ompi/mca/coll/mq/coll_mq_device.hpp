// The RDMA device of this process whose management queues carry barriers out: opened once, its
// events, and the barriers of each communicator on it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll_mq.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "opal/fabric/management_queue.hpp"

namespace overlap::coll_mq {

class Communicator;
class DeviceBarriers;

/// Where a connection request belongs: travels with it.
struct Introduction {
  std::uint64_t process = 0;
  std::uint32_t context = 0;
  std::int32_t source = 0;
  std::uint32_t version = 1;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Introduction) == 24 && sizeof(Introduction) <= fabric::private_max_bytes);

/// @thread  progress lock held for every call
class Device {
 public:
  explicit Device(std::unique_ptr<fabric::Device> fabric) : fabric_(std::move(fabric)) {}

  [[nodiscard]] fabric::Device& fabric() noexcept { return *fabric_; }
  void add(Communicator& communicator);
  void remove(Communicator& communicator) noexcept;
  /// Events of connections, lists that have ended. @returns  how many  @thread  MPI thread
  int poll();
  /// What the device has said of the last connection that failed.
  [[nodiscard]] const std::string& last_fault() const noexcept { return last_fault_; }
  /// A wait for something that only the device itself does. @throws nothing: a device that has
  /// ended lets every wait end
  void poll_events();

 private:
  struct Request {
    std::uint64_t number = 0;
    Introduction introduction;
  };

  void take(const fabric::Event& event);
  [[nodiscard]] bool answer(const Request& request);

  std::unique_ptr<fabric::Device> fabric_;
  std::map<std::uint32_t, Communicator*> all_;  ///< by context
  std::vector<Request> early_;  ///< for communicators that this process has not made yet
  std::string last_fault_;
};

/// nullptr: barriers are carried out by the interpreter
extern std::unique_ptr<Device>& device;

/// Open the device of the network that btl/ring is told to use, if that one has management queues.
/// Where it cannot be opened the job ends: all ranks must do the same.
void open_device();
/// What other processes reach it by; empty without one.
[[nodiscard]] std::vector<std::byte> device_address();
/// In what a process has published, behind so many bytes. @returns  nothing: it has no device
[[nodiscard]] std::optional<fabric::Address> address_in(std::span<const std::byte> published);

/// End the job: the device cannot carry out this communicator's barriers.
[[noreturn]] void abort_device(const Communicator& communicator, const std::string& what);

}  // namespace overlap::coll_mq
