// Endpoints: their rails' limits and capabilities, messages out, work that waits for room.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/endpoint.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace overlap {

bool processes_gone = false;

void end_without_memory() noexcept {
  const char* host = opal_process_info.nodename;
  std::fprintf(stderr,
               "overlap: a process on %s has run out of memory while it handled messages; "
               "the job ends.\n",
               host != nullptr ? host : "this host");
  abort_job(1);
}

namespace {

/// @param wakes  a thread of the other process that sleeps
constexpr std::uint32_t control_flags(bool wakes) noexcept {
  return MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP |
         (wakes ? MCA_BTL_DES_FLAGS_SIGNAL : 0);
}

// Pieces of work of one endpoint in one round: the others get their turn, and a round is bounded.
constexpr std::size_t round_messages = 64;
constexpr std::size_t round_copies = 1;

// A thread that wants to enter waits for one pass of another one at most: of the interrupt thread
// 30 us here.
constexpr std::uint64_t call_pass_bytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t thread_pass_bytes = std::uint64_t{1} << 18U;

std::vector<Rail> rails_of(mca_bml_base_btl_array_t& array) {
  std::vector<Rail> rails;
  for (std::size_t i = 0; i < mca_bml_base_btl_array_get_size(&array); ++i) {
    mca_bml_base_btl_t* bml_btl = mca_bml_base_btl_array_get_index(&array, i);
    Rail& rail = rails.emplace_back(Rail{bml_btl, find_capability(bml_btl->btl)});
    rail.refuses_for_room = is_shared_memory(rail.btl()) && rail.btl().btl_sendi != nullptr;
  }
  return rails;
}

}  // namespace

/// A control message that waits for room, with a copy of its bytes.
class Endpoint::StoredMessage final : public Work {
 public:
  StoredMessage(Endpoint& endpoint, Rail& rail, mca_btl_base_tag_t tag,
                std::span<const std::byte> bytes, MessageHold hold, const node::Envelope* announces)
      : endpoint_(endpoint),
        rail_(rail),
        tag_(tag),
        hold_(hold),
        bytes_(bytes.begin(), bytes.end()) {
    if (announces != nullptr) announces_ = *announces;
  }

  bool try_again() override {
    if (!endpoint_.try_control(rail_, tag_, bytes_, hold_, announces_ ? &*announces_ : nullptr))
      return false;
    delete this;
    return true;
  }

 private:
  Endpoint& endpoint_;
  Rail& rail_;
  mca_btl_base_tag_t tag_;
  MessageHold hold_;
  std::vector<std::byte> bytes_;
  std::optional<node::Envelope> announces_;
};

Endpoint::Endpoint(Endpoints& all, ompi_proc_t& proc, mca_bml_base_endpoint_t& bml)
    : all_(all),
      proc_(proc),
      is_self_(&proc == ompi_proc_local()),
      eager_(rails_of(bml.btl_eager)),
      send_(rails_of(bml.btl_send)) {
  // Data goes through BTLs that messages go through as well. The BML lists others too, for
  // one-sided calls: a network that also reaches the processes of this host, beside shared memory.
  for (const Rail& rail : rails_of(bml.btl_rdma)) {
    const auto same = [&rail](const Rail& each) { return &each.btl() == &rail.btl(); };
    if (std::any_of(send_.begin(), send_.end(), same)) memory_.push_back(rail);
  }
  // Only its own process can write then.
  puts_are_messages_ = std::ranges::all_of(memory_, &Rail::queues_puts);
  const bool local = OPAL_PROC_ON_LOCAL_NODE(proc.super.proc_flags) && !is_self_;
  for (const Rail& rail : eager_) {
    const mca_btl_base_module_t& btl = rail.btl();
    eager_preferred_ = std::min(eager_preferred_, btl.btl_eager_limit);
    eager_most_ = std::min(eager_most_, std::max(btl.btl_eager_limit, btl.btl_max_send_size));
    if (rail.capability != nullptr && rail.capability->in_place_min_bytes != 0) {
      in_place_bytes_ = std::min(in_place_bytes_, rail.capability->in_place_min_bytes);
    }
    reports_arrivals_ = reports_arrivals_ ||
                        (rail.capability != nullptr && rail.capability->arrival_descriptor != -1);
  }
  for (const std::vector<Rail>* rails : {&eager_, &send_}) {
    for (const Rail& rail : *rails) {
      const bool by_events = rail.btl().btl_component->btl_progress == nullptr;
      works_by_events_ = works_by_events_ || (by_events && !is_self_);
      // Neither a socket nor one of our own adapters' BTLs, to a process of this host.
      copies_itself_ = copies_itself_ || (local && !by_events && rail.capability == nullptr);
    }
  }
}

