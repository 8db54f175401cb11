// Send and receive requests: what a BTL, the protocol and MPI need of one message.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pml_speculative.hpp"

#include "ompi/mca/common/overlap/protocol/request_life.hpp"
#include "ompi/mca/common/overlap/registration.hpp"
#include "ompi/mca/common/overlap/transfer.hpp"

namespace overlap::speculative {

/// An eager message whose BTL had no room: its request is not complete before it has been sent.
class WaitingEager final : public Work {
 public:
  explicit WaitingEager(SendRequest& request) noexcept : request_(request) {}
  /// Queue it behind what waits already. @param header  copied; its length in [16,
  /// header_most_bytes]
  void wait(Endpoint& endpoint, mca_btl_base_tag_t tag, std::span<const std::byte> header);
  bool try_again() override;

 private:
  [[nodiscard]] bool try_inject(const Rail& rail, std::span<const std::byte> header,
                                std::size_t bytes);

  SendRequest& request_;
  std::vector<std::byte> packed_;  ///< header and data that had to be packed; mostly empty
  mca_btl_base_tag_t tag_ = 0;
  std::uint8_t header_bytes_ = 0;
  static constexpr std::size_t header_most_bytes = sizeof(EraPrefix) + sizeof(EagerSyncHeader);
  std::array<std::byte, header_most_bytes> header_{};
};

/// The write of a send into its receiver's buffer.
class SendTransfer final : public Transfer {
 public:
  explicit SendTransfer(SendRequest& request) noexcept : request_(request) {}
  void start_write();

 private:
  std::span<const std::byte> end_message(mca_btl_base_tag_t& tag) override;
  void posted(bool end_behind) override;
  void moved(std::uint64_t bytes) override;
  void ended(bool ok) override;
  void refused_for_good(const Rail& rail) override;

  SendRequest& request_;
  DoneHeader done_{};
};

/// The read of a receive out of its sender's buffer.
class ReceiveTransfer final : public Transfer {
 public:
  explicit ReceiveTransfer(ReceiveRequest& request) noexcept : request_(request) {}
  void start_read();

 private:
  [[nodiscard]] bool unpack_copy(const Endpoint& endpoint);
  std::span<const std::byte> end_message(mca_btl_base_tag_t& tag) override;
  void posted(bool end_behind) override;
  void moved(std::uint64_t bytes) override;
  void ended(bool ok) override;
  void refused_for_good(const Rail& rail) override;

  ReceiveRequest& request_;
  DoneHeader done_{};
};

/// Room of a BTL for one fragment of any length, kept from others until it is needed.
///
/// @thread  progress lock held
class FragmentRoom {
 public:
  /// @returns  false: there is none, and nothing is kept
  [[nodiscard]] bool keep(const Rail& rail);
  /// Let a fragment of so many bytes, with its header, have it. @returns  false: none was kept
  [[nodiscard]] bool use(std::size_t bytes) noexcept;
  void drop() noexcept;

 private:
  [[nodiscard]] bool give_back(mca_btl_base_descriptor_t*& kept) noexcept;

  mca_bml_base_btl_t* bml_btl_ = nullptr;
  mca_btl_base_descriptor_t* long_ = nullptr;
  mca_btl_base_descriptor_t* short_ = nullptr;  ///< BTLs keep those up to btl_eager_limit apart
};

/// The payload of a send as fragments, where neither side can access the other's memory.
///
/// The receiver of a message whose caller waits may be in MPI for it alone, and must not wait for
/// processes that compute with fragments of this one in front of them. So such a message has a
/// fragment of its own from before its RTS until it has been pushed: it never waits for room.
class Fragments final : public Work {
 public:
  explicit Fragments(SendRequest& request) noexcept : request_(request) {}
  /// Before the RTS of a message whose caller waits. @returns  false: there is no room
  [[nodiscard]] bool keep_room(const Rail& rail) { return room_.keep(rail); }
  /// The message has ended, pushed or not.
  void drop_room() noexcept { room_.drop(); }
  /// Send op.take_bytes as fragments to op.receive.
  void start();
  void fragment_ended();
  bool try_again() override;

 private:
  enum class Pushed : std::uint8_t { in_flight, no_room, ended };
  [[nodiscard]] Pushed push();
  void push_or_wait();
  [[nodiscard]] bool try_send_one();
  [[nodiscard]] mca_btl_base_descriptor_t* take_fragment(const Rail& rail, std::size_t& bytes);
  [[nodiscard]] std::uint32_t in_flight_max() const noexcept;

  SendRequest& request_;
  FragmentRoom room_;
  std::uint64_t sent_bytes_ = 0;
  std::uint32_t in_flight_ = 0;
  bool pushing_ = false;
};

/// How the data of an RTS comes, above all where its sender sits in MPI until it is here.
struct BlockingCopy {
  CopyWay way = CopyWay::read;
  bool awaited = false;          ///< counted in AwaitedCopies
  bool crosses = false;          ///< this process waits in MPI_Send, too
  std::uint64_t started_ns = 0;  ///< 0: nobody measures it

