// What the benchmarks share: clock, options, payload, samples and the one form of output. Plain MPI
// and the C++ library.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#define OMPI_SKIP_MPICXX 1  // the C interface only
#include <mpi.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace bench {

inline constexpr std::size_t page_bytes = 4096;

/// Read the monotonic clock in microseconds.
inline double now_us() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return 1e6 * static_cast<double>(ts.tv_sec) + 1e-3 * static_cast<double>(ts.tv_nsec);
}

/// Read the processor time of this process in microseconds: user and system, all threads.
inline double processor_us() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return 1e6 * static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/// Compute for a time: dependent multiplications in registers and a look at the clock every 100 of
/// them, no call into MPI.
///
/// The end is given by the clock and not by an amount of work: time that the system takes away
/// during the computation is part of the computation and not charged to the communication.
inline double compute_until_us(double end_us) {
  static volatile double sink = 1.0;
  double x = sink;
  do {
    for (int i = 0; i < 100; ++i) x = x * 1.0000001 + 1e-9;
    if (x > 1e6) x = 1.0;
  } while (now_us() < end_us);
  sink = x;
  return x;
}

/// How the time of a computation passes.
enum class Compute {
  spin,  // on the rank's own core: none is to spare where there are as many ranks as cores
  sleep  // as if on another core: the rank sleeps and leaves its own to whatever makes progress
};

/// Sleep until a time, late by a wake-up at most and not by the 50 us that Linux may add.
///
/// The slack of the timer is set around each sleep: a thread that MPI makes would inherit it.
inline void sleep_until_us(double end_us) {
  timespec until{};
  until.tv_sec = static_cast<time_t>(end_us / 1e6);
  until.tv_nsec = static_cast<long>((end_us - 1e6 * static_cast<double>(until.tv_sec)) * 1e3);
  prctl(PR_SET_TIMERSLACK, 1UL);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {}
  prctl(PR_SET_TIMERSLACK, 0UL);
}

inline void compute_us(double duration_us, Compute how = Compute::spin) {
  if (duration_us <= 0) return;
  const double end_us = now_us() + duration_us;
  how == Compute::spin ? static_cast<void>(compute_until_us(end_us)) : sleep_until_us(end_us);
}

/// A page-aligned buffer whose pages have been touched.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
    const std::size_t rounded = (bytes_ + page_bytes - 1) / page_bytes * page_bytes;
    data_ = static_cast<unsigned char*>(std::aligned_alloc(page_bytes, rounded));
    if (data_ == nullptr) {
      std::fprintf(stderr, "bench: no memory for %zu bytes\n", rounded);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    std::memset(data_, 0, rounded);
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  unsigned char* data() { return data_; }

  /// Change the first bytes of every page, so that no two messages are equal. Cheap enough to stand
  /// next to a timed region.
  void stamp(std::size_t bytes, std::uint64_t value) {
    for (std::size_t at = 0; at < bytes; at += page_bytes)
      std::memcpy(data_ + at, &value, std::min<std::size_t>(sizeof value, bytes - at));
  }

  /// Fill every byte from a seed (for the check pass, never timed).
  void fill(std::size_t bytes, std::uint64_t seed) {
    for (std::size_t i = 0; i < bytes; ++i) data_[i] = byte_at(seed, i);
  }

  /// Compare every byte with fill(seed); a difference ends the program with the place.
  void check(std::size_t bytes, std::uint64_t seed, const char* what) {
    for (std::size_t i = 0; i < bytes; ++i) {
      if (data_[i] == byte_at(seed, i)) continue;
      std::fprintf(stderr, "bench: %s: byte %zu of %zu is %u instead of %u\n", what, i, bytes,
                   data_[i], byte_at(seed, i));
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }

 private:
  static unsigned char byte_at(std::uint64_t seed, std::size_t i) {
    const std::uint64_t x =
        (seed * 0x9E3779B97F4A7C15u) ^ (static_cast<std::uint64_t>(i) * 0xC2B2AE3D27D4EB4Fu);
    return static_cast<unsigned char>(x >> 32);
  }
  std::size_t bytes_;
  unsigned char* data_;
};

/// Options of the form --name value. What is not known ends the program with a list of what is.
class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
      if (std::strncmp(argv[i], "--", 2) != 0 || i + 1 >= argc)
        fail("expected --name value", argv[i]);
      given_.push_back({argv[i] + 2, argv[i + 1], false});
    }
  }

  std::string text(const char* name, const char* fallback) {
    known_.push_back(name);
    for (auto& g : given_)
      if (g.name == name) {
        g.used = true;
        return g.value;
      }
    return fallback;
  }
  double number(const char* name, double fallback) {
    const std::string v = text(name, "");
    if (v.empty()) return fallback;
    char* end = nullptr;
    const double x = std::strtod(v.c_str(), &end);
    if (end == v.c_str() || *end != '\0' || x < 0) fail("not a number", v.c_str());
    return x;
  }
  /// --compute spin (the default) or sleep.
  Compute compute() {
    const std::string how = text("compute", "spin");
    if (how != "spin" && how != "sleep") fail("--compute is spin or sleep", how.c_str());
    return how == "spin" ? Compute::spin : Compute::sleep;
  }
  /// A comma-separated list of sizes; k and m stand for KiB and MiB, a..b for every power of two
  /// from a to b.
  std::vector<std::size_t> sizes(const char* name, const char* fallback) {
    std::vector<std::size_t> out;
    std::string list = text(name, fallback);
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t comma = std::min(list.find(',', at), list.size());
      const std::string item = list.substr(at, comma - at);
      const std::size_t dots = item.find("..");
      if (dots == std::string::npos) {
        out.push_back(size(item));
      } else {
        const std::size_t last = size(item.substr(dots + 2));
        for (std::size_t s = size(item.substr(0, dots)); s <= last; s *= 2) {
          out.push_back(s);
          if (s == 0) s = 1, out.push_back(1);
        }
      }
      at = comma + 1;
    }
    return out;
  }
  /// Call after the last option was asked for.
  void end() {
    for (auto& g : given_)
      if (!g.used) {
        std::string names;
        for (auto& k : known_) names += " --" + k;
        fail(("no such option; there are" + names).c_str(), g.name.c_str());
      }
  }

  [[noreturn]] static void fail(const char* why, const char* what) {
    std::fprintf(stderr, "bench: '%s': %s\n", what, why);
    int on = 0;
    MPI_Initialized(&on);
    if (on) MPI_Abort(MPI_COMM_WORLD, 1);
    std::exit(1);
  }

 private:
  struct Given {
    std::string name, value;
    bool used;
  };
  static std::size_t size(const std::string& item) {
    char* end = nullptr;
    const unsigned long long n = std::strtoull(item.c_str(), &end, 10);
    const char unit = *end;
    const std::size_t factor = unit == 'k' ? 1024u : unit == 'm' ? 1024u * 1024u : 1u;
    if (end == item.c_str() || (unit != '\0' && (factor == 1 || end[1] != '\0')))
      fail("not a size", item.c_str());
    return static_cast<std::size_t>(n) * factor;
  }
  std::vector<Given> given_;
  std::vector<std::string> known_;
};

