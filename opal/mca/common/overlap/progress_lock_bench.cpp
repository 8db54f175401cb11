// What does one lock and unlock cost? Expected: biased owner below 1.5 ns, shared and std::mutex 20
// to 40 ns.
//
//   progress_lock_bench [pairs = 50000000]
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/progress_lock.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace {

double pair_ns(auto& lock, std::uint64_t pairs) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < pairs; ++i) {
    lock.lock();
    asm volatile(
        "" ::
            : "memory");  // what the lock protects: nothing, so that nothing hides its cost
    lock.unlock();
  }
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
             .count() /
         double(pairs);
}

struct NoLock {
  void lock() { asm volatile("" ::: "memory"); }
  void unlock() { asm volatile("" ::: "memory"); }
};

struct Variant {
  const char* name;
  double (*run)(std::uint64_t pairs);
};

overlap::ProgressLock biased, shared;
std::mutex mutex;
NoLock none;

constexpr std::array variants{
    Variant{"no lock (the loop alone)", [](std::uint64_t n) { return pair_ns(none, n); }},
    Variant{"biased, owner", [](std::uint64_t n) { return pair_ns(biased, n); }},
    Variant{"shared, uncontended", [](std::uint64_t n) { return pair_ns(shared, n); }},
    Variant{"std::mutex, uncontended", [](std::uint64_t n) { return pair_ns(mutex, n); }},
    Variant{"biased, guest try_lock and unlock, owner outside",
            [](std::uint64_t n) {
              double ns = 0;
              std::thread([&] {
                const auto begin = std::chrono::steady_clock::now();
                for (std::uint64_t i = 0; i < n / 100; ++i)
                  if (biased.try_lock()) biased.unlock();
                ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() -
                                                              begin)
                         .count() /
                     double(n / 100);
              }).join();
              return ns;
            }},
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t pairs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 50'000'000;
  constexpr int rounds = 5;
  biased.start(overlap::ProgressLock::Mode::biased);
  shared.start(overlap::ProgressLock::Mode::shared);
  std::thread([] {
  }).join();  // libstdc++ skips the mutex's atomics in a process that never had a thread
  std::array<std::array<double, rounds>, variants.size()> ns{};
  for (int round = 0; round < rounds; ++round)
    for (std::size_t v = 0; v < variants.size(); ++v) ns[v][round] = variants[v].run(pairs);
  std::printf("%-50s %10s %10s %10s\n", "ns per lock and unlock", "min", "median", "max");
  for (std::size_t v = 0; v < variants.size(); ++v) {
    std::ranges::sort(ns[v]);
    std::printf("%-50s %10.2f %10.2f %10.2f\n", variants[v].name, ns[v].front(), ns[v][rounds / 2],
                ns[v].back());
  }
  std::printf("biased mode %s\n",
              biased.mode() == overlap::ProgressLock::Mode::biased ? "available" : "NOT AVAILABLE");
}
