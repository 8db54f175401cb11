// Whose message is it: of a communicator that is here, of one that was, or of one to come?
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace overlap::coll_mq {

/// A process's name for one of its communicators: its number in the job and beyond, and a count of
/// the communicators that it has made, which grows (and wraps).
struct Birth {
  std::uint64_t process = 0;
  std::uint32_t count = 0;

  [[nodiscard]] constexpr bool operator==(const Birth&) const noexcept = default;
};

/// Was the first of two births of one process the earlier one, or the same?
[[nodiscard]] constexpr bool is_not_after(std::uint32_t count, std::uint32_t other) noexcept {
  return static_cast<std::int32_t>(count - other) <= 0;
}

/// The senders of a communicator, each with the birth that its first message has shown.
///
/// A communicator lives until its collectives have ended, each of which waits for all messages that
/// it is sent. So no message with data comes late. Who asks, perhaps late, has sent data, or does
/// next. An answer, which may come late, too, from one who has sent nothing before, names the birth
/// of who has asked, and is for that communicator only. The first message of a sender is therefore
/// one of this communicator, unless Buried knows better; those behind it must show the same birth.
class Senders {
 public:
  enum class Verdict : std::uint8_t {
    same,     ///< as its other messages
    other,    ///< a message of another communicator
    unknown,  ///< the first one of this source
  };
  [[nodiscard]] Verdict judge(std::int32_t source, const Birth& birth) const noexcept {
    const auto at = std::ranges::lower_bound(all_, source, {}, &Sender::source);
    if (at == all_.end() || at->source != source) return Verdict::unknown;
    return at->birth == birth ? Verdict::same : Verdict::other;
  }
  /// @param source  one that has sent a message
  [[nodiscard]] Birth birth_of(std::int32_t source) const noexcept {
    return std::ranges::lower_bound(all_, source, {}, &Sender::source)->birth;
  }
  /// Its first message is one of this communicator. Throws std::bad_alloc.
  void add(std::int32_t source, const Birth& birth) {
    all_.insert(std::ranges::lower_bound(all_, source, {}, &Sender::source), {source, birth});
  }
  struct Sender {
    std::int32_t source = 0;
    Birth birth;
  };
  [[nodiscard]] const std::vector<Sender>& all() const noexcept { return all_; }

 private:
  std::vector<Sender> all_;  ///< by source
};

/// What senders called the last communicators that are gone, by the number that communicators have
/// on the wire, which is used again. A number has as many entries as processes have sent to it.
class Buried {
 public:
  /// Is this message one of a communicator that is gone?
  [[nodiscard]] bool holds(std::uint32_t context, const Birth& birth) const noexcept {
    const auto found = all_.find(context);
    if (found == all_.end()) return false;
    const auto at = std::ranges::find(found->second, birth.process, &Birth::process);
    return at != found->second.end() && is_not_after(birth.count, at->count);
  }
  /// The communicator is freed. Throws std::bad_alloc.
  void bury(std::uint32_t context, const Senders& senders) {
    if (senders.all().empty()) return;
    std::vector<Birth>& buried = all_[context];
    for (const Senders::Sender& each : senders.all()) {
      const auto at = std::ranges::find(buried, each.birth.process, &Birth::process);
      if (at != buried.end())
        at->count = each.birth.count;
      else
        buried.push_back(each.birth);
    }
  }

 private:
  std::unordered_map<std::uint32_t, std::vector<Birth>> all_;
};

}  // namespace overlap::coll_mq