/// Separately recorded samples and what is said about them.
struct Samples {
  std::vector<double> values;

  void add(double v) { values.push_back(v); }
  /// @param share  in [0, 1]; 0.5 is the median
  double quantile(double share) const {
    if (values.empty()) return 0;
    std::vector<double> v = values;
    const std::size_t k =
        std::min(v.size() - 1, static_cast<std::size_t>(share * static_cast<double>(v.size())));
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(k), v.end());
    return v[k];
  }
  double median() const { return quantile(0.5); }
};

/// Print one result as a line that run.py collects.
///
/// row,benchmark,case,bytes,x,metric,unit,samples,median,p10,p90,p99,min,max
inline void row(const char* benchmark, const char* which, std::size_t bytes, double x,
                const char* metric, const char* unit, const Samples& s) {
  std::printf("row,%s,%s,%zu,%.6g,%s,%s,%zu,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n", benchmark, which,
              bytes, x, metric, unit, s.values.size(), s.median(), s.quantile(0.1), s.quantile(0.9),
              s.quantile(0.99), s.quantile(0), s.quantile(1));
  std::fflush(stdout);
}

/// Print how the ranks compute, where that is not as usual; run.py prints it with the results.
inline void print_compute(Compute how, int rank) {
  if (rank == 0 && how == Compute::sleep)
    std::printf(
        "compute: sleep. The ranks sleep instead, which stands for a computation on another "
        "core.\n");
}

/// Give every rank the value of rank 0.
inline long agree(long value) {
  MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  return value;
}

/// Choose how many samples fit into a time budget; the same number on every rank.
inline long samples_for(double budget_ms, double sample_us, long least, long most) {
  const double fit = 1e3 * budget_ms / std::max(sample_us, 0.01);
  return agree(std::clamp(static_cast<long>(std::min(fit, 1e9)), least, most));
}

/// Count samples, and end early, on all ranks at once, when a busy machine takes far more time than
/// the budget.
class Pace {
 public:
  /// @param samples  as samples_for() said, the same on every rank
  Pace(long samples, double budget_ms)
      : samples_(samples),
        chunk_(std::max(samples / 8, 5L)),
        end_us_(now_us() + 4e3 * budget_ms + 1e4) {}
  bool next() {
    if (done_ >= samples_ || (done_ > 0 && done_ % chunk_ == 0 && agree(now_us() > end_us_) != 0))
      return false;
    ++done_;
    return true;
  }

 private:
  long samples_, chunk_, done_ = 0;
  double end_us_;
};

/// Copy the samples of one rank to rank 0, where the rows are printed.
inline void to_rank0(Samples& s, int owner, int rank) {
  if (owner == 0) return;
  long n = static_cast<long>(s.values.size());
  if (rank == owner) {
    MPI_Send(&n, 1, MPI_LONG, 0, 99, MPI_COMM_WORLD);
    MPI_Send(s.values.data(), static_cast<int>(n), MPI_DOUBLE, 0, 99, MPI_COMM_WORLD);
  } else if (rank == 0) {
    MPI_Recv(&n, 1, MPI_LONG, owner, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    s.values.resize(static_cast<std::size_t>(n));
    MPI_Recv(s.values.data(), static_cast<int>(n), MPI_DOUBLE, owner, 99, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }
}

/// Add a value of every rank; only rank 0 gets the sum, as the one sample.
inline Samples sum_at_rank0(double value) {
  double sum = 0;
  MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  Samples s;
  s.add(sum);
  return s;
}

/// Start MPI for a benchmark of exactly n ranks; returns this one's.
inline int start(int* argc, char*** argv, int ranks, int thread_level = MPI_THREAD_SINGLE) {
  int provided = 0;
  MPI_Init_thread(argc, argv, thread_level, &provided);
  if (provided < thread_level) {
    std::fprintf(stderr, "bench: this MPI does not offer the thread level\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != ranks) {
    if (rank == 0) std::fprintf(stderr, "bench: runs on %d ranks, not on %d\n", ranks, size);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return rank;
}

}  // namespace bench