Endpoint::~Endpoint() {
  // Control messages for nobody: the process is gone, or the job ends. Requests own their work.
  messages_.clear([](Work& work) {
    if (auto* stored = dynamic_cast<StoredMessage*>(&work)) delete stored;
  });
}

bool Endpoint::try_send(Rail& rail, mca_btl_base_descriptor_t* descriptor, mca_btl_base_tag_t tag,
                        MessageHold hold) {
  const bool held = hold.owner != nullptr;
  descriptor->des_cbdata = hold.owner;
  descriptor->des_cbfunc = held ? hold.on_sent
                                : [](mca_btl_base_module_t*, mca_btl_base_endpoint_t*,
                                     mca_btl_base_descriptor_t*, int) {};
  const int rc = mca_bml_base_send(rail.bml_btl, descriptor, tag);
  if (rc < 0) {
    mca_bml_base_free(rail.bml_btl, descriptor);
    return false;
  }
  if (rc != OMPI_SUCCESS) hold.release();  // 1: sent, and no callback comes
  return true;
}

bool Endpoint::try_send_bytes(Rail& rail, mca_btl_base_tag_t tag, std::span<const std::byte> bytes,
                              MessageHold hold, std::uint32_t flags) {
  mca_btl_base_descriptor_t* descriptor = nullptr;
  mca_bml_base_alloc(rail.bml_btl, &descriptor, MCA_BTL_NO_ORDER, bytes.size(), flags);
  if (descriptor == nullptr) return false;
  std::memcpy(descriptor->des_segments[0].seg_addr.pval, bytes.data(), bytes.size());
  descriptor->des_segments[0].seg_len = bytes.size();
  descriptor->des_segment_count = 1;
  return try_send(rail, descriptor, tag, hold);
}

bool Endpoint::try_control(Rail& rail, mca_btl_base_tag_t tag, std::span<const std::byte> bytes,
                           MessageHold hold, const node::Envelope* announces) {
  const std::uint32_t flags = control_flags(announces != nullptr);
  if (rail.try_inject(tag, bytes, nullptr, 0, flags)) {
    hold.release();
  } else if (rail.refuses_for_room || !try_send_bytes(rail, tag, bytes, hold, flags)) {
    return false;
  }
  if (announces != nullptr) announce(*announces);
  return true;
}

void Endpoint::send_control(Rail& rail, mca_btl_base_tag_t tag, std::span<const std::byte> bytes,
                            MessageHold hold, const node::Envelope* announces) {
  // Not past those that wait already: the other side would have to stash what comes before its
  // turn.
  if (messages_.empty() && try_control(rail, tag, bytes, hold, announces)) return;
  wait_as_message(*new StoredMessage(*this, rail, tag, bytes, hold, announces));
}

void Endpoint::announce(const node::Envelope& arrival) noexcept {
  if (wakes_neighbour()) neighbour_.announce(proc_, arrival, !all_.in_interrupt_thread);
}

void Endpoint::note_fragment() noexcept {
  ++fragments_;
  all_.fragments_in_flight += ends_in_silence() ? 1 : 0;
  if (announces_again()) all_.list(*this);
}

void Endpoint::note_fragment_end() noexcept {
  --fragments_;
  all_.fragments_in_flight -= ends_in_silence() ? 1 : 0;
}

bool Endpoint::leaves_copy(std::uint64_t bytes) const noexcept {
  return copies_itself_ && bytes >= all_.leave_copies_min_bytes;
}

std::uint64_t Endpoint::copy_pass_bytes() const noexcept {
  if (!copies_itself_) return UINT64_MAX;
  if (all_.in_interrupt_thread) return thread_pass_bytes;
  // Alone, a process ends a copy in the call that begins it, as ob1 does: it may compute next, and
  // the sender sit in MPI for as long.
  return all_.wakes_neighbours || opal_using_threads() ? call_pass_bytes : UINT64_MAX;
}

