// A stand-in for Open MPI's registration cache, so that the tool needs no Open MPI.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>

namespace overlap::ring_calibrate {

/// Finds registrations by address as a cache with lazy deregistration does: a lock, a balanced
/// tree, a count of users, and a list of those without a user in the order of their last use.
class Cache {
 public:
  /// @param registrations  known ones, side by side
  Cache(std::uintptr_t begin, std::size_t registrations, std::size_t bytes) {
    for (std::size_t i = 0; i < registrations; ++i) {
      Entry& entry = entries_[begin + i * bytes];
      entry.bytes = bytes;
      entry.unused = unused_.insert(unused_.end(), &entry);
    }
  }

  /// Find the registration that covers an address, use it and give it back: what one send costs.
  /// @returns  false: there is none
  [[nodiscard]] bool use(std::uintptr_t address) {
    Entry* const entry = take(address);
    if (entry == nullptr) return false;
    give_back(*entry);
    return true;
  }

 private:
  struct Entry {
    std::size_t bytes = 0;
    std::uint32_t users = 0;
    std::list<Entry*>::iterator unused;
  };

  [[nodiscard]] Entry* take(std::uintptr_t address) {
    const std::lock_guard lock(mutex_);
    auto after = entries_.upper_bound(address);
    if (after == entries_.begin()) return nullptr;
    auto& [begin, entry] = *--after;
    if (address - begin >= entry.bytes) return nullptr;
    if (entry.users++ == 0) in_use_.splice(in_use_.end(), unused_, entry.unused);
    return &entry;
  }
  void give_back(Entry& entry) {
    const std::lock_guard lock(mutex_);
    if (--entry.users == 0) unused_.splice(unused_.end(), in_use_, entry.unused);
  }

  std::mutex mutex_;
  std::map<std::uintptr_t, Entry> entries_;
  std::list<Entry*> unused_;
  std::list<Entry*> in_use_;
};

}  // namespace overlap::ring_calibrate
