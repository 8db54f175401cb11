// What goes wrong, in words for users.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_fault.hpp"

#include <sys/resource.h>

#include "opal/mca/common/overlap/message.hpp"

#include "btl_ring_endpoint.hpp"
#include "btl_ring_tunables.hpp"

namespace overlap::ring {
namespace {

std::string peer_name(const Endpoint& endpoint) {
  return std::string("process ") + OPAL_NAME_PRINT(endpoint.proc.proc_name) + " on " +
         hostname(&endpoint.proc);
}

std::string limit_text() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY)
    return "The limit on locked memory is not the reason; is memory itself short?";
  return "The limit on locked memory is " + std::to_string(limit.rlim_cur / 1024) +
         " KiB: raise it (ulimit -l unlimited; for all users a file in /etc/security/limits.d with "
         "\"* - memlock unlimited\"; for services "
         "LimitMEMLOCK=infinity), or use smaller or fewer buffers (btl_ring_polling_set, "
         "btl_ring_ring_slots, btl_ring_receive_buffers).";
}

template <class Body>
void say(Body&& body) noexcept {
  try {
    show_message(body());
  } catch (...) {
    show_message("btl/ring: something failed, and no memory is left to say what");
  }
}

[[noreturn]] void give_up() noexcept { end_job(1); }

}  // namespace

void tell_lost(const Endpoint& endpoint, const std::string& why) noexcept {
  say([&] {
    return "btl/ring: the connection to " + peer_name(endpoint) + " is lost: " + why + ".";
  });
}

void tell_connecting(const Endpoint& endpoint, const std::string& why,
                     std::int64_t seconds) noexcept {
  static bool told = false;
  constexpr std::int64_t silent_s = 600;  // whoever computes that long is told of once
  const bool once = seconds >= silent_s && !told;
  if (tunables.verbose < 1 && !once) return;
  told = told || once;
  say([&] {
    return "btl/ring: no connection to " + peer_name(endpoint) + " after " +
           std::to_string(seconds) + " s: " + why +
           ". It is tried again as long as something is to be sent there. Does that process "
           "compute "
           "without calling MPI, or do firewalls or routes keep the hosts apart?";
  });
}

void tell_registration_refused(std::size_t bytes) noexcept {
  static bool told = false;
  if (told || tunables.verbose < 1) return;
  told = true;
  const int error = errno;
  opal_output(0,
              "btl/ring: registering %zu bytes was refused (%s); such messages are copied or sent "
              "in fragments instead. %s",
              bytes, std::strerror(error), limit_text().c_str());
}

void tell_no_room(std::size_t bytes) noexcept {
  static bool told = false;
  if (told) return;
  told = true;
  say([&] {
    return "btl/ring: /dev/shm has no room for a ring of " + std::to_string(bytes) +
           " bytes; messages take the slower send/receive channel instead. Make room (df /dev/shm; "
           "in a container give it a larger one, for instance docker run --shm-size), or use fewer "
           "or smaller buffers (btl_ring_polling_set, btl_ring_ring_slots, btl_ring_slot_bytes).";
  });
}

void refuse_registration(const char* what, std::size_t bytes) noexcept {
  const int error = errno;
  say([&] {
    return "btl/ring cannot register " + std::string(what) + " (" + std::to_string(bytes) +
           " bytes): " + std::strerror(error) + ". " + limit_text();
  });
  give_up();
}

void refuse_message(const Endpoint& endpoint, const char* fault) noexcept {
  say([&] {
    return "btl/ring: a message of " + peer_name(endpoint) + " cannot be understood: " + fault +
           ". Do all nodes have the same version of these components?";
  });
  give_up();
}

void refuse_to_go_on() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    say([] { return std::string("btl/ring: no memory is left to receive messages"); });
  } catch (const std::exception& error) {
    say([&] { return std::string("btl/ring cannot go on: ") + error.what() + "."; });
  } catch (...) {
    say([] { return std::string("btl/ring cannot go on"); });
  }
  give_up();
}

}  // namespace overlap::ring
