// The bytes of one large message, by puts or by gets.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <array>
#include <cstdint>
#include <span>

#include "ompi/mca/common/overlap/endpoint.hpp"
#include "ompi/mca/common/overlap/registration.hpp"

namespace overlap {

/// A put or get in steps no longer than a BTL takes, over one rail or striped over several.
///
///   idle --start--> posting --all posted--> in flight --last piece ends--> idle, ended(true)
///                     |  ^
///               no room  room again (try_again)
///                     v  |
///                    waiting <--a copy that is left to a later turn-- idle
///
/// Where a put is a message to the BTL it is paced (Endpoint::paces_puts), and waits for its piece
/// to be sent as it waits for room.
///
/// Whatever fails makes it end with ended(false) when nothing of it is in flight any more; the
/// caller then moves all the bytes another way. A rail that has refused for good is not asked again
/// for that direction; other rails are.
///
/// @thread  progress lock held for every call
class Transfer : public Work {
 public:
  enum class Direction : std::uint8_t { put, get };

  struct Job {
    Endpoint* endpoint = nullptr;
    Direction direction = Direction::put;
    std::byte* local = nullptr;
    std::uint64_t remote_address = 0;
    std::span<const std::byte> remote_key;  ///< lives as long as the transfer; empty: none needed
    const void* came_over = nullptr;  ///< BTL over which address and key came; nullptr: not known
    std::uint64_t bytes = 0;          ///< not 0
    bool speaks_for_rail = true;      ///< a refusal is of the rail, and not of this memory alone
  };

  /// Post the transfer, as far as there is room. Its results come through the virtual functions,
  /// possibly before this returns.
  void start(const Job& job);
  /// A piece has ended. @param btl  that has carried it
  void piece_ended(const mca_btl_base_module_t* btl, std::uint64_t bytes, bool ok);
  /// Offer what found no room.
  [[nodiscard]] bool try_again() override;

  [[nodiscard]] bool idle() const noexcept { return state_ == State::idle; }
  /// Rails that carried the last transfer, for messages that must follow its bytes: one each.
  [[nodiscard]] std::size_t rails_used() const noexcept { return lane_count_; }
  [[nodiscard]] Rail& rail(std::size_t i) const noexcept { return *lanes_[i].memory.rail(); }
  /// Give up the registrations. In state idle.
  void release() noexcept {
    if (lane_count_ != 0) [[unlikely]]
      drop_lanes();
  }

 protected:
  Transfer() = default;
  ~Transfer() = default;
  /// A message that the BTL may post right behind the bytes, or nothing (chained completion).
  /// @param tag  of the message
  [[nodiscard]] virtual std::span<const std::byte> end_message(mca_btl_base_tag_t& tag) = 0;
  /// All of it is in flight, or waits for room. @param end_behind  with the end message behind it
  virtual void posted(bool end_behind) = 0;
  /// Bytes have moved.
  virtual void moved(std::uint64_t bytes) = 0;
  /// Nothing of it is in flight any more. @param ok  false: the bytes must go another way
  virtual void ended(bool ok) = 0;
  /// A rail has refused this direction for good.
  virtual void refused_for_good(const Rail& rail) = 0;

 private:
  enum class State : std::uint8_t { idle, posting, waiting, in_flight };
  enum class Posted : std::uint8_t { everything, no_room, pass_over, refused };
  static constexpr std::size_t lanes_max = 4;

  /// One rail's share: the bytes [next, end) are not posted yet.
  struct Lane {
    Registration memory;
    std::uint64_t begin = 0;
    std::uint64_t next = 0;
    std::uint64_t end = 0;
    std::uint64_t in_flight_bytes = 0;
  };

  void drop_lanes() noexcept;
  [[nodiscard]] bool plan();
  [[nodiscard]] bool add_lane(Rail& rail, std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] bool usable(const Rail& rail) const noexcept;
  [[nodiscard]] Rail* rail_for_key();
  [[nodiscard]] bool plan_stripes();
  bool post();
  [[nodiscard]] Posted post_lane(Lane& lane, std::uint64_t& pass_bytes);
  [[nodiscard]] bool is_paced() const noexcept;
  [[nodiscard]] std::uint64_t paced_bytes_of(const Lane& lane) const noexcept;
  void count(Lane& lane, std::uint64_t bytes) noexcept;
  void uncount(Lane& lane, std::uint64_t bytes) noexcept;
  [[nodiscard]] int post_piece(Lane& lane, std::uint64_t bytes);
  [[nodiscard]] bool chain_end();
  void rail_refused(Rail& rail);
  void settle();

  Job job_;
  std::array<Lane, lanes_max> lanes_;
  std::uint8_t lane_count_ = 0;
  State state_ = State::idle;
  bool failed_ = false;
  std::uint64_t in_flight_bytes_ = 0;
};

}  // namespace overlap
