// A communicator that this component serves, and all of them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll_mq.hpp"

#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ompi/mca/common/overlap/interrupt_thread.hpp"

#include "coll_mq_stream.hpp"
#include "protocol/message_head.hpp"
#include "protocol/sender_identity.hpp"

namespace overlap::coll_mq {

class DeviceBarriers;

/// BTL tag, out of the range 0x40..0x5f of PMLs; pml/speculative and osc/newrma use three others.
inline constexpr mca_btl_base_tag_t message_tag = 0x53;

enum class PlanKind : std::uint8_t { barrier, bcast, allreduce, reduce, alltoall, allgather };

/// What a plan is for, beside the communicator.
struct PlanKey {
  PlanKind kind{};
  Rank root = 0;
  std::uint32_t shape = 0;  ///< among several of the kind: a radix, or one of an enumeration
  std::uint32_t segments = 1;
  bool in_place = false;  ///< which other ranks need not know

  [[nodiscard]] auto operator<=>(const PlanKey&) const = default;
};

/// One communicator. Members of an intercommunicator are numbered as one group: first those of the
/// group whose first process has the smaller number.
///
/// @thread  progress lock held for every call
class Communicator {
 public:
  explicit Communicator(ompi_communicator_t& comm);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] ompi_communicator_t& comm() const noexcept { return comm_; }
  [[nodiscard]] Rank self() const noexcept { return head_.source; }
  [[nodiscard]] Rank size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t context() const noexcept { return head_.context; }
  /// @thread  MPI thread
  [[nodiscard]] ompi_proc_t& process_of(Rank rank) const noexcept;
  /// The nodes of all members, if several have several of them. @returns  empty: all are alike, or
  /// nobody knows; the same at all ranks. @thread  MPI thread
  [[nodiscard]] std::vector<Rank> nodes() const;

  /// What a peer that has sent messages called this communicator in them.
  [[nodiscard]] std::uint32_t birth_at(Rank peer) const noexcept {
    return senders_.birth_of(peer).count;
  }

  /// The start of a message.
  [[nodiscard]] const MessageHead& head() const noexcept { return head_; }
  /// What wakes a process that sleeps, for a message of this communicator (P4.10).
  [[nodiscard]] node::Envelope envelope() const noexcept {
    return {.kind = node::WaitKind::step, .context = head_.context, .source = head_.source};
  }

  /// Where collectives of calls run.
  [[nodiscard]] Stream& stream() noexcept { return *streams_.front(); }
  /// One for a persistent collective; the same one at all ranks.
  [[nodiscard]] Stream& add_stream();
  void remove_stream(Stream& stream) noexcept;
  /// Is there room for one more plan, if this is one? All ranks of a communicator call alike and
  /// get the same answer.
  [[nodiscard]] bool may_plan(PlanKey key) const;
  /// A plan of stream(), made with the first collective that needs it.
  template <class Make>
  [[nodiscard]] PlanId plan(const PlanKey& key, Make&& make) {
    const auto found = plans_.find(key);
    if (found != plans_.end()) [[likely]]
      return found->second;
    return add_plan(key, make());
  }

  /// Its barriers on the device; nullptr: there are none, or none yet.
  [[nodiscard]] DeviceBarriers* device_barriers() noexcept { return device_barriers_.get(); }
  /// The same, made on first use. @thread  MPI thread; there is a device
  [[nodiscard]] DeviceBarriers& make_device_barriers();

  /// A collective under way has no caller that waits: messages wake this process.
  void add_demand() noexcept;
  void drop_demand() noexcept;

  void receive(const MessageHead& head, std::span<const std::byte> payload);
  /// Only an MPI thread can do what is next.
  void leave_to_mpi_thread(Stream& stream);

 private:
  friend class Communicators;
  struct Early {
    MessageHead head;
    std::vector<std::byte> payload;
  };

  [[nodiscard]] Stream* find_stream(std::uint32_t number) noexcept;
  [[nodiscard]] PlanId add_plan(PlanKey key, Plan plan);

  // A plan takes some kilobytes.
  static constexpr std::size_t plans_max = 256;

  ompi_communicator_t& comm_;
  Rank size_ = 0;
  Rank first_remote_ = 0;  ///< of the other group's members, if it is an intercommunicator
  Rank first_local_ = 0;
  MessageHead head_;
  Senders senders_;
  std::vector<std::unique_ptr<Stream>> streams_;  ///< by number; [0] is the communicator's
  std::uint32_t streams_made_ = 0;
  std::vector<Early> early_;  ///< for streams that this rank has not made yet
  std::map<PlanKey, PlanId> plans_;
  std::size_t plans_agreed_ = 0;  ///< those that differ in more than in_place
  std::size_t waited_for_ = 0;    ///< collectives whose callers do something else
  std::unique_ptr<DeviceBarriers> device_barriers_;
  Demand demand_;
};

/// Communicators of this process, and messages of those to come.
///
/// @thread  progress lock held
class Communicators {
 public:
  void add(Communicator& communicator);
  /// It is freed.
  void remove(Communicator& communicator) noexcept;
  void receive(const MessageHead& head, std::span<const std::byte> payload);
  /// The messages of a communicator that is new now.
  void take_early(Communicator& communicator);

  /// Have this done in an MPI thread.
  void leave(Stream& stream);
  void forget(const Stream& stream) noexcept;
  int resume_left();

  /// Is a message that a sender shows this birth in one of a communicator that is gone?
  [[nodiscard]] bool is_buried(std::uint32_t context, const Birth& birth) const noexcept {
    return buried_.holds(context, birth);
  }

 private:
  // What is held without a communicator is bounded.
  static constexpr std::size_t early_max = 16384;

  std::unordered_map<std::uint32_t, Communicator*> all_;  ///< by context
  std::unordered_map<std::uint32_t, std::vector<Communicator::Early>> early_;
  std::size_t early_count_ = 0;
  Buried buried_;
  std::vector<Stream*> left_;
};
extern Communicators& communicators;

/// Register what takes messages in. For add_receiver().
[[nodiscard]] int register_receiver();

/// End the job: a sender may not have sent this.
[[noreturn]] void abort_bad_message(const Communicator& communicator, const MessageHead& head);
/// End the job: too many messages for communicators that this process has not made.
[[noreturn]] void abort_too_early(const MessageHead& head);

}  // namespace overlap::coll_mq
