// Who takes messages in: what the PML and components beside it register with the BTLs, and what
// keeps messages that come before.
//
// MPI_Init turns Open MPI's event loop while it waits for the launcher's first fence, before a PML
// has registered anything, and btl/tcp accepts and receives in that loop. A peer that is through
// MPI_Init by then sends already: its launcher released this process late, or the job does without
// the second fence (async_mpi_init).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <initializer_list>

#include "ompi/mca/common/overlap/openmpi.hpp"

namespace overlap {

/// What takes in the messages of a component beside the PML; `registers` may be called again, and
/// returns OMPI_SUCCESS or an error code of Open MPI.
struct AddedReceiver {
  mca_btl_base_tag_t tag = 0;
  int (*registers)() = nullptr;
};

/// Let the PML call this when it registers its own receivers: the first message of a faster peer
/// finds one. From the open function of a component to its close function.
/// @thread  MPI_Init and MPI_Finalize only
void add_receiver(AddedReceiver receiver);
void remove_receiver(mca_btl_base_tag_t tag) noexcept;
/// For the PML. @returns  OMPI_SUCCESS or the first error
[[nodiscard]] int register_added_receivers();

/// Keep messages under these tags, and under those of added receivers, until their receivers are
/// registered. When the BML has been initialised.
/// @returns  OMPI_SUCCESS or an error code of Open MPI
[[nodiscard]] int keep_early_messages(std::initializer_list<mca_btl_base_tag_t> tags);

/// Are early messages being kept?
[[nodiscard]] bool keeps_early_messages();

/// Hand what has been kept to the receivers that are registered by now, in the order in which it
/// came. Messages that nobody registered for are dropped, and none is kept any more.
/// @thread  progress lock held
void hand_over_early_messages();

}  // namespace overlap
