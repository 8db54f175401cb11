// Tunables, the part that talks to Open MPI's MCA.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/tunables.hpp"

#include <algorithm>
#include <cstring>

#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"
#include "opal/mca/common/overlap/openmpi.hpp"

namespace overlap {

namespace {

/// A setting refused at registration.
struct Refused {
  const void* storage;  ///< the row's
  std::string prefix;   ///< of the name that it was set under
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
/// values; nullptr while none is: MPI_T may set it later.
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

/// Register a row under a name, and note what it was set to there if that is no value of it.
/// @param registers  at Open MPI; returns an index or Open MPI's error
template <class Register>
int register_name(const TunableRow& row, const std::string& prefix, Register&& registers) {
  std::string given;
  wrong_choice() = &given;
  const int index = registers();
  wrong_choice() = nullptr;
  if (index == OPAL_ERR_VALUE_OUT_OF_BOUNDS) {
    refused().push_back({row.storage, prefix, {}});
    return OPAL_SUCCESS;
  }
  if (!given.empty()) {
    *static_cast<int*>(row.storage) = static_cast<int>(row.default_value);
    refused().push_back({row.storage, prefix, given});
  }
  return index < 0 ? index : OPAL_SUCCESS;
}

int register_row(const mca_base_component_t* component, const TunableRow& row, bool changeable) {
  mca_base_var_enum_t* enumerator = nullptr;
  if (row.type == TunableType::choice) {
    const int made = make_enumerator(row, prefix_of(component) + row.name, &enumerator);
    if (made != OPAL_SUCCESS) return made;
  }
  const auto level = static_cast<mca_base_var_info_lvl_t>(OPAL_INFO_LVL_1 + row.level - 1);
  const int registered = register_name(row, prefix_of(component), [&] {
    return mca_base_component_var_register(
        component, row.name, help_text(row).c_str(), type_of(row.type), enumerator, 0,
        static_cast<mca_base_var_flag_t>(changeable ? MCA_BASE_VAR_FLAG_SETTABLE : 0), level,
        changeable ? MCA_BASE_VAR_SCOPE_LOCAL : MCA_BASE_VAR_SCOPE_READONLY, row.storage);
  });
  if (enumerator) OBJ_RELEASE(enumerator);
  return registered;
}

int index_of(const mca_base_component_t& component, const TunableRow& row) noexcept {
  return mca_base_var_find(component.mca_project_name, component.mca_type_name,
                           component.mca_component_name, row.name);
}

/// How a user has set a row, as it was written.
struct Given {
  std::string_view name;
  std::string_view text;
};

/// Open MPI's numbers end before a comment behind them.
std::string_view without_comment(std::string_view text) noexcept {
  const std::size_t at = std::min(text.find(" #"), text.find("\t#"));
  return text.substr(0, at);
}

/// What stands for a variable in the environment, or else in a parameter file, as Open MPI looks.
void add_given(const mca_base_var_t& variable, std::vector<Given>& in_environment,
               std::vector<Given>& in_files) {
  for (const char* name : {variable.mbv_long_name, variable.mbv_full_name}) {
    const char* text = std::getenv((std::string("OMPI_MCA_") + name).c_str());
    if (text == nullptr) continue;
    in_environment.push_back({variable.mbv_full_name, text});
    return;
  }
  // That of a synonym, too; "name =" has no value.
  const auto* in_file = static_cast<const mca_base_var_file_value_t*>(variable.mbv_file_value);
  if (in_file == nullptr || in_file->mbvfv_value == nullptr) return;
  in_files.push_back({in_file->mbvfv_var, without_comment(in_file->mbvfv_value)});
}

/// What a row was set to under its own name and others, as far as it may be in force: a site's
/// override file goes before the environment, and this before other files.
std::vector<Given> all_given(const mca_base_component_t& component, const TunableRow& row) {
  std::vector<Given> in_environment, in_files;
  const mca_base_var_t* own = nullptr;
  if (mca_base_var_get(index_of(component, row), &own) != OPAL_SUCCESS) return {};
  add_given(*own, in_environment, in_files);
  auto* synonyms = const_cast<opal_value_array_t*>(&own->mbv_synonyms);
  for (std::size_t i = 0; i < opal_value_array_get_size(synonyms); ++i) {
    const int index = *static_cast<const int*>(opal_value_array_get_item(synonyms, i));
    const mca_base_var_t* other = nullptr;
    if (mca_base_var_get(index, &other) == OPAL_SUCCESS)
      add_given(*other, in_environment, in_files);
  }
  const bool overridden = own->mbv_source == MCA_BASE_VAR_SOURCE_OVERRIDE;
  return overridden || in_environment.empty() ? in_files : in_environment;
}

/// @returns  empty: its value may be used
std::string fault_of(const mca_base_component_t& component, const TunableRow& row) {
  if (const Refused* was = find_refused(row)) {
    if (was->given.empty()) return {};
    const std::string fault = check_text(was->prefix, row, was->given);
    return fault.empty() ? choice_fault(was->prefix, row, was->given) : fault;
  }
  for (const Given& each : all_given(component, row)) {
    const std::string_view prefix = each.name.substr(0, each.name.size() - std::strlen(row.name));
    std::string fault = check_text(prefix, row, each.text);
    if (!fault.empty()) return fault;
  }
  return check_value(prefix_of(&component), row);
}

std::string all_faults(const mca_base_component_t* component, std::span<const TunableRow> rows) {
  std::string faults;
  for (const TunableRow& row : rows) {
    const std::string fault = fault_of(*component, row);
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

int register_synonyms(const mca_base_component_2_1_0_t& component, std::span<const TunableRow> rows,
                      const mca_base_component_2_1_0_t& user) noexcept try {
  for (const TunableRow& row : rows) {
    const int registered = register_name(row, prefix_of(&user), [&] {
      return mca_base_var_register_synonym(index_of(component, row), user.mca_project_name,
                                           user.mca_type_name, user.mca_component_name, row.name,
                                           static_cast<mca_base_var_syn_flag_t>(0));
    });
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
