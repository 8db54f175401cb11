// Making the memory of a window.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include "opal/mca/common/overlap/node/area_file.hpp"

namespace overlap::newrma {
namespace {

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

std::uint64_t page_bytes() noexcept { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

// Collectives of Open MPI, as its components call them.

int broadcast(ompi_communicator_t& comm, void* bytes, std::size_t count) {
  return comm.c_coll->coll_bcast(bytes, static_cast<int>(count), MPI_BYTE, 0, &comm,
                                 comm.c_coll->coll_bcast_module);
}

int gather_all(ompi_communicator_t& comm, const void* own, void* all, std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  return comm.c_coll->coll_allgather(own, count, MPI_BYTE, all, count, MPI_BYTE, &comm,
                                     comm.c_coll->coll_allgather_module);
}

/// @returns  the least value of all ranks, or an error code
int agree(ompi_communicator_t& comm, int own, int& least) {
  return comm.c_coll->coll_allreduce(&own, &least, 1, MPI_INT, MPI_MIN, &comm,
                                     comm.c_coll->coll_allreduce_module);
}

/// A communicator that goes with its scope.
struct OwnedComm {
  ompi_communicator_t* comm = nullptr;

  OwnedComm() = default;
  OwnedComm(const OwnedComm&) = delete;
  OwnedComm& operator=(const OwnedComm&) = delete;
  ~OwnedComm() {
    if (comm != nullptr) ompi_comm_free(&comm);
  }
};

/// A memory file of this size; each page comes to be where it is first touched.
/// @returns  empty: the kernel refuses
Descriptor make_file(std::uint64_t bytes) noexcept {
  Descriptor file(memfd_create("overlap-window", MFD_CLOEXEC));
  if (!file || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return {};
  return file;
}

void* map(int file, std::uint64_t bytes, int flags) noexcept {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

WindowMemory::~WindowMemory() {
  if (segment_ != nullptr) munmap(segment_, segment_bytes_);
}

int WindowMemory::make(ompi_communicator_t& comm, const WindowCall& call) {
  call_ = call;
  self_ = comm.c_my_rank;
  OwnedComm node;
  int rc = ompi_comm_split_type(&comm, MPI_COMM_TYPE_SHARED, 0, nullptr, &node.comm);
  if (rc != OMPI_SUCCESS) return rc;
  Rank first = self_;
  if (rc = broadcast(*node.comm, &first, sizeof first); rc != OMPI_SUCCESS) return rc;
  AllFacts all(static_cast<std::size_t>(ompi_comm_size(&comm)));
  if (rc = exchange_facts(comm, first, all); rc != OMPI_SUCCESS) return rc;
  std::vector<Rank> locals;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].node_first == first) locals.push_back(static_cast<Rank>(i));
  }
  if (call_.flavor == Flavor::shared && locals.size() != all.size()) return OMPI_ERR_RMA_SHARED;
  spans_nodes_ = locals.size() != all.size();
  const bool shared = share(*node.comm, all, locals);
  bool made = shared;
  if (!made && call_.flavor != Flavor::shared) made = keep_to_itself(all);
  int all_made = 0;
  if (rc = agree(comm, made ? 1 : 0, all_made); rc != OMPI_SUCCESS) return rc;
  return all_made == 1 ? exchange_addresses(comm, !shared || first == self_)
                       : OMPI_ERR_OUT_OF_RESOURCE;
}

/// @param is_first  writes them for its node, which does not read them before the window is made
int WindowMemory::exchange_addresses(ompi_communicator_t& comm, bool is_first) {
  const auto own = reinterpret_cast<std::uint64_t>(own_);
  std::vector<std::uint64_t> all(ranks_.size());
  if (const int rc = gather_all(comm, &own, all.data(), sizeof own); rc != OMPI_SUCCESS) return rc;
  for (std::size_t i = 0; is_first && i < all.size(); ++i) ranks_[i].address = all[i];
  return OMPI_SUCCESS;
}

int WindowMemory::exchange_facts(ompi_communicator_t& comm, Rank node_first, AllFacts& all) {
  const RankFacts own{
      .bytes = call_.bytes, .displacement_unit = call_.displacement_unit, .node_first = node_first};
  return gather_all(comm, &own, all.data(), sizeof own);
}

/// Where the data of the node's ranks lies. @returns  bytes of the whole
std::uint64_t WindowMemory::place_data(const AllFacts& all, const std::vector<Rank>& locals) {
  mapped_controls_ = locals.size();
  std::uint64_t end = round_up(facts_offset() + sizeof(RankFacts) * all.size(), page_bytes());
  for (const Rank rank : locals) {
    offsets_.push_back(end);
    if (!allocates()) continue;
    end += all[static_cast<std::size_t>(rank)].bytes;
    // MPI_Win_allocate_shared: neighbours' memory is adjacent unless the program says otherwise.
    if (call_.flavor == Flavor::allocate || call_.noncontiguous) end = round_up(end, page_bytes());
  }
  return round_up(end, page_bytes());
}

/// Behind the control blocks and, in a dynamic window, what each rank has attached.
std::size_t WindowMemory::facts_offset() const noexcept {
  const std::size_t of_each =
      sizeof(ControlBlock) + (call_.flavor == Flavor::dynamic ? sizeof(PublishedRanges<>) : 0);
  return mapped_controls_ * of_each;
}

/// @returns  nullptr: not mapped
PublishedRanges<>* WindowMemory::published_of(Rank rank) const noexcept {
  const std::int32_t index = ranks_[static_cast<std::size_t>(rank)].mapped_index;
  if (index < 0) return nullptr;
  std::byte* const first =
      static_cast<std::byte*>(segment_) + sizeof(ControlBlock) * mapped_controls_;
  return reinterpret_cast<PublishedRanges<>*>(first) + index;
}

/// @returns  false, at all ranks of the node alike: they cannot
bool WindowMemory::share(ompi_communicator_t& node, AllFacts& all,
                         const std::vector<Rank>& locals) {
  segment_bytes_ = place_data(all, locals);
  const bool is_first = locals.front() == self_;
  Descriptor file;
  node::DescriptorAddress address;
  if (is_first) {
    file = make_file(segment_bytes_);
    if (file) address = node::DescriptorAddress::of(file).value_or(address);
  }
  if (broadcast(node, &address, sizeof address) != OMPI_SUCCESS) return false;
  if (!is_first && address.descriptor >= 0) file = address.open(O_RDWR);
  if (file) segment_ = map(file.get(), segment_bytes_, MAP_SHARED);
  if (is_first && segment_ != nullptr) write_facts(all, locals);
  // The first one's descriptor is open until all have mapped the file.
  int all_mapped = 0;
  if (agree(node, segment_ != nullptr ? 1 : 0, all_mapped) != OMPI_SUCCESS || all_mapped == 0)
    return false;
  place(locals, all.size());
  return true;
}

bool WindowMemory::keep_to_itself(AllFacts& all) {
  if (segment_ != nullptr) munmap(std::exchange(segment_, nullptr), segment_bytes_);
  offsets_.clear();
  segment_bytes_ = place_data(all, {self_});
  segment_ = map(-1, segment_bytes_, MAP_PRIVATE | MAP_ANONYMOUS);
  if (segment_ == nullptr) return false;
  write_facts(all, {self_});
  place({self_}, all.size());
  return true;
}

/// Into the segment, behind the control blocks: once for all who map it.
void WindowMemory::write_facts(AllFacts& all, const std::vector<Rank>& locals) {
  for (RankFacts& each : all) each.mapped_index = -1;
  for (std::size_t i = 0; i < locals.size(); ++i)
    all[static_cast<std::size_t>(locals[i])].mapped_index = static_cast<std::int32_t>(i);
  std::memcpy(static_cast<std::byte*>(segment_) + facts_offset(), all.data(),
              all.size() * sizeof(RankFacts));
}

/// @param ranks  of the window
void WindowMemory::place(const std::vector<Rank>& locals, std::size_t ranks) {
  std::byte* const facts = static_cast<std::byte*>(segment_) + facts_offset();
  ranks_ = {reinterpret_cast<RankFacts*>(facts), ranks};
  for (std::size_t i = 0; i < locals.size(); ++i) {
    if (allocates() || locals[i] == self_) mapped_.push_back(locals[i]);
  }
  control_of(self_)->process = node::own_process_facts();
  own_ = allocates() ? data_of(self_) : static_cast<std::byte*>(call_.base);
}

std::byte* WindowMemory::data_of(Rank rank) const noexcept {
  if (!allocates()) return rank == self_ ? own_ : nullptr;
  const std::int32_t index = ranks_[static_cast<std::size_t>(rank)].mapped_index;
  if (index < 0) return nullptr;
  return static_cast<std::byte*>(segment_) + offsets_[static_cast<std::size_t>(index)];
}

ControlBlock* WindowMemory::control_of(Rank rank) const noexcept {
  const std::int32_t index = ranks_[static_cast<std::size_t>(rank)].mapped_index;
  return index < 0 ? nullptr : static_cast<ControlBlock*>(segment_) + index;
}

int WindowMemory::attach(void* base, std::uint64_t bytes) {
  if (!attached_.attach(reinterpret_cast<std::uint64_t>(base), bytes)) return MPI_ERR_RMA_ATTACH;
  published_of(self_)->publish(attached_.all());
  return OMPI_SUCCESS;
}

int WindowMemory::detach(const void* base) {
  if (!attached_.detach(reinterpret_cast<std::uint64_t>(base))) return MPI_ERR_BASE;
  published_of(self_)->publish(attached_.all());
  return OMPI_SUCCESS;
}

std::byte* WindowMemory::find(std::uint64_t address, std::uint64_t bytes) const noexcept {
  if (call_.flavor != Flavor::dynamic) {
    return address <= call_.bytes && bytes <= call_.bytes - address ? own_ + address : nullptr;
  }
  return attached_.covers(address, bytes) ? reinterpret_cast<std::byte*>(address) : nullptr;
}

Attached WindowMemory::knows_attached(Rank rank, std::uint64_t address,
                                      std::uint64_t bytes) const noexcept {
  const PublishedRanges<>* const published = published_of(rank);
  return published != nullptr ? published->knows(address, bytes) : Attached::unknown;
}

}  // namespace overlap::newrma
