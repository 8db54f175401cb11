// Modules: made with each communicator, enabled, and gone with it.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll_mq_module.hpp"

#include "ompi/mca/common/overlap/entry.hpp"

#include "coll_mq_communicator.hpp"

namespace overlap::coll_mq {
namespace {

int enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) noexcept {
  return guarded([&]() -> int {
    auto& module = *reinterpret_cast<Module*>(base);
    const Entry entry;
    auto made = std::make_unique<Communicator>(*comm);
    communicators.take_early(*made);
    module.communicator = made.release();
    return OMPI_SUCCESS;
  });
}

void drop_communicator(Module& module) noexcept {
  if (module.communicator == nullptr) return;
  const CallbackEntry entry;  // Open MPI frees communicators in its progress, too
  delete std::exchange(module.communicator, nullptr);
}

int disable(mca_coll_base_module_t* base, ompi_communicator_t*) noexcept {
  drop_communicator(*reinterpret_cast<Module*>(base));
  return OMPI_SUCCESS;
}

}  // namespace
}  // namespace overlap::coll_mq

using overlap::coll_mq::Module;

extern "C" {
static void overlap_coll_mq_construct_module(opal_object_t* object) {
  reinterpret_cast<Module*>(object)->communicator = nullptr;
}
static void overlap_coll_mq_destruct_module(opal_object_t* object) {
  overlap::coll_mq::drop_communicator(*reinterpret_cast<Module*>(object));
}

opal_class_t overlap_coll_mq_module_class = {.cls_name = "overlap_coll_mq_module_t",
                                             .cls_parent = OBJ_CLASS(mca_coll_base_module_t),
                                             .cls_construct = overlap_coll_mq_construct_module,
                                             .cls_destruct = overlap_coll_mq_destruct_module,
                                             .cls_initialized = 0,
                                             .cls_depth = 0,
                                             .cls_construct_array = nullptr,
                                             .cls_destruct_array = nullptr,
                                             .cls_sizeof = sizeof(Module)};
}

namespace overlap::coll_mq {

mca_coll_base_module_t* make_module(ompi_communicator_t& comm) {
  // Alone there is nobody to wait for: Open MPI has coll/self.
  if (!OMPI_COMM_IS_INTER(&comm) && ompi_comm_size(&comm) < 2) return nullptr;
  auto* const module = reinterpret_cast<Module*>(opal_obj_new(&overlap_coll_mq_module_class));
  if (module == nullptr) return nullptr;
  module->super.coll_module_enable = enable;
  module->super.coll_module_disable = disable;
  fill_barriers(module->super);
  return &module->super;
}

}  // namespace overlap::coll_mq
