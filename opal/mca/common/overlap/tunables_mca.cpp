// Tunables, the part that talks to Open MPI's MCA.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/tunables.hpp"

#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"
#include "opal/mca/common/overlap/openmpi.hpp"

namespace overlap {

namespace {

/// A setting refused at registration.
struct Refused {
  const void* storage;  ///< the row's
  std::string given;    ///< as the user wrote it; empty: Open MPI has told the user
};

std::vector<Refused>& refused() {
  static auto& settings = never_destroyed<std::vector<Refused>>();
  return settings;
}

const Refused* find_refused(const TunableRow& row) {
  const auto found = std::ranges::find(refused(), row.storage, &Refused::storage);
  return found == refused().end() ? nullptr : &*found;
}

/// Where read_choice() puts what the row now being registered was set to, if that is none of its
/// values; nullptr while none is: synonyms are read later.
std::string*& wrong_choice() {
  static std::string* given = nullptr;
  return given;
}

mca_base_var_enum_vfs_fn_t& usual_reading() {
  static mca_base_var_enum_vfs_fn_t reading = nullptr;
  return reading;
}

/// Read a choice as Open MPI does, but keep a wrong one for check_tunables: of Open MPI's own
/// message users would see nothing when mpirun loses it (show_message).
int read_choice(mca_base_var_enum_t* enumerator, const char* text, int* value) {
  const int read = usual_reading()(enumerator, text, value);
  if (read == OPAL_SUCCESS || wrong_choice() == nullptr) return read;
  *wrong_choice() = text;
  *value = 0;
  return OPAL_SUCCESS;
}

std::string prefix_of(const mca_base_component_t* component) {
  return std::string(component->mca_type_name) + "_" + component->mca_component_name + "_";
}

mca_base_var_type_t type_of(TunableType type) {
  switch (type) {
    case TunableType::u32:
      return MCA_BASE_VAR_TYPE_UINT32_T;  // not UNSIGNED_INT: its overflow message says neither
                                          // range nor unit
    case TunableType::u64: return MCA_BASE_VAR_TYPE_UINT64_T;
    case TunableType::i32: return MCA_BASE_VAR_TYPE_INT32_T;
    case TunableType::flag: return MCA_BASE_VAR_TYPE_BOOL;
    case TunableType::choice: return MCA_BASE_VAR_TYPE_INT;
    case TunableType::text: return MCA_BASE_VAR_TYPE_STRING;
  }
  return MCA_BASE_VAR_TYPE_MAX;
}

/// Open MPI's list of names for a choice, which it copies; the caller releases it after
/// registration.
int make_enumerator(const TunableRow& row, const std::string& full_name,
                    mca_base_var_enum_t** enumerator) {
  const auto names = choice_names(row);
  std::vector<mca_base_var_enum_value_t> values;
  for (const std::string& name : names)
    values.push_back({.value = static_cast<int>(values.size()), .string = name.c_str()});
  values.push_back({.value = 0, .string = nullptr});
  const int made = mca_base_var_enum_create(full_name.c_str(), values.data(), enumerator);
  if (made != OPAL_SUCCESS) return made;
  usual_reading() = (*enumerator)->value_from_string;
  (*enumerator)->value_from_string = read_choice;
  return OPAL_SUCCESS;
}

int register_row(const mca_base_component_t* component, const TunableRow& row, bool changeable) {
  mca_base_var_enum_t* enumerator = nullptr;
  if (row.type == TunableType::choice) {
    const int made = make_enumerator(row, prefix_of(component) + row.name, &enumerator);
    if (made != OPAL_SUCCESS) return made;
  }
  std::string given;
  wrong_choice() = &given;
  const auto level = static_cast<mca_base_var_info_lvl_t>(OPAL_INFO_LVL_1 + row.level - 1);
  const int index = mca_base_component_var_register(
      component, row.name, help_text(row).c_str(), type_of(row.type), enumerator, 0,
      static_cast<mca_base_var_flag_t>(changeable ? MCA_BASE_VAR_FLAG_SETTABLE : 0), level,
      changeable ? MCA_BASE_VAR_SCOPE_LOCAL : MCA_BASE_VAR_SCOPE_READONLY, row.storage);
  wrong_choice() = nullptr;
  if (enumerator) OBJ_RELEASE(enumerator);
  if (index == OPAL_ERR_VALUE_OUT_OF_BOUNDS) {
    refused().push_back({row.storage, {}});
    return OPAL_SUCCESS;
  }
  if (!given.empty()) {
    *static_cast<int*>(row.storage) = static_cast<int>(row.default_value);
    refused().push_back({row.storage, given});
  }
  return index < 0 ? index : OPAL_SUCCESS;
}

/// The text the user set, looked up as Open MPI does; null when it comes from a file or nowhere.
const char* environment_text(const mca_base_component_t* component, const TunableRow& row) {
  const std::string full_name = prefix_of(component) + row.name;
  if (const char* text = std::getenv(
          ("OMPI_MCA_" + std::string(component->mca_project_name) + "_" + full_name).c_str()))
    return text;
  return std::getenv(("OMPI_MCA_" + full_name).c_str());
}

std::string all_faults(const mca_base_component_t* component, std::span<const TunableRow> rows) {
  const std::string prefix = prefix_of(component);
  std::string faults;
  for (const TunableRow& row : rows) {
    const Refused* was_refused = find_refused(row);
    if (was_refused && was_refused->given.empty()) continue;
    const char* given = was_refused ? was_refused->given.c_str() : environment_text(component, row);
    std::string fault = given ? check_text(prefix, row, given) : std::string();
    if (fault.empty() && was_refused != nullptr) fault = choice_fault(prefix, row, given);
    if (fault.empty()) fault = check_value(prefix, row);
    if (!fault.empty()) faults += (faults.empty() ? "" : "\n\n") + fault;
  }
  return faults;
}

/// What a job goes on with, where one does without the component.
std::string what_follows(const mca_base_component_t* component) {
  const std::string type = component->mca_type_name;
  if (type != "osc" && type != "coll") return {};
  return "\n\nUntil then " + type + "/" + component->mca_component_name +
         " is not used; what else --mca " + type + " allows takes its place.";
}

std::string all_unknown(const mca_base_component_t* component, std::span<const TunableRow> rows) {
  const std::string prefix = "OMPI_MCA_" + prefix_of(component);
  std::vector<std::string_view>
      candidates;  // what neither the table nor anybody else has registered
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    int index = -1;
    if (text.starts_with(prefix) &&
        mca_base_var_find_by_name(std::string(text.substr(9, text.find('=') - 9)).c_str(),
                                  &index) != OPAL_SUCCESS)
      candidates.push_back(text);
  }
  std::string sentences;
  for (const std::string& sentence : unknown_names(prefix_of(component), rows, candidates))
    sentences += (sentences.empty() ? "" : "\n") + sentence;
  return sentences;
}

}  // namespace

int register_tunables(const mca_base_component_2_1_0_t* component, std::span<const TunableRow> rows,
                      std::span<const void* const> changeable) noexcept try {
  for (const TunableRow& row : rows) {
    const bool may_change = std::ranges::find(changeable, row.storage) != changeable.end();
    const int registered = register_row(component, row, may_change);
    if (registered != OPAL_SUCCESS) return registered;
  }
  return OPAL_SUCCESS;
} catch (...) {
  return OPAL_ERR_OUT_OF_RESOURCE;
}

int check_tunables(const mca_base_component_2_1_0_t* component,
                   std::span<const TunableRow> rows) noexcept try {
  const std::string unknown = all_unknown(component, rows);
  if (!unknown.empty()) show_message(unknown);
  const std::string faults = all_faults(component, rows);
  if (!faults.empty()) show_message(faults + what_follows(component));
  return faults.empty() && std::ranges::none_of(rows, find_refused) ? OPAL_SUCCESS
                                                                    : OPAL_ERR_BAD_PARAM;
} catch (...) {
  return OPAL_ERR_OUT_OF_RESOURCE;
}

}  // namespace overlap
