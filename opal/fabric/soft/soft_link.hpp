// A client's control socket to the device process: opening it, asking, and the device's end.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "control.hpp"
#include "layout.hpp"
#include "opal/fabric/fabric.hpp"

namespace overlap::fabric::soft {

/// What the device hands to a client that has said hello.
struct Welcome {
  Mapping page;         ///< DevicePage
  Mapping doorbells;    ///< Doorbells
  Descriptor doorbell;  ///< eventfd
  Descriptor arrivals;  ///< socket, non-blocking; the other end is the device process's alone
  std::uint32_t client = 0;
  std::uint64_t instance = 0;  ///< of the device process
  int device_pid = 0;
};

/// Gets what comes over the socket unasked. Called inside SoftLink's functions.
class LinkUser {
 public:
  virtual ~LinkUser() = default;
  virtual void take_event(const Message& message) = 0;
  /// Nothing will come any more. Once.
  virtual void device_lost(const char* why) = 0;
};

class SoftLink {
 public:
  /// Connect to the device of a domain; start its process if there is none. @throws Error
  SoftLink(const SoftOptions& options, LinkUser& user);

  /// Its mappings are the caller's to take.
  [[nodiscard]] Welcome& welcome() noexcept { return welcome_; }
  [[nodiscard]] bool lost() const noexcept { return lost_why_ != nullptr; }

  /// Ask and wait for the reply. @returns  its errno; EPIPE when the device process has ended
  [[nodiscard]] int ask(const Message& message, Message& reply, const int* descriptors = nullptr,
                        std::size_t count = 0) noexcept;
  /// The same for things that are being made. @throws Error(system) naming `what`
  [[nodiscard]] std::uint32_t make(const Message& message, int descriptor, const char* what);
  void drop(Ask what, std::uint32_t number) noexcept;
  /// Take what has come unasked, and see whether the device process still lives; a system call.
  void look_for_end() noexcept;

 private:
  void open(const SoftOptions& options);
  [[nodiscard]] bool say_hello(const SoftOptions& options);
  void check_access();
  void lose(const char* why) noexcept;

  LinkUser& user_;
  Descriptor socket_;
  Welcome welcome_;
  const char* lost_why_ = nullptr;
};

}  // namespace overlap::fabric::soft
