// Clients, whose areas may hold anything.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/client.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace overlap::progressd {
namespace {

/// A pipe that came from a client, opened anew: it must not make this process wait, whatever the
/// client does to its own descriptor.
Descriptor reopen_pipe(const Descriptor& pipe) noexcept {
  // Asked first, as a file that is no pipe may be on a file system that does not answer.
  if (!pipe || fcntl(pipe.get(), F_GETPIPE_SZ) < 0) return {};
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", pipe.get());
  return Descriptor(::open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace

std::shared_ptr<Client> Client::of(const node::Peer& peer, const node::HelperRequest& hello,
                                   node::Attached attached) {
  if (!attached[0] || fcntl(attached[0].get(), F_GET_SEALS) < 0) return nullptr;
  node::MappedArea area = node::MappedArea::map(std::move(attached[0]));
  if (!area) return nullptr;
  auto client = std::make_shared<Client>();
  client->peer = peer;
  client->hello = hello;
  client->area = std::move(area);
  if (Descriptor ringing = reopen_pipe(attached[1]))
    client->rope_ = node::BellRope(std::move(ringing));
  return client;
}

bool Client::can_ring() noexcept {
  if (rope_) return true;
  constexpr unsigned tries_max = 16;  // a client that changes its mind again and again gets no help
  const std::uint64_t inode = area->bell_inode.load(std::memory_order_acquire);
  if (inode == 0 || inode == tried_inode_ || tries_ == tries_max) return false;
  tried_inode_ = inode;
  ++tries_;
  rope_ = node::BellRope::to(*area.get());
  return static_cast<bool>(rope_);
}

void Client::watch(std::uint32_t now_ms, std::uint32_t ahead_ms) noexcept {
  if (is_watched() && published_ms_ == now_ms) return;
  if (!can_ring()) return;
  published_ms_ = now_ms;
  watched_.store(true, std::memory_order_relaxed);
  node::watch_until(*area.get(), now_ms, ahead_ms);
}

void Client::unwatch() noexcept {
  watched_.store(false, std::memory_order_relaxed);
  node::stop_watching(*area.get());
}

Taken Client::take() noexcept {
  kept_count_ = 0;
  const bool any = node::take_each_arrival(*area.get(), [&](const node::Envelope& arrival) {
    if (kept_count_ < kept_.size() && node::is_waited_for(*area.get(), arrival))
      kept_[kept_count_++] = arrival;
  });
  if (!any) return Taken::nothing;
  return kept_count_ > 0 ? Taken::wanted : Taken::unwanted;
}

bool Client::is_still_waited_for() const noexcept {
  for (std::size_t i = 0; i < kept_count_; ++i) {
    if (node::is_waited_for(*area.get(), kept_[i])) return true;
  }
  return false;
}

bool Client::wake() noexcept {
  if (!can_ring() || !node::claim_wake(*area.get())) return false;
  area->wakes.fetch_add(1, std::memory_order_relaxed);
  rope_.ring();
  return true;
}

}  // namespace overlap::progressd
