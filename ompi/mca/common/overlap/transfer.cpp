// Puts and gets: which rails, which steps, what happens without room and after a failure.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/transfer.hpp"

#include "ompi/mca/common/overlap/settings.hpp"

#include <algorithm>

#include "ompi/mca/common/overlap/entry.hpp"

namespace overlap {
namespace {

// No BTL is asked for more at once: some keep a length in 32 bits.
constexpr std::uint64_t piece_max_bytes = std::uint64_t{1} << 30U;
// A BTL that takes less than this at a time emulates memory access with copies; fragments do that
// better.
constexpr std::uint64_t piece_min_bytes = std::uint64_t{1} << 16U;
// So much of a put delays an answer behind it, where a BTL queues puts: 1 ms at 1 Gbit/s. Less
// would be more system calls.
constexpr std::uint64_t paced_bytes = std::uint64_t{1} << 17U;
// The first piece: what the other side has sent with its grant is answered behind it.
constexpr std::uint64_t first_paced_bytes = std::uint64_t{1} << 15U;
// A share of a striped message is at least so long: below, a second rail gains nothing.
constexpr std::uint64_t stripe_min_bytes = std::uint64_t{1} << 17U;
constexpr std::uint64_t stripe_alignment_bytes = 4096;

constexpr bool out_of_resources(int rc) noexcept {
  return rc == OMPI_ERR_OUT_OF_RESOURCE || rc == OMPI_ERR_TEMP_OUT_OF_RESOURCE ||
         rc == OMPI_ERR_RESOURCE_BUSY;
}

constexpr bool is_aligned(std::uint64_t address, std::uint64_t bytes,
                          std::uint64_t alignment) noexcept {
  return alignment <= 1 || ((address | bytes) & (alignment - 1)) == 0;
}

std::uint64_t limit_bytes(const Rail& rail, Transfer::Direction direction) noexcept {
  const mca_btl_base_module_t& btl = rail.btl();
  const std::uint64_t limit =
      direction == Transfer::Direction::put ? btl.btl_put_limit : btl.btl_get_limit;
  return limit == 0 ? piece_max_bytes : std::min(limit, piece_max_bytes);
}

void on_piece(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void*,
              mca_btl_base_registration_handle_t*, void* bytes, void* transfer,
              int status) noexcept {
  in_callback([=] {
    static_cast<Transfer*>(transfer)->piece_ended(btl, reinterpret_cast<std::uintptr_t>(bytes),
                                                  status == OMPI_SUCCESS);
  });
}

}  // namespace

bool Transfer::usable(const Rail& rail) const noexcept {
  const bool put = job_.direction == Direction::put;
  const mca_btl_base_module_t& btl = rail.btl();
  const std::uint32_t flag = put ? MCA_BTL_FLAGS_PUT : MCA_BTL_FLAGS_GET;
  const std::uint64_t alignment = put ? btl.btl_put_alignment : btl.btl_get_alignment;
  return (rail.bml_btl->btl_flags & flag) != 0 && !(put ? rail.put_failed : rail.get_failed) &&
         limit_bytes(rail, job_.direction) >= piece_min_bytes &&
         is_aligned(job_.remote_address | reinterpret_cast<std::uintptr_t>(job_.local), job_.bytes,
                    alignment);
}

/// The rail that a description of memory came over, or the only one that can be meant: a BTL that
/// registers memory gives keys, and others give none.
Rail* Transfer::rail_for_key() {
  Rail* only = nullptr;
  std::size_t able = 0;
  for (Rail& rail : job_.endpoint->memory_rails()) {
    if (!usable(rail)) continue;
    if (&rail.btl() == job_.came_over) return &rail;
    if ((rail.btl().btl_register_mem != nullptr) == job_.remote_key.empty()) continue;
    only = &rail;
    ++able;
  }
  return able == 1 || job_.remote_key.empty() ? only : nullptr;
}

bool Transfer::add_lane(Rail& rail, std::uint64_t begin, std::uint64_t end) {
  const bool put = job_.direction == Direction::put;
  const mca_btl_base_module_t& btl = rail.btl();
  Lane& lane = lanes_[lane_count_];
  lane.begin = lane.next = begin;
  lane.end = end;
  lane.in_flight_bytes = 0;
  // The source of a put is only read: it may lie in constant memory.
  if (!lane.memory.pin(
          rail, job_.local + begin, end - begin,
          put ? btl.btl_put_local_registration_threshold : btl.btl_get_local_registration_threshold,
          put ? 0 : MCA_BTL_REG_FLAG_LOCAL_WRITE)) {
    return false;
  }
  ++lane_count_;
  return true;
}

/// Several rails that need no key: each gets a share by its weight. @returns  false: not striped
bool Transfer::plan_stripes() {
  if (!job_.remote_key.empty() || job_.bytes < 2 * stripe_min_bytes) return false;
  std::array<Rail*, lanes_max> rails{};
  std::size_t count = 0;
  double weight = 0;
  for (Rail& rail : job_.endpoint->memory_rails()) {
    if (count == lanes_max || !usable(rail) || rail.btl().btl_register_mem != nullptr) continue;
    rails[count++] = &rail;
    weight += rail.bml_btl->btl_weight;
  }
  if (count < 2 || weight <= 0) return false;
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < count && begin < job_.bytes; ++i) {
    const double share = static_cast<double>(job_.bytes) * rails[i]->bml_btl->btl_weight / weight;
    std::uint64_t bytes = std::max(static_cast<std::uint64_t>(share), stripe_min_bytes);
    bytes = (bytes + stripe_alignment_bytes - 1) / stripe_alignment_bytes * stripe_alignment_bytes;
    const std::uint64_t end = i + 1 == count ? job_.bytes : std::min(job_.bytes, begin + bytes);
    if (!add_lane(*rails[i], begin, end)) return false;
    begin = end;
  }
  return begin == job_.bytes;
}

