// Main of the MPI test programs: every rank runs the same test cases in the same order; one failure
// on one rank fails the job.
// SPDX-License-Identifier: BSD-3-Clause
#define CATCH_CONFIG_RUNNER
#include "mpi_test.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

namespace overlap::test {

int wanted_thread_level = MPI_THREAD_SINGLE;

namespace {

int my_rank = 0;
int job_size = 1;

constexpr std::uint64_t word(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15u + index * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

int rank() { return my_rank; }
int size() { return job_size; }

void fill(void* to, std::size_t n, std::uint64_t seed) {
  auto* bytes = static_cast<unsigned char*>(to);
  const std::size_t whole = n / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8) {
    const std::uint64_t value = word(seed, i / 8);
    std::memcpy(bytes + i, &value, 8);
  }
  const std::uint64_t last = word(seed, whole / 8);
  if (n != whole) std::memcpy(bytes + whole, &last, n - whole);
}

std::size_t first_wrong(const void* from, std::size_t n, std::uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(from);
  const std::size_t whole = n / 8 * 8;
  std::size_t i = 0;
  for (; i < whole; i += 8) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes + i, 8);
    if (value != word(seed, i / 8)) break;
  }
  const std::uint64_t value = word(seed, i / 8);
  const auto* expected = reinterpret_cast<const unsigned char*>(&value);
  for (std::size_t j = 0; j < 8 && i + j < n; ++j)
    if (bytes[i + j] != expected[j]) return i + j;
  return n;
}

Bytes pattern(std::size_t n, std::uint64_t seed) {
  Bytes data(n);
  fill(data.data(), n, seed);
  return data;
}

bool holds(const Bytes& data, std::size_t n, std::uint64_t seed, unsigned char filler) {
  if (data.size() < n) return false;
  const std::size_t wrong = first_wrong(data.data(), n, seed);
  if (wrong != n) {
    std::fprintf(stderr, "rank %d: byte %zu of %zu differs from pattern %llu\n", my_rank, wrong, n,
                 static_cast<unsigned long long>(seed));
    return false;
  }
  for (std::size_t i = n; i < data.size(); ++i) {
    if (data[i] != filler) {
      std::fprintf(stderr, "rank %d: byte %zu behind a message of %zu was written\n", my_rank, i,
                   n);
      return false;
    }
  }
  return true;
}

void tell(int peer, MPI_Comm comm) { MPI_Send(nullptr, 0, MPI_BYTE, peer, 32000, comm); }
void await(int peer, MPI_Comm comm) {
  MPI_Recv(nullptr, 0, MPI_BYTE, peer, 32000, comm, MPI_STATUS_IGNORE);
}

void compute(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {}
}

void poke(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 32001, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  } while (std::chrono::steady_clock::now() < end);
}

long setting(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::atol(text) : otherwise;
}

bool over_pml(const std::string& name) {
  const char* const pml = std::getenv("OMPI_MCA_pml");
  return pml != nullptr && pml == name;
}

}  // namespace overlap::test

namespace {

using namespace overlap::test;

#if __has_include(<catch2/catch_all.hpp>)
using ListenerBase = Catch::EventListenerBase;
using Handled = void;
Handled handled() {}
#else
using ListenerBase = Catch::TestEventListenerBase;
using Handled = bool;
Handled handled() { return false; }
#endif

/// Names the running test case (a job that hangs shows where) and the ranks of failures.
struct Listener : ListenerBase {
  using ListenerBase::ListenerBase;
  bool left_early = false;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    MPI_Barrier(MPI_COMM_WORLD);
    started_ = MPI_Wtime();
    if (rank() == 0) std::fprintf(stderr, "[%s]\n", info.name.c_str());
  }

  Handled assertionEnded(const Catch::AssertionStats& stats) override {
    const Catch::AssertionResult& result = stats.assertionResult;
    if (!result.isOk()) {
      std::string notes;
      for (const auto& message : stats.infoMessages) notes += " | " + message.message;
      std::fprintf(stderr, "rank %d: %s:%zu: %s: %s%s\n", rank(), result.getSourceInfo().file,
                   result.getSourceInfo().line, result.getExpressionInMacro().c_str(),
                   result.getExpandedExpression().c_str(), notes.c_str());
      const std::string macro(result.getTestMacroName().begin(), result.getTestMacroName().end());
      if (macro.rfind("CHECK", 0) != 0) left_early = true;
    }
    return handled();
  }

  void testCaseEnded(const Catch::TestCaseStats&) override {
    // The others would wait for this rank for ever.
    if (left_early) MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank() == 0) std::fprintf(stderr, "  %.2f s\n", MPI_Wtime() - started_);
  }

 private:
  double started_ = 0;
};

CATCH_REGISTER_LISTENER(Listener)

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted_thread_level, &provided);
  if (provided < wanted_thread_level) {
    std::fprintf(stderr, "thread level %d wanted, %d provided\n", wanted_thread_level, provided);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job_size);

  std::ostringstream quiet;
  std::streambuf* const before = rank() == 0 ? nullptr : std::cout.rdbuf(quiet.rdbuf());
  const int failed = Catch::Session().run(argc, argv) == 0 ? 0 : 1;
  if (before != nullptr) std::cout.rdbuf(before);
  if (failed != 0 && rank() != 0)
    std::cout << "rank " << rank() << ":\n" << quiet.str() << std::flush;

  int failures = 0;
  MPI_Allreduce(&failed, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
