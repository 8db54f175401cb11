// Management queues of the software device as a client posts to them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "soft_device.hpp"

namespace overlap::fabric::soft {

/// Index arithmetic happens here, as in an adapter's driver: the device gets absolute indices.
class SoftManagementQueue final : public ManagementQueue {
 public:
  SoftManagementQueue(SoftDevice& device, std::uint32_t entries);
  ~SoftManagementQueue() override;
  [[nodiscard]] Posted post(std::uint64_t id,
                            std::span<const fabric::Task> tasks) noexcept override;
  [[nodiscard]] CompletionQueue& completions() noexcept override { return completions_; }

  /// The completion of a list was polled: everything up to its last entry is free again.
  void retire(std::uint32_t position, CompletionStatus status) noexcept;
  /// The device has gone: complete what is posted.
  void flush_locally();

 private:
  [[nodiscard]] Status stage(const fabric::Task& task) noexcept;
  [[nodiscard]] Status stage_own() noexcept;
  static void restart(std::span<const fabric::Task> tasks) noexcept;
  void append(const fabric::Task& task, std::int64_t posted_ns) noexcept;
  void append_own(std::uint8_t kind, std::uint32_t number, std::uint32_t index,
                  std::int64_t posted_ns) noexcept;

  SoftDevice& device_;
  SoftCompletionQueue completions_;
  std::uint32_t entries_;
  std::uint32_t tail_ = 0;
  std::uint32_t retired_ = 0;  ///< entries whose list was polled
  std::uint32_t staged_ = 0;   ///< entries of the list that is being posted
  std::uint32_t number_ = 0;
  bool failed_ = false;
  Mapping ring_;
};

}  // namespace overlap::fabric::soft
