// What the MPI test programs share: ranks, patterns that are checked byte by byte, deadlines.
// Public MPI only.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "../support/catch.hpp"

namespace overlap::test {

using Bytes = std::vector<unsigned char>;

/// Thread level for MPI_Init_thread; a program sets another one from a static initialiser.
extern int wanted_thread_level;

int rank();
int size();

/// Even ranks send to the odd rank above them; the last rank of an odd job has no partner.
inline int partner() { return rank() ^ 1; }
inline bool paired() { return partner() < size(); }
inline bool sender() { return paired() && rank() % 2 == 0; }
inline bool receiver() { return paired() && rank() % 2 == 1; }

/// Write pattern `seed` to n bytes.
void fill(void* to, std::size_t n, std::uint64_t seed);

/// Index of the first byte that differs from pattern `seed`, n when there is none.
std::size_t first_wrong(const void* from, std::size_t n, std::uint64_t seed);

/// n bytes of pattern `seed`.
Bytes pattern(std::size_t n, std::uint64_t seed);

/// Does `data` begin with n bytes of pattern `seed` and go on with `rest` bytes of value `filler`?
bool holds(const Bytes& data, std::size_t n, std::uint64_t seed, unsigned char filler = 0xEE);

/// A buffer of n bytes that no pattern has been written to.
inline Bytes empty(std::size_t n) { return Bytes(n, 0xEE); }

/// Tell the partner to go on, or wait for that (two ranks of a pair, zero bytes, tag 32000).
void tell(int peer, MPI_Comm comm = MPI_COMM_WORLD);
void await(int peer, MPI_Comm comm = MPI_COMM_WORLD);

/// Compute for that long: no MPI call.
void compute(std::chrono::microseconds time);

/// Make progress without completing anything.
void poke(std::chrono::microseconds time);

/// Make progress until `reached` answers true.
/// @returns  false when that did not happen within 30 seconds
template <class Condition>
bool poke_until(Condition&& reached) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!reached()) {
    if (std::chrono::steady_clock::now() > end) return false;
    poke(std::chrono::microseconds(100));
  }
  return true;
}

/// Number from the environment, `otherwise` when it is not set.
long setting(const char* name, long otherwise);

/// Does the level run us with Open MPI's own PML, or ours? "ob1", "speculative".
bool over_pml(const std::string& name);

inline int count_of(const MPI_Status& status) {
  int n = -1;
  MPI_Get_count(&status, MPI_BYTE, &n);
  return n;
}

inline int error_class(int code) {
  int result = MPI_ERR_UNKNOWN;
  MPI_Error_class(code, &result);
  return result;
}

/// Errors of `comm` are returned while this lives.
class ErrorsReturn {
 public:
  explicit ErrorsReturn(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_get_errhandler(comm, &before_);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  ~ErrorsReturn() {
    MPI_Comm_set_errhandler(comm_, before_);
    MPI_Errhandler_free(&before_);
  }
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_{};
};

/// Sizes around every limit a protocol may have.
inline std::vector<std::size_t> sizes_around_limits() {
  return {0,     1,     7,     8,      63,     64,     65,     1023,   1024,    4079,    4080,
          4081,  4095,  4096,  4097,   8191,   8192,   8193,   32767,  32768,   32769,   65473,
          65535, 65536, 65537, 131071, 131072, 131073, 262144, 300001, 1048575, 1048576, 1048577};
}

}  // namespace overlap::test