bool Transfer::plan() {
  if (plan_stripes()) return true;
  release();
  Rail* rail = rail_for_key();
  return rail != nullptr && add_lane(*rail, 0, job_.bytes);
}

void Transfer::start(const Job& job) {
  job_ = job;
  failed_ = false;
  in_flight_bytes_ = 0;
  release();
  if (!plan()) {
    release();
    ended(false);
    return;
  }
  // A paced one does not overtake others: they would end late for it.
  const bool behind = is_paced() && job_.endpoint->has_waiting_transfer();
  const bool left = job_.endpoint->leaves_copy(job_.bytes);
  if (left) ++common::counters.interrupt_copies;
  if (behind || left) {
    state_ = State::waiting;
    posted(false);
  }
  if (behind || left || !post()) job_.endpoint->wait_as_transfer(*this);
}

bool Transfer::try_again() { return post(); }

int Transfer::post_piece(Lane& lane, std::uint64_t bytes) {
  mca_btl_base_module_t& btl = lane.memory.rail()->btl();
  auto* key = job_.remote_key.empty() ? nullptr
                                      : reinterpret_cast<mca_btl_base_registration_handle_t*>(
                                            const_cast<std::byte*>(job_.remote_key.data()));
  const auto function = job_.direction == Direction::put ? btl.btl_put : btl.btl_get;
  return function(&btl, lane.memory.rail()->bml_btl->btl_endpoint, job_.local + lane.next,
                  job_.remote_address + lane.next, lane.memory.handle(), key, bytes, 0,
                  MCA_BTL_NO_ORDER, on_piece, reinterpret_cast<void*>(bytes), this);
}

bool Transfer::is_paced() const noexcept {
  return job_.direction == Direction::put && job_.endpoint->paces_puts();
}

/// How much of a lane may be posted now. @returns  0: nothing before a piece has been sent
std::uint64_t Transfer::paced_bytes_of(const Lane& lane) const noexcept {
  if (!is_paced()) return lane.end - lane.next;
  if (lane.memory.rail()->queued_bytes != 0) return 0;
  const std::uint64_t left_bytes = lane.end - lane.next;
  return lane.next == lane.begin && left_bytes > paced_bytes ? first_paced_bytes : paced_bytes;
}

/// Bytes that are in flight from now on, or no longer.
void Transfer::count(Lane& lane, std::uint64_t bytes) noexcept {
  in_flight_bytes_ += bytes;
  lane.in_flight_bytes += bytes;
  lane.memory.rail()->queued_bytes += bytes;
}

