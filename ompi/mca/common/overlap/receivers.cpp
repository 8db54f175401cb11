// Receivers, and messages that come before them.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/receivers.hpp"

#include <mutex>
#include <utility>

#include "ompi/mca/common/overlap/entry.hpp"
#include "ompi/mca/common/overlap/settings.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"

namespace overlap {
namespace {

struct EarlyMessage {
  mca_btl_base_module_t* btl = nullptr;
  mca_btl_base_tag_t tag = 0;
  std::vector<std::byte> bytes;
};

struct Early {
  std::mutex mutex;  ///< protects keeping and messages: btl/tcp may have a thread of its own
  bool keeping = false;
  std::vector<EarlyMessage> messages;
  std::vector<mca_btl_base_tag_t> tags;  ///< MPI_Init and MPI_Finalize only
};

Early& early() {
  static auto& all = never_destroyed<Early>();
  return all;
}

std::vector<AddedReceiver>& receivers() {
  static auto& all = never_destroyed<std::vector<AddedReceiver>>();
  return all;
}

void hand_over(EarlyMessage& message) {
  if (mca_btl_base_active_message_trigger[message.tag].cbfunc == nullptr) return;
  deliver_message(message.btl, nullptr, message.tag, message.bytes.data(), message.bytes.size());
}

/// @returns  has it been kept?
bool keep_while_keeping(EarlyMessage& message) {
  const std::lock_guard guard(early().mutex);
  if (early().keeping) early().messages.push_back(std::move(message));
  return early().keeping;
}

void keep(const Received& received) noexcept {
  must_run([&received] {
    EarlyMessage message{received.btl, received.tag, {}};
    for (std::size_t i = 0; i < received.segment_count; ++i) {
      message.bytes.insert(message.bytes.end(), received.data(i),
                           received.data(i) + received.size(i));
    }
    // A thread of btl/tcp may have looked this function up before all were handed over.
    if (!keep_while_keeping(message)) hand_over(message);
  });
}

bool is_kept(mca_btl_base_tag_t tag) noexcept {
  return mca_btl_base_active_message_trigger[tag].cbfunc == receive_callback<keep>();
}

}  // namespace

void add_receiver(AddedReceiver receiver) { receivers().push_back(receiver); }

void remove_receiver(mca_btl_base_tag_t tag) noexcept {
  std::erase_if(receivers(), [tag](const AddedReceiver& each) { return each.tag == tag; });
}

int register_added_receivers() {
  for (const AddedReceiver& each : receivers()) {
    if (const int rc = each.registers(); rc != OMPI_SUCCESS) return rc;
  }
  return OMPI_SUCCESS;
}

int keep_early_messages(std::initializer_list<mca_btl_base_tag_t> tags) {
  {
    const std::lock_guard guard(early().mutex);
    early().keeping = true;
  }
  early().tags = tags;
  for (const AddedReceiver& each : receivers()) early().tags.push_back(each.tag);
  for (const mca_btl_base_tag_t tag : early().tags) {
    if (const int rc = register_receiver<keep>(tag); rc != OMPI_SUCCESS) return rc;
  }
  return OMPI_SUCCESS;
}

bool keeps_early_messages() {
  const std::lock_guard guard(early().mutex);
  return early().keeping;
}

void hand_over_early_messages() {
  for (const mca_btl_base_tag_t tag : std::exchange(early().tags, {})) {
    if (is_kept(tag)) mca_btl_base_active_message_trigger[tag] = {};
  }
  std::vector<EarlyMessage> messages;
  {
    const std::lock_guard guard(early().mutex);
    early().keeping = false;
    messages.swap(early().messages);
  }
  common::counters.early_kept += messages.size();
  for (EarlyMessage& each : messages) hand_over(each);
}

}  // namespace overlap
