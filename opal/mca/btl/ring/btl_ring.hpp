// The process's one transport: what it owns, and the order in which it is worked on.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <cstdint>
#include <memory>
#include <span>

#include "opal/fabric/fabric.hpp"

#include "btl_ring_bulk.hpp"
#include "btl_ring_busy.hpp"
#include "btl_ring_connect.hpp"
#include "btl_ring_endpoint.hpp"
#include "btl_ring_fragments.hpp"
#include "btl_ring_frequent.hpp"
#include "btl_ring_incoming.hpp"
#include "btl_ring_outgoing.hpp"
#include "btl_ring_peers.hpp"
#include "btl_ring_queue_pairs.hpp"
#include "btl_ring_receive.hpp"
#include "btl_ring_registration.hpp"
#include "btl_ring_send.hpp"
#include "btl_ring_sent.hpp"
#include "btl_ring_upper.hpp"
#include "peer_buffers.hpp"
#include "completions.hpp"
#include "deferred_failures.hpp"
#include "receive_buffers.hpp"
#include "registered_memory.hpp"
#include "segment.hpp"

namespace overlap::ring {

/// Owns everything that this component keeps per process. Polls rings, completions and events, and
/// gives each completion to the part that has posted its request.
///
/// @thread  Guard held
class Transport final : private ConnectionObserver {
 public:
  /// @throws fabric::Error, std::runtime_error  one sentence for users
  Transport(std::unique_ptr<fabric::Device> device, const Network& network);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  int progress();
  /// The same, but what asks Open MPI for processes or ends jobs is left to progress():
  /// connections with strangers, and failures.
  int progress_in_thread();
  [[nodiscard]] int arrival_descriptor() const noexcept { return device_->arrival_descriptor(); }
  void arm_arrivals() noexcept { device_->arm_arrivals(); }
  /// Does something wait until what was posted has ended, for peers to be woken, or for the next
  /// attempt to connect? Other connections are told by events.
  [[nodiscard]] bool is_waiting() const noexcept {
    return !wake_ups_.empty() || connector_.awaits_retry() ||
           busy_.any([](const Endpoint& endpoint) {
             return (!endpoint.waiting.empty() && endpoint.messages.established()) ||
                    (!endpoint.bulk_waiting.empty() && endpoint.bulk.established());
           });
  }
  /// As BtlCapability::expect. May throw std::bad_alloc.
  void expect(Handle& peer, std::uint32_t senders);
  /// Let no peer sleep over what has been sent to it: nobody takes turns soon.
  void wake_now() { wake_peers(true); }
  void drop(std::span<Handle* const> peers) noexcept;  ///< entries may be null

  [[nodiscard]] const fabric::Capabilities& capabilities() const noexcept {
    return device_->capabilities();
  }
  [[nodiscard]] UpperLayer& upper() noexcept { return upper_; }
  [[nodiscard]] Peers& peers() noexcept { return peers_; }
  [[nodiscard]] RegistrationCache& registrations() noexcept { return registrations_; }
  [[nodiscard]] FrequentBuffers& frequent() noexcept { return frequent_; }
  [[nodiscard]] FragmentPool& fragments() noexcept { return fragments_; }
  [[nodiscard]] SentFragments& sent() noexcept { return sent_; }
  [[nodiscard]] Sender& sender() noexcept { return sender_; }
  [[nodiscard]] Bulk& bulk() noexcept { return bulk_; }

 private:
  // ConnectionObserver
  void on_established(Connection& connection) override;
  void take_last_messages(Endpoint& endpoint) override;

  int move(bool in_thread);
  void wake_peers(bool at_once);
  int poll_completions();
  void on_completion(const fabric::Completion& completion);
  void handle_failures();
  void on_failure(const fabric::Completion& completion);
  [[nodiscard]] Connection* sender_of(const fabric::Completion& completion) const noexcept;
  int serve_busy();
  void serve(Endpoint& endpoint);
  [[nodiscard]] bool try_say_goodbye(Endpoint& endpoint) noexcept;
  void part(std::span<Endpoint* const> peers) noexcept;
  void release_endpoint(Endpoint& endpoint) noexcept;

  // What uses another one stands behind it, and goes before it.
  std::unique_ptr<fabric::Device> device_;
  UpperLayer upper_;
  BusyEndpoints busy_;
  RegistrationCache registrations_;
  RegisteredMemory memory_;
  std::unique_ptr<Segment> segment_;
  Completions completions_;
  ReceiveBuffers receives_;
  PeerBuffers send_buffers_;
  FrequentBuffers frequent_;
  FragmentPool fragments_;
  SentFragments sent_;
  WakeUps<Endpoint> wake_ups_;
  Peers peers_;
  QueuePairs queue_pairs_;
  Connector connector_;
  Sender sender_;
  Bulk bulk_;
  IncomingRings in_;
  OutgoingRings out_;
  Receiver receiver_;
  DeferredFailures failures_;
};

extern Transport* transport;  ///< from component init to module finalize

}  // namespace overlap::ring