void Transfer::uncount(Lane& lane, std::uint64_t bytes) noexcept {
  in_flight_bytes_ -= bytes;
  lane.in_flight_bytes -= bytes;
  lane.memory.rail()->queued_bytes -= bytes;
}

Transfer::Posted Transfer::post_lane(Lane& lane, std::uint64_t& pass_bytes) {
  const std::uint64_t limit =
      std::min(limit_bytes(*lane.memory.rail(), job_.direction), pass_bytes);
  while (lane.next < lane.end && !failed_) {
    if (pass_bytes == 0) return Posted::pass_over;
    const std::uint64_t now_bytes = paced_bytes_of(lane);
    if (now_bytes == 0) return Posted::no_room;
    const std::uint64_t bytes = std::min({limit, now_bytes, lane.end - lane.next, pass_bytes});
    count(lane, bytes);  // before the call: it may end inside
    const int rc = post_piece(lane, bytes);
    if (rc < 0) {
      uncount(lane, bytes);
      return out_of_resources(rc) ? Posted::no_room : Posted::refused;
    }
    lane.next += bytes;
    pass_bytes -= bytes;
  }
  return failed_ ? Posted::refused : Posted::everything;
}

/// Post what is left, one pass at most. @returns  false: there is no room, or the pass is over
bool Transfer::post() {
  state_ = State::posting;
  std::uint64_t pass_bytes = job_.endpoint->copy_pass_bytes();
  bool more = false;
  for (std::size_t i = 0; i < lane_count_ && !failed_; ++i) {
    const Posted result = post_lane(lanes_[i], pass_bytes);
    if (result == Posted::refused) {
      if (!failed_) rail_refused(*lanes_[i].memory.rail());
    } else if (result != Posted::everything) {
      more = true;
    }
  }
  if (more && !failed_) {
    state_ = State::waiting;
    posted(false);
    return false;
  }
  // Each stripe has an end of its own, also when all have ended at once here: a local end of a put
  // says nothing of the other rails' order.
  if (!failed_ && (in_flight_bytes_ > 0 || lane_count_ > 1)) posted(chain_end());
  state_ = State::in_flight;
  settle();
  return true;
}

/// Let the BTL post the end message right behind the bytes. @returns  false: it goes out later
bool Transfer::chain_end() {
  if (lane_count_ != 1) return false;
  const Rail& rail = *lanes_[0].memory.rail();
  const BtlCapability* capability = rail.capability;
  if (capability == nullptr || capability->send_behind == nullptr) return false;
  mca_btl_base_tag_t tag = 0;
  const std::span<const std::byte> message = end_message(tag);
  if (message.empty() || capability->chained_max_bytes < message.size()) return false;
  return capability->send_behind(
             &rail.btl(), rail.bml_btl->btl_endpoint, tag, message.data(), message.size(),
             job_.direction == Direction::put ? Behind::puts : Behind::gets) == OPAL_SUCCESS;
}

void Transfer::rail_refused(Rail& rail) {
  failed_ = true;
  if (!job_.speaks_for_rail) return;
  (job_.direction == Direction::put ? rail.put_failed : rail.get_failed) = true;
  refused_for_good(rail);
}

void Transfer::piece_ended(const mca_btl_base_module_t* btl, std::uint64_t bytes, bool ok) {
  for (Lane& lane : std::span(lanes_).first(lane_count_)) {
    if (&lane.memory.rail()->btl() != btl) continue;
    uncount(lane, bytes);
    if (!ok) rail_refused(*lane.memory.rail());
  }
  failed_ = failed_ || !ok;
  if (ok) moved(bytes);
  settle();
}

/// Report the end once nothing is in flight and nothing waits to be posted.
void Transfer::settle() {
  // While it waits for room the next try reports it.
  if (state_ != State::in_flight || in_flight_bytes_ != 0) return;
  state_ = State::idle;
  ended(!failed_);
}

void Transfer::drop_lanes() noexcept {
  for (std::size_t i = 0; i < lane_count_; ++i) lanes_[i].memory.drop();
  lane_count_ = 0;
}

}  // namespace overlap
