// Asking for the helper, and starting it.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/helper.hpp"

#include "ompi/mca/common/overlap/settings.hpp"
#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/node/helper_start.hpp"

namespace overlap {
namespace {

using State = node::HelperClient::State;
using common::helper_choice;

constexpr int answer_max_ms = 20;

}  // namespace

void Helper::begin(const NodeArea& node) noexcept try {
  if (common::tunables.helper == helper_choice::off || !node.has_bell()) return;
  const auto ask = [this, &node] {
    client_.ask({.job = OPAL_PROC_MY_NAME.jobid, .local_rank = static_cast<int>(local_rank())},
                node.file(), node.bell().ringing());
    return client_.await_answer(answer_max_ms);
  };
  if (ask() != State::absent || common::tunables.helper != helper_choice::start) return;
  if (node::start_helper("ompi-progressd") != node::HelperStart::failed)
    ask();
  else
    not_started_.store(true, std::memory_order_relaxed);
} catch (const std::bad_alloc&) {
  return;  // without it neighbours wake this process
}

void Helper::report_failure_slow() noexcept try {
  not_started_.store(false, std::memory_order_relaxed);
  show_message(
      "common_overlap_helper is start, but ompi-progressd cannot be started: it must be in PATH on "
      "each "
      "node. Senders wake their receivers themselves.");
} catch (const std::bad_alloc&) {
  return;  // nothing depends on the message
}

bool Helper::has_gone(const NodeArea& node) noexcept {
  const State before = client_.state();
  if (client_.look() == before || client_.state() == State::served) return false;
  stop_watching(*node.get());
  return true;
}

}  // namespace overlap
