// Counters as MPI_T performance variables; needs Open MPI.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/counters.hpp"

#include "opal/mca/common/overlap/openmpi.hpp"

namespace overlap {

namespace {

int class_of(CounterClass cls) {
  switch (cls) {
    case CounterClass::counter: return MCA_BASE_PVAR_CLASS_COUNTER;
    case CounterClass::high_watermark: return MCA_BASE_PVAR_CLASS_HIGHWATERMARK;
    case CounterClass::level: return MCA_BASE_PVAR_CLASS_LEVEL;
  }
  return MCA_BASE_PVAR_CLASS_ANY;
}

}  // namespace

int register_counters(const mca_base_component_2_1_0_t* component,
                      std::span<const CounterRow> rows) noexcept {
  static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
  constexpr auto flags = static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY |
                                                           MCA_BASE_PVAR_FLAG_CONTINUOUS);
  for (const CounterRow& row : rows) {
    const int index = mca_base_component_pvar_register(
        component, row.name, row.help, OPAL_INFO_LVL_4, class_of(row.cls),
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, nullptr, 0 /* no object */, flags, nullptr, nullptr,
        nullptr, row.storage);
    if (index < 0) return index;
  }
  return OPAL_SUCCESS;
}

}  // namespace overlap
