// P3.1 to P3.5: messages from buffers that are used often, and buffers whose memory becomes another
// one behind the same address.
//
// Run it with settings that make every buffer frequent at once (btl_ring_costs
// 1,0,1000000000,0,0), so that nearly every message is sent from where it lies, and with
// slots that 8 KiB fit into.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <map>

using namespace overlap::test;

namespace {

/// Value of a counter of btl/ring, or -1 when that is not in use.
long long ring_counter(const char* name) {
  int provided = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  int index = -1;
  const std::string full_name = std::string("btl_ring_") + name;
  if (MPI_T_pvar_get_index(full_name.c_str(), MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS)
    return -1;
  static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  if (session == MPI_T_PVAR_SESSION_NULL) MPI_T_pvar_session_create(&session);
  static std::map<int, MPI_T_pvar_handle> handles;
  if (!handles.contains(index)) {
    int count = 0;
    MPI_T_pvar_handle_alloc(session, index, nullptr, &handles[index], &count);
  }
  unsigned long long value = 0;
  MPI_T_pvar_read(session, handles[index], &value);
  return static_cast<long long>(value);
}

constexpr std::size_t page = 4096;
constexpr std::size_t sizes[] = {128, 129, 1000, 1024, 4095, 4096, 8000};

/// Send `times` messages from `buffer`, each with another pattern; the receiver checks every byte
/// and answers at the end. Its answer carries the credits: at most `times` slots of the ring are in
/// use, so how fast it reads does not decide which way a message goes.
void exchange(unsigned char* buffer, std::size_t bytes, int times, std::uint64_t& seed) {
  Bytes in(bytes);
  for (int i = 0; i < times; ++i, ++seed) {
    if (sender()) {
      fill(buffer, bytes, seed);
      if (i % 2 == 0) {
        MPI_Send(buffer, static_cast<int>(bytes), MPI_BYTE, partner(), 1, MPI_COMM_WORLD);
      } else {
        MPI_Request request;
        MPI_Isend(buffer, static_cast<int>(bytes), MPI_BYTE, partner(), 1, MPI_COMM_WORLD,
                  &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      // Free again: what comes now must not be what arrives.
      std::memset(buffer, 0x11, bytes);
    } else if (receiver()) {
      MPI_Recv(in.data(), static_cast<int>(bytes), MPI_BYTE, partner(), 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      REQUIRE(first_wrong(in.data(), bytes, seed) == bytes);
    }
  }
  if (sender()) await(partner());
  if (receiver()) tell(partner());
}

unsigned char* map_pages(std::size_t bytes, void* at = nullptr) {
  void* memory = mmap(at, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
  REQUIRE(memory != MAP_FAILED);
  return static_cast<unsigned char*>(memory);
}

}  // namespace

TEST_CASE("P3.2 messages from buffers that are used often arrive whole, and are not copied") {
  constexpr int rounds = 5, times = 20;
  std::uint64_t seed = 1;
  Bytes first(64);
  exchange(first.data(), first.size(), times, seed);  // the peer has opened its ring now
  const long long before = ring_counter("in_place_sent");
  std::vector<Bytes> buffers;
  for (std::size_t bytes : sizes) buffers.emplace_back(bytes);
  for (int round = 0; round < rounds; ++round) {
    for (Bytes& buffer : buffers) exchange(buffer.data(), buffer.size(), times, seed);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  // All but the first of each buffer, which is counted only.
  const auto wanted = static_cast<long long>(buffers.size()) * (rounds * times - 1);
  if (before >= 0 && sender() && setting("OVERLAP_TEST_FREQUENT", 0) != 0)
    CHECK(ring_counter("in_place_sent") - before >= wanted);
}

TEST_CASE(
    "P3.5 memory that was unmapped and mapped anew behind the same address is never read as it "
    "was") {
  std::uint64_t seed = 100000;
  for (std::size_t bytes : sizes) {
    unsigned char* buffer = map_pages(2 * page);
    for (int round = 0; round < 6; ++round) {
      exchange(buffer, bytes, 6, seed);
      munmap(buffer, 2 * page);
      REQUIRE(map_pages(2 * page, buffer) == buffer);
    }
    munmap(buffer, 2 * page);
  }
}

TEST_CASE(
    "P3.5 the same with a mapping put over it, pages given back, and a mapping that was moved") {
  std::uint64_t seed = 200000;
  constexpr std::size_t bytes = 4096;
  unsigned char* buffer = map_pages(2 * page);
  for (int round = 0; round < 6; ++round) {
    exchange(buffer, bytes, 6, seed);
    REQUIRE(map_pages(2 * page, buffer) == buffer);  // over it, without munmap
    exchange(buffer, bytes, 6, seed);
    madvise(buffer, 2 * page, MADV_DONTNEED);
    exchange(buffer, bytes, 6, seed);
    // It moves away, and another page takes its place. One page: a provider may have split the
    // mapping.
    void* moved = mremap(buffer, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, map_pages(page));
    REQUIRE(moved != MAP_FAILED);
    REQUIRE(map_pages(page, buffer) == buffer);
    exchange(buffer, bytes, 6, seed);
    munmap(moved, page);
  }
  munmap(buffer, 2 * page);
}

TEST_CASE("P3.5 heap memory that is freed and allocated again") {
  // Large blocks come from mmap, and go back at once.
  mallopt(M_MMAP_THRESHOLD, 8 * page);
  mallopt(M_TRIM_THRESHOLD, page);
  std::uint64_t seed = 300000;
  for (int round = 0; round < 40; ++round) {
    const std::size_t block = (round % 2 == 0 ? 16 : 1) * page + 64;
    auto* buffer = static_cast<unsigned char*>(std::malloc(block));
    exchange(buffer, 2000, 5, seed);
    std::free(buffer);
    malloc_trim(0);
  }
}

TEST_CASE("P3.5 a forked child does not get the parent's pages in exchange") {
  std::uint64_t seed = 400000;
  Bytes buffer(4000);
  exchange(buffer.data(), buffer.size(), 6, seed);
  if (sender()) {
    const pid_t child = fork();
    if (child == 0) {
      usleep(200000);
      _exit(0);
    }
    exchange(buffer.data(), buffer.size(), 20,
             seed);  // the parent writes while the child shares the pages
    int status = 0;
    waitpid(child, &status, 0);
  } else {
    exchange(buffer.data(), buffer.size(), 20, seed);
  }
}