void Endpoint::wait_as_message(Work& work) noexcept {
  messages_.push(work);
  all_.list(*this);
}

void Endpoint::wait_as_transfer(Work& work) noexcept {
  transfers_.push(work);
  all_.list(*this);
}

void Endpoint::wait_as_fragments(Work& work) noexcept {
  pushes_.push(work);
  all_.list(*this);
}

std::size_t Endpoint::retry() {
  std::size_t taken = messages_.retry(round_messages);
  taken += transfers_.retry(puts_are_messages_ ? round_messages : round_copies);
  taken += pushes_.retry(round_messages);
  if (announces_again()) announce({.kind = node::WaitKind::answer});
  return taken;
}

std::size_t Endpoint::retry_in_thread() {
  if (copies_itself_ || thread_may_retry()) return retry();
  return puts_are_messages_ ? transfers_.retry(round_messages) + pushes_.retry(round_messages) : 0;
}

void Endpoint::drop_user() noexcept {
  --users_;
  if (is_unused()) all_.remove(*this);
}

Endpoints::~Endpoints() {
  on_work = nullptr;
  for (Endpoint* endpoint : all_) {
    // A retired endpoint's process may be gone already.
    if (!endpoint->retired_) endpoint->proc_.proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = nullptr;
    delete endpoint;
  }
}

Endpoint* Endpoints::make(ompi_proc_t& proc) {
  mca_bml_base_endpoint_t* bml = mca_bml_base_get_endpoint(&proc);
  if (bml == nullptr || mca_bml_base_btl_array_get_size(&bml->btl_eager) == 0) return nullptr;
  auto made = std::make_unique<Endpoint>(*this, proc, *bml);
  all_.push_back(made.get());
  waiting_.reserve(all_.capacity());  // so that list() never allocates
  Endpoint* endpoint = made.release();
  proc.proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = endpoint;
  return endpoint;
}

Endpoint* Endpoints::find(const opal_process_name_t& name) const noexcept {
  const auto found = std::ranges::find_if(all_, [&name](const Endpoint* each) {
    if (each->retired_) return false;  // its process may be gone
    const opal_process_name_t& other = each->proc_.super.proc_name;
    return other.jobid == name.jobid && other.vpid == name.vpid;
  });
  return found != all_.end() ? *found : nullptr;
}

void Endpoints::retire(ompi_proc_t& proc) noexcept {
  Endpoint* endpoint = find(proc);
  if (endpoint == nullptr) return;
  proc.proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = nullptr;
  endpoint->retired_ = true;
  if (endpoint->is_unused()) remove(*endpoint);
}

void Endpoints::remove(Endpoint& endpoint) noexcept {
  std::erase(all_, &endpoint);
  std::erase(waiting_, &endpoint);
  delete &endpoint;
}

void Endpoints::list(Endpoint& endpoint) noexcept {
  if (endpoint.listed_) return;
  endpoint.listed_ = true;
  waiting_.push_back(&endpoint);
  if (on_work != nullptr) on_work(true);
}

bool Endpoints::has_thread_work() const noexcept {
  return std::ranges::any_of(waiting_, &Endpoint::thread_may_retry);
}

std::size_t Endpoints::retry() { return retry_each(&Endpoint::retry); }

std::size_t Endpoints::retry_in_thread() { return retry_each(&Endpoint::retry_in_thread); }

std::size_t Endpoints::retry_each(std::size_t (Endpoint::*retry)()) {
  if (retrying_) return 0;
  retrying_ = true;
  std::size_t taken = 0;
  const std::size_t count = waiting_.size();
  for (std::size_t i = 0; i < count && i < waiting_.size(); ++i) taken += (waiting_[i]->*retry)();
  std::erase_if(waiting_, [](Endpoint* endpoint) {
    endpoint->listed_ = endpoint->has_work();
    return !endpoint->listed_;
  });
  retrying_ = false;
  if (waiting_.empty() && on_work != nullptr) on_work(false);
  return taken;
}

}  // namespace overlap
