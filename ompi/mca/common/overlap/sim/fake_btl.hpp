// A BTL for tests: it notes what it is asked for and answers what it is told to.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

namespace overlap::sim {

/// @see mca_btl_base_module_t. What a test sets or looks at is public.
class FakeBtl : public mca_btl_base_module_t {
 public:
  struct Piece {
    bool put;
    std::byte* local;
    std::uint64_t remote_address;
    std::uint64_t bytes;
    mca_btl_base_rdma_completion_fn_t done;
    void* context;
    void* data;
  };

  std::deque<int> answers;      ///< to the next puts and gets; afterwards OMPI_SUCCESS
  std::vector<Piece> asked;     ///< all that was taken
  std::deque<Piece> in_flight;  ///< what of it has not ended

  /// @param progress  nullptr: driven by the event loop
  FakeBtl(std::string_view name, mca_btl_base_component_progress_fn_t progress)
      : mca_btl_base_module_t{},
        component_(make_btl_component(name, {.open = nullptr,
                                             .close = nullptr,
                                             .register_variables = nullptr,
                                             .init = nullptr,
                                             .progress = progress})) {
    btl_component = &component_;
    btl_eager_limit = 4096;
    btl_max_send_size = 32768;
    btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_PUT | MCA_BTL_FLAGS_GET;
    btl_put = put;
    btl_get = get;
  }
  FakeBtl(const FakeBtl&) = delete;
  FakeBtl& operator=(const FakeBtl&) = delete;

  /// The oldest piece ends.
  void end(int status) {
    const Piece piece = in_flight.front();
    in_flight.pop_front();
    piece.done(this, nullptr, piece.local, nullptr, piece.context, piece.data, status);
  }

 private:
  int take(const Piece& piece) {
    int answer = OMPI_SUCCESS;
    if (!answers.empty()) {
      answer = answers.front();
      answers.pop_front();
    }
    if (answer != OMPI_SUCCESS) return answer;
    asked.push_back(piece);
    in_flight.push_back(piece);
    return answer;
  }
  static int put(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void* local,
                 std::uint64_t remote_address, mca_btl_base_registration_handle_t*,
                 mca_btl_base_registration_handle_t*, std::size_t bytes, int, int,
                 mca_btl_base_rdma_completion_fn_t done, void* context, void* data) {
    return static_cast<FakeBtl*>(btl)->take(
        {true, static_cast<std::byte*>(local), remote_address, bytes, done, context, data});
  }
  static int get(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void* local,
                 std::uint64_t remote_address, mca_btl_base_registration_handle_t*,
                 mca_btl_base_registration_handle_t*, std::size_t bytes, int, int,
                 mca_btl_base_rdma_completion_fn_t done, void* context, void* data) {
    return static_cast<FakeBtl*>(btl)->take(
        {false, static_cast<std::byte*>(local), remote_address, bytes, done, context, data});
  }

  mca_btl_base_component_t component_;
};

/// A process that is reached by some BTLs, as the BML describes it.
class FakeProcess {
 public:
  explicit FakeProcess(const std::vector<FakeBtl*>& btls) {
    for (FakeBtl* btl : btls) {
      mca_bml_base_btl_t entry{};
      entry.btl_flags = btl->btl_flags;
      entry.btl_weight = 1.0F / static_cast<float>(btls.size());
      entry.btl = btl;
      entries_.push_back(entry);
    }
    for (auto* array : {&bml.btl_eager, &bml.btl_send, &bml.btl_rdma}) {
      array->arr_size = entries_.size();
      array->bml_btls = entries_.data();
    }
  }
  FakeProcess(const FakeProcess&) = delete;
  FakeProcess& operator=(const FakeProcess&) = delete;

  ompi_proc_t proc{};
  mca_bml_base_endpoint_t bml{};

 private:
  std::vector<mca_bml_base_btl_t> entries_;
};

}  // namespace overlap::sim
