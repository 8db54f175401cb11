// Puts and gets of a BTL that are copies of the kernel.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/kernel_copy.hpp"

#include <memory>

#include "opal/mca/common/overlap/message.hpp"

namespace overlap {
namespace {

struct CopyEnd {
  bool has_ended = false;
  bool ok = false;
};

void on_copied(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*,
               mca_btl_base_registration_handle_t*, void* end, void*, int status) noexcept {
  *static_cast<CopyEnd*>(end) = {.has_ended = true, .ok = status == OMPI_SUCCESS};
}

/// One byte of the other's memory, fetched to see when gets end. Lives until this one has.
struct Probe {
  std::byte byte{};
  CopyEnd end;
  bool is_left = false;  ///< nobody waits for it any more: it goes with its end
};

void on_probed(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*,
               mca_btl_base_registration_handle_t*, void* context, void*, int status) noexcept {
  auto* const probe = static_cast<Probe*>(context);
  probe->end = {.has_ended = true, .ok = status == OMPI_SUCCESS};
  if (probe->is_left) delete probe;
}

/// @returns  Copies::unknown: there was no room to ask, or the kernel refuses this very memory,
///           which says nothing of other memory
Rail::Copies probe(Rail& rail, std::uint64_t address) {
  auto owner = std::make_unique<Probe>();
  mca_btl_base_module_t& btl = rail.btl();
  const int rc = btl.btl_get(&btl, rail.bml_btl->btl_endpoint, &owner->byte, address, nullptr,
                             nullptr, 1, 0, MCA_BTL_NO_ORDER, on_probed, owner.get(), nullptr);
  if (rc < 0) return Rail::Copies::unknown;
  if (owner->end.has_ended) return owner->end.ok ? Rail::Copies::at_once : Rail::Copies::unknown;
  owner.release()->is_left = true;
  return Rail::Copies::later;
}

}  // namespace

Rail* transfer_rail(Endpoint& endpoint) noexcept {
  if (endpoint.memory_rails().size() != 1 || endpoint.eager_rails().size() != 1) return nullptr;
  Rail& rail = endpoint.memory_rails().front();
  return &rail.btl() == &endpoint.eager_rails().front().btl() ? &rail : nullptr;
}

bool kernel_copies(Endpoint& endpoint) noexcept {
  const Rail* const rail = transfer_rail(endpoint);
  return endpoint.copies_itself() && rail != nullptr && !needs_key(*rail);
}

bool copies_at_once(Rail& rail, std::uint64_t address) {
  constexpr std::uint32_t both = MCA_BTL_FLAGS_PUT | MCA_BTL_FLAGS_GET;
  if ((rail.bml_btl->btl_flags & both) != both) return false;
  if (rail.btl().btl_put_alignment > 1 || rail.btl().btl_get_alignment > 1) return false;
  if (rail.copies == Rail::Copies::unknown) rail.copies = probe(rail, address);
  return rail.copies == Rail::Copies::at_once;
}

bool copy_at_once(Rail& rail, CopyFunction* by, std::uint64_t address, std::span<std::byte> own) {
  if (own.empty()) return true;
  CopyEnd end;
  const int rc = by(&rail.btl(), rail.bml_btl->btl_endpoint, own.data(), address, nullptr, nullptr,
                    own.size(), 0, MCA_BTL_NO_ORDER, on_copied, &end, nullptr);
  if (rc >= 0 && !end.has_ended) {
    // Not as the probe has shown: the end would be written to a frame that is gone.
    show_message(std::string("overlap: the BTL ") +
                 rail.btl().btl_component->btl_version.mca_component_name +
                 " has not ended a copy inside the call, as it did before. The job ends.");
    abort_job(MPI_ERR_INTERN);
  }
  return rc >= 0 && end.ok;
}

}  // namespace overlap
