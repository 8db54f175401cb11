// Modules: made with each communicator, enabled, and gone with it.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll_mq_module.hpp"

#include <optional>

#include "ompi/mca/common/overlap/entry.hpp"

#include "coll_mq_communicator.hpp"
#include "coll_mq_device.hpp"

namespace overlap::coll_mq {
namespace {

int enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) noexcept {
  return guarded([&]() -> int {
    Module& module = module_of(base);
    const Entry entry;
    auto made = std::make_unique<Communicator>(*comm);
    communicators.take_early(*made);
    module.communicator = made.release();
    if (!OMPI_COMM_IS_INTER(comm)) fill_data(module, *comm->c_coll);
    return OMPI_SUCCESS;
  });
}

void drop_communicator(Module& module) noexcept {
  if (module.communicator == nullptr) return;
  const CallbackEntry entry;  // Open MPI frees communicators in its progress, too
  delete std::exchange(module.communicator, nullptr);
}

int disable(mca_coll_base_module_t* base, ompi_communicator_t*) noexcept {
  drop_communicator(module_of(base));
  drop_before(module_of(base));
  return OMPI_SUCCESS;
}

}  // namespace
}  // namespace overlap::coll_mq

using overlap::coll_mq::Module;

extern "C" {
static void overlap_coll_mq_construct_module(opal_object_t* object) {
  reinterpret_cast<Module*>(object)->communicator = nullptr;
  reinterpret_cast<Module*>(object)->before = {};
}
static void overlap_coll_mq_destruct_module(opal_object_t* object) {
  overlap::coll_mq::drop_communicator(*reinterpret_cast<Module*>(object));
  overlap::coll_mq::drop_before(*reinterpret_cast<Module*>(object));
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
namespace {

/// What all ranks of a communicator must have in common. Those of a job have.
struct Settings {
  std::uint32_t priority = tunables.priority;
  std::uint32_t radix = tunables.radix;
  std::uint32_t window = std::bit_floor(tunables.window);
  std::uint32_t two_level = tunables.two_level ? 1 : 0;
  std::uint64_t straight_max = tunables.straight_max;
  std::uint64_t payload_max = tunables.payload_max;
  std::uint64_t segment = tunables.segment;
  std::uint64_t device = coll_mq::device != nullptr ? 1 : 0;

  [[nodiscard]] bool operator==(const Settings&) const noexcept = default;
};
static_assert(std::has_unique_object_representations_v<Settings>, "compared as bytes");

[[nodiscard]] bool has_own_settings(opal_process_name_t other) {
  const std::vector<std::byte> theirs = lookup_published(component(), other);
  const Settings mine;
  return theirs.size() >= sizeof mine && std::memcmp(theirs.data(), &mine, sizeof mine) == 0;
}

/// Have the processes of other jobs in this group been told the same?
[[nodiscard]] bool agrees(ompi_group_t* group) {
  std::optional<opal_jobid_t> asked;  // the last job: its processes stand together
  for (int rank = 0; rank < ompi_group_size(group); ++rank) {
    const opal_process_name_t name = ompi_group_get_proc_name(group, rank);
    if (name.jobid == OPAL_PROC_MY_NAME.jobid || asked == name.jobid) continue;
    asked = name.jobid;
    if (!has_own_settings(name)) return false;
  }
  return true;
}

}  // namespace

void publish_settings() noexcept {
  const Settings mine;
  std::vector<std::byte> bytes(sizeof mine);
  std::memcpy(bytes.data(), &mine, sizeof mine);
  const std::vector<std::byte> address = device_address();
  bytes.insert(bytes.end(), address.begin(), address.end());
  static_cast<void>(publish(component(), bytes));
}

std::optional<fabric::Address> address_of(opal_process_name_t name) {
  const std::vector<std::byte> published = lookup_published(component(), name);
  if (published.size() < sizeof(Settings)) return std::nullopt;
  return address_in(std::span(published).subspan(sizeof(Settings)));
}

mca_coll_base_module_t* make_module(ompi_communicator_t& comm) {
  // Alone there is nobody to wait for: Open MPI has coll/self.
  if (!OMPI_COMM_IS_INTER(&comm) && ompi_comm_size(&comm) < 2) return nullptr;
  if (!agrees(comm.c_local_group)) return nullptr;
  if (OMPI_COMM_IS_INTER(&comm) && !agrees(comm.c_remote_group)) return nullptr;
  auto* const module = reinterpret_cast<Module*>(opal_obj_new(&overlap_coll_mq_module_class));
  if (module == nullptr) return nullptr;
  module->super.coll_module_enable = enable;
  module->super.coll_module_disable = disable;
  fill_barriers(module->super);
  return &module->super;
}

}  // namespace overlap::coll_mq
