// What goes wrong, in words for users.
#include "btl_ring.hpp"

#include <sys/resource.h>

#include "opal/mca/common/overlap/message.hpp"

namespace overlap::ring {
namespace {

std::string peer_name(const Endpoint& endpoint) {
  return std::string("process ") + OPAL_NAME_PRINT(endpoint.proc.proc_name) + " on " +
         hostname(reinterpret_cast<const ompi_proc_t*>(&endpoint.proc));
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

[[noreturn]] void give_up() noexcept { abort_job(1); }

}  // namespace

void tell_lost(const Endpoint& endpoint, const std::string& why) noexcept {
  say([&] {
    return "btl/ring: the connection to " + peer_name(endpoint) + " is lost: " + why + ".";
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

void refuse_registration(const char* what, std::size_t bytes) noexcept {
  const int error = errno;
  say([&] {
    return "btl/ring cannot register " + std::string(what) + " (" + std::to_string(bytes) +
           " bytes): " + std::strerror(error) + ". " + limit_text();
  });
  give_up();
}

void refuse_connection(const Endpoint& endpoint, const char* why) noexcept {
  say([&] { return "btl/ring cannot connect to " + peer_name(endpoint) + ": " + why + "."; });
  give_up();
}

void refuse_message(const Endpoint& endpoint, const char* fault) noexcept {
  say([&] {
    return "btl/ring: a message of " + peer_name(endpoint) + " cannot be understood: " + fault +
           ". Do all nodes have the same version of these components?";
  });
  give_up();
}

void out_of_memory() noexcept {
  say([] { return std::string("btl/ring: no memory is left to receive messages"); });
  give_up();
}

}  // namespace overlap::ring
