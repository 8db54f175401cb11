// Hello, the answer, and the end of a helper.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/helper_client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>

namespace overlap::node {
namespace {

/// @returns  nullptr: no page of this version
const HelperPage* map_page(const Descriptor& file) noexcept {
  constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  // Files without seals are refused before anything asks their file system for something.
  const int found = file ? fcntl(file.get(), F_GET_SEALS) : -1;
  struct stat status {};
  if (found < 0 || (found & seals) != seals || fstat(file.get(), &status) != 0 ||
      status.st_size != sizeof(HelperPage))
    return nullptr;
  void* at = mmap(nullptr, sizeof(HelperPage), PROT_READ, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  const auto* page = static_cast<const HelperPage*>(at);
  if (page->magic == helper_magic && page->version == helper_version) return page;
  munmap(at, sizeof(HelperPage));
  return nullptr;
}

}  // namespace

HelperClient::State HelperClient::end(State state) noexcept {
  if (page_ != nullptr) munmap(const_cast<HelperPage*>(page_), sizeof(HelperPage));
  page_ = nullptr;
  socket_ = Descriptor();
  return state_ = state;
}

HelperClient::State HelperClient::ask(const Self& self, const MappedArea& area,
                                      const Descriptor& ringing, const std::string& which) noexcept
    try {
  leave();
  refusal_ = Refusal::none;
  if (!area) return end(State::absent);
  socket_ = connect_to(helper_socket_name(geteuid(), which));
  if (!socket_) return end(State::absent);
  if (Peer::of(socket_).user != geteuid()) {
    refusal_ = Refusal::other_user;
    return end(State::refused);
  }
  HelperRequest request;
  request.job = self.job;
  request.local_rank = self.local_rank;
  request.area_version = area_version;
  const Delivery delivery =
      ringing ? send_message(socket_, request, std::array{area.file().get(), ringing.get()})
              : send_message(socket_, request, std::array{area.file().get()});
  return delivery == Delivery::done ? state_ = State::asked : end(State::absent);
} catch (const std::bad_alloc&) {
  return end(State::absent);
}

HelperClient::State HelperClient::take_page(Attached& attached) noexcept {
  page_ = map_page(attached[0]);
  if (page_ != nullptr) return state_ = State::served;
  refusal_ = Refusal::other_version;
  return end(State::refused);
}

HelperClient::State HelperClient::look() noexcept {
  if (!socket_) return state_;
  HelperAnswer answer;
  Attached attached;
  const Delivery delivery = receive_message(socket_, answer, attached);
  if (delivery == Delivery::would_block) return state_;
  const bool readable = delivery == Delivery::done && answer.magic == helper_magic;
  if (!readable) return end(State::gone);
  if (answer.reply == HelperReply::welcome && state_ == State::asked) return take_page(attached);
  if (answer.reply == HelperReply::refused) {
    refusal_ = answer.refusal;
    return end(State::refused);
  }
  return end(State::gone);  // of no sense here: better without it
}

HelperClient::State HelperClient::await_answer(int timeout_ms) noexcept {
  if (state_ != State::asked) return state_;
  pollfd one{socket_.get(), POLLIN, 0};
  return poll(&one, 1, timeout_ms) > 0 ? look() : state_;
}

void HelperClient::leave() noexcept { end(State::none); }

void HelperClient::nudge_slow() noexcept {
  HelperRequest request;
  request.ask = HelperAsk::nudge;
  // A full socket holds nudges already; that the helper has gone, look() finds.
  static_cast<void>(send_message(socket_, request));
}

}  // namespace overlap::node