  /// The message is here.
  void end(std::uint64_t bytes) noexcept;
};

/// A message that could have gone eagerly, and is read.
struct EagerRead {
  bool outstanding = false;
  EagerReads::Choice choice;
  std::uint64_t started_ns = 0;  ///< 0: not timed
};

/// In front of what it belongs to.
template <class Request>
struct Owner {
  Request* request = nullptr;
};
/// A protocol's operation that knows its request.
template <class Op, class Request>
struct OwnedOp : Owner<Request>, Op {};

// The first member makes each one a request of Open MPI's free lists, debuggers and MPI_Bsend.

struct SendRequest {
  mca_pml_base_send_request_t base;
  OwnedOp<SendOp, SendRequest> op;
  RequestLife life;
  Demand demand;
  Endpoint* endpoint;  ///< that the message goes to
  bool in_call;        ///< the call that makes it has not returned: nobody else knows it
  bool buffered;  ///< MPI_Bsend has packed the data elsewhere: complete towards MPI since its start
  EagerRead read;
  Registration exposed;  ///< for the receiver's read
  SendTransfer transfer;
  Fragments fragments;
  WaitingEager eager;

  [[nodiscard]] ompi_request_t& ompi() noexcept { return base.req_base.req_ompi; }
};

// First what every message needs: a window of small ones stays in the first-level cache if each
// request takes few lines of it.
struct ReceiveRequest {
  mca_pml_base_recv_request_t base;
  RequestLife life;
  Demand demand;
  bool contiguous;
  bool converter_ready;
  bool caller_waits;  ///< in MPI until it is complete: MPI_Recv, MPI_Mrecv
  bool in_call;       ///< the call that makes it has not returned: nobody else knows it
  OwnedOp<ReceiveOp, ReceiveRequest> op;
  BlockingCopy copy;
  Registration exposed;  ///< for the sender's write
  ReceiveTransfer transfer;

  [[nodiscard]] ompi_request_t& ompi() noexcept { return base.req_base.req_ompi; }
};

extern "C" {
extern opal_class_t overlap_speculative_send_request_class;
extern opal_class_t overlap_speculative_receive_request_class;
}

[[nodiscard]] inline SendRequest& request_of(SendOp& op) noexcept {
  return *static_cast<OwnedOp<SendOp, SendRequest>&>(op).request;
}
[[nodiscard]] inline ReceiveRequest& request_of(ReceiveOp& op) noexcept {
  return *static_cast<OwnedOp<ReceiveOp, ReceiveRequest>&>(op).request;
}

/// Where the bytes of a request begin, when they are contiguous.
[[nodiscard]] inline void* data_start(const SendRequest& request) noexcept {
  const mca_pml_base_send_request_t& base = request.base;
  if (base.req_addr != base.req_base.req_addr) return const_cast<void*>(base.req_addr);
  return static_cast<char*>(base.req_base.req_addr) + base.req_base.req_datatype->super.true_lb;
}
[[nodiscard]] inline void* data_start(const ReceiveRequest& request) noexcept {
  return static_cast<char*>(request.base.req_base.req_addr) +
         request.base.req_base.req_datatype->super.true_lb;
}
/// Can the other side take a send's bytes as they lie in memory?
[[nodiscard]] inline bool is_contiguous(const SendRequest& request) noexcept {
  return opal_convertor_need_buffers(&request.base.req_base.req_convertor) == 0;
}

/// Take a request out of its free list. @throws std::bad_alloc  @thread  progress lock held
[[nodiscard]] SendRequest& take_send_request();
[[nodiscard]] ReceiveRequest& take_receive_request();
/// Give up a request: its references are dropped. @thread  progress lock NOT held
void release(SendRequest& request) noexcept;
void release(ReceiveRequest& request) noexcept;
/// The caller of a blocking call needs its request no more. @thread  progress lock NOT held
template <class Request>
void give_up(Request& request) noexcept {
  bool last = false;
  {
    const Entry entry;
    last = request.life.free();
  }
  if (last) release(request);
}

/// The protocol, or the BTL that has taken an eager message, is done with a request. It completes
/// now, in the completion queue, or when the last hold is released. @thread  progress lock held
void end(SendRequest& request);
void end(ReceiveRequest& request, bool cancelled);
/// The same of a receive that an eager message has matched: no data has moved but its own.
void end_eager(ReceiveRequest& request);
/// A message of the request needs this process no more. @thread  progress lock held
void let_go_send(void* request);
void let_go_receive(void* request);
/// A message that its receiver was to read has ended. @thread  progress lock held
void end_read(SendRequest& request) noexcept;
/// Complete one request of the completion queue. @thread  progress lock NOT held
void complete(ompi_request_t& request) noexcept;

[[nodiscard]] ReceiveRequest* make_receive(void* buffer, std::size_t count, ompi_datatype_t* type,
                                           int source, int tag, ompi_communicator_t* comm,
                                           bool persistent);
/// @thread  progress lock held
void activate(ReceiveRequest& request) noexcept;
void start_receive(ReceiveRequest& request);
/// Hand an eager message that had arrived before to the receive that matches it.
void finish_arrived(ReceiveRequest& request, Arrived& message);
/// Report what has come of a complete one, and give the request back.
/// @thread  progress lock NOT held
[[nodiscard]] int take_result(ReceiveRequest& request, ompi_status_public_t* status);
/// @param message  set by a buffered send: each start is a message of its own, because the last one
///                 may still be in flight when the request is started again. For give_up().
[[nodiscard]] int start_send(SendRequest& request, SendRequest*& message);

}  // namespace overlap::speculative
