// What goes wrong, in words for users. Each says it once.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace overlap::ring {

struct Endpoint;

void tell_lost(const Endpoint& endpoint, const std::string& why) noexcept;
/// @param seconds  since the first attempt has failed
void tell_connecting(const Endpoint& endpoint, const std::string& why,
                     std::int64_t seconds) noexcept;
void tell_registration_refused(std::size_t bytes) noexcept;
void tell_no_room(std::size_t bytes) noexcept;
[[noreturn]] void refuse_registration(const char* what, std::size_t bytes) noexcept;
[[noreturn]] void refuse_message(const Endpoint& endpoint, const char* fault) noexcept;
/// What was thrown where nobody can be told: in the catch clause.
[[noreturn]] void refuse_to_go_on() noexcept;

}  // namespace overlap::ring
