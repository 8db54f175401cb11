// Copying with the last byte last, and without dying of memory that goes away.
// SPDX-License-Identifier: BSD-3-Clause
#include "copier.hpp"

#include <setjmp.h>
#include <signal.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace overlap::fabric::soft {
namespace {

// A client can shorten a file that the device has mapped: touching the missing pages is SIGBUS,
// which ends the copy and nothing else.
sigjmp_buf fault_return;
volatile sig_atomic_t fault_expected = 0;

void on_fault(int number) {
  if (fault_expected != 0) siglongjmp(fault_return, 1);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

constexpr bool string_stores_ordered =
#if defined(__x86_64__)
    true;
#else
    false;
#endif

using Word = std::uint64_t;

/// Copy into mapped memory.
void store(std::byte* to, const std::byte* from, std::size_t bytes, bool last) noexcept {
  if (!last || bytes == 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  if (bytes >= sizeof(Word) && reinterpret_cast<std::uintptr_t>(to + bytes) % sizeof(Word) == 0) {
    const std::size_t before = bytes - sizeof(Word);
    std::memcpy(to, from, before);
    Word word = 0;
    std::memcpy(&word, from + before, sizeof(word));
    std::atomic_ref<Word>(*reinterpret_cast<Word*>(to + before))
        .store(word, std::memory_order_release);
    return;
  }
  std::memcpy(to, from, bytes - 1);
  std::atomic_ref<unsigned char>(*reinterpret_cast<unsigned char*>(to + bytes - 1))
      .store(static_cast<unsigned char>(from[bytes - 1]), std::memory_order_release);
}

[[nodiscard]] std::size_t sum(std::span<const Piece> pieces) noexcept {
  std::size_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

[[nodiscard]] iovec remote(std::uint64_t address, std::size_t bytes) noexcept {
  return {reinterpret_cast<void*>(address), bytes};
}

[[nodiscard]] bool write_remote(pid_t to, const std::byte* from, const iovec* parts,
                                std::size_t count) noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += parts[i].iov_len;
  const iovec local{const_cast<std::byte*>(from), bytes};
  return bytes == 0 ||
         ::process_vm_writev(to, &local, 1, parts, count, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace

Copier::Copier() {
  struct sigaction action {};
  action.sa_handler = on_fault;
  action.sa_flags = SA_NODEFER;  // siglongjmp leaves the handler without restoring the mask
  ::sigaction(SIGBUS, &action, nullptr);
}

Copied Copier::copy(pid_t to, std::span<const Piece> target, pid_t from,
                    std::span<const Piece> source, bool last) noexcept {
  volatile bool reading = true;
  errno = 0;
  if (sigsetjmp(fault_return, 0) != 0) {
    fault_expected = 0;
    return reading ? Copied::source_failed : Copied::target_failed;
  }
  fault_expected = 1;
  const bool good = move(to, target, from, source, last, reading);
  fault_expected = 0;
  if (good) return Copied::done;
  if (errno == ESRCH) return reading ? Copied::source_gone : Copied::target_gone;
  return reading ? Copied::source_failed : Copied::target_failed;
}

/// What copy() guards, in a frame of its own: the compiler keeps nothing of it across sigsetjmp.
///
/// @param reading  out: false when only the target can fail
bool Copier::move(pid_t to, std::span<const Piece> target, pid_t from,
                  std::span<const Piece> source, bool last, volatile bool& reading) noexcept {
  const bool one_source = source.size() == 1;
  const bool direct = one_source && source[0].mapping == nullptr && target.size() == 1 &&
                      target[0].mapping != nullptr;
  // When the direct way fails, the longer one tells whose memory it was.
  if (direct && read_into(target[0].mapping, from, source[0], last)) return true;
  const std::byte* bytes = buffer_.data();
  if (one_source && source[0].mapping != nullptr) {
    bytes = source[0].mapping;
  } else if (!gather(from, source, sum(source))) {
    return false;
  }
  reading = false;
  return scatter(to, target, bytes, last);
}

/// Collect the source in the buffer.
bool Copier::gather(pid_t from, std::span<const Piece> source, std::size_t bytes) noexcept {
  if (bytes > buffer_.size()) return false;
  std::byte* at = buffer_.data();
  for (const Piece& piece : source) {
    if (piece.mapping != nullptr) {
      std::memcpy(at, piece.mapping, piece.bytes);
    } else {
      const iovec local{at, piece.bytes};
      const iovec other = remote(piece.address, piece.bytes);
      if (::process_vm_readv(from, &local, 1, &other, 1, 0) != static_cast<ssize_t>(piece.bytes))
        return false;
    }
    at += piece.bytes;
  }
  return true;
}

/// Unmapped source, mapped target: the kernel copies straight there, all but the end of the
/// message.
bool Copier::read_into(std::byte* target, pid_t from, const Piece& source, bool last) noexcept {
  std::array<std::byte, sizeof(Word)> end{};
  const std::size_t held = last ? std::min<std::size_t>(end.size(), source.bytes) : 0;
  const std::size_t before = source.bytes - held;
  const iovec local[2] = {{target, before}, {end.data(), held}};
  const iovec other = remote(source.address, source.bytes);
  if (::process_vm_readv(from, local, 2, &other, 1, 0) != static_cast<ssize_t>(source.bytes))
    return false;
  if (last) store(target + before, end.data(), held, true);
  return true;
}

bool Copier::scatter(pid_t to, std::span<const Piece> target, const std::byte* from,
                     bool last) noexcept {
  for (std::size_t i = 0; i < target.size(); ++i) {
    const Piece& piece = target[i];
    const bool end = last && i + 1 == target.size() && piece.bytes > 0;
    if (piece.mapping != nullptr) {
      store(piece.mapping, from, piece.bytes, end);
    } else {
      const iovec parts[2] = {remote(piece.address, piece.bytes - (end ? 1 : 0)),
                              remote(piece.address + piece.bytes - 1, end ? 1 : 0)};
      if (string_stores_ordered || !end) {
        if (!write_remote(to, from, parts, end ? 2 : 1)) return false;
      } else {
        if (!write_remote(to, from, parts, 1)) return false;
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (!write_remote(to, from + parts[0].iov_len, parts + 1, 1)) return false;
      }
    }
    from += piece.bytes;
  }
  return true;
}

Copied Copier::atomic(pid_t pid, const Piece& target, const WorkRequest& request,
                      std::uint64_t& old) noexcept {
  const bool add = request.opcode == Opcode::fetch_add;
  if (target.mapping != nullptr) {
    if (sigsetjmp(fault_return, 0) != 0) {
      fault_expected = 0;
      return Copied::target_failed;
    }
    fault_expected = 1;
    std::atomic_ref<Word> word(*reinterpret_cast<Word*>(target.mapping));
    if (add) {
      old = word.fetch_add(request.operand);
    } else {
      Word expected = request.compare;
      word.compare_exchange_strong(expected, request.operand);
      old = expected;
    }
    fault_expected = 0;
    return Copied::done;
  }
  const auto failed = [] { return errno == ESRCH ? Copied::target_gone : Copied::target_failed; };
  // Atomic among the device's own, which are executed one after the other; not against the
  // processor's.
  const iovec other = remote(target.address, sizeof(Word));
  Word word = 0;
  const iovec local{&word, sizeof(word)};
  if (::process_vm_readv(pid, &local, 1, &other, 1, 0) != static_cast<ssize_t>(sizeof(word)))
    return failed();
  old = word;
  if (!add && word != request.compare) return Copied::done;
  word = add ? word + request.operand : request.operand;
  if (::process_vm_writev(pid, &local, 1, &other, 1, 0) != static_cast<ssize_t>(sizeof(word)))
    return failed();
  return Copied::done;
}

}  // namespace overlap::fabric::soft
