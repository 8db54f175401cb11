// The key of one other rank's memory, and what waits for it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace overlap::newrma {

/// An operation that cannot go before the key is here.
class KeyWaiter {
 public:
  /// It is here, or there is none. The waiter may be deleted inside, and others may begin to wait.
  virtual void key_came() = 0;

 protected:
  ~KeyWaiter() = default;
};

/// Asked for with the first operation that needs it, unless its owner has sent it unasked.
///
///   event \ state  unknown          asked            known        refused
///   want           asked, ask       asked, wait      -, ready     -, refused
///   a key comes    known            known, waiters   -            -
///   no key comes   refused          refused, waiters -            -
class TargetKey {
 public:
  enum class Answer : std::uint8_t {
    ready,    ///< bytes() is the key
    ask,      ///< it waits, and the target must be asked
    wait,     ///< it waits; the target has been asked
    refused,  ///< there will be none
  };
  [[nodiscard]] Answer want(KeyWaiter& waiter) {
    switch (state_) {
      case State::known: return Answer::ready;
      case State::refused: return Answer::refused;
      case State::asked: waiting_.push_back(&waiter); return Answer::wait;
      case State::unknown: break;
    }
    waiting_.push_back(&waiter);
    state_ = State::asked;
    return Answer::ask;
  }

  /// The target's answer. One that was offered and asked for comes twice. @param key  empty: none
  void take(std::span<const std::byte> key) {
    if (state_ == State::known || state_ == State::refused) return;
    bytes_.assign(key.begin(), key.end());
    state_ = key.empty() ? State::refused : State::known;
    for (KeyWaiter* const each : std::exchange(waiting_, {})) each->key_came();
  }

  /// Empty: not known. It stays where it is once it is known.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  enum class State : std::uint8_t { unknown, asked, known, refused };

  State state_ = State::unknown;
  std::vector<std::byte> bytes_;
  std::vector<KeyWaiter*> waiting_;
};

}  // namespace overlap::newrma
