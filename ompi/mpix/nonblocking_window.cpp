// Whose module is it? The loader knows which object a function lies in, and what that object
// defines.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mpix/nonblocking_window.hpp"

#include <dlfcn.h>
#include <link.h>

namespace overlap {

namespace {

/// Does the loaded object that holds `function` define mca_osc_newrma_component itself?
///
/// By symbol and not by the name of the file, and asked of that object and not of the process: a
/// program that links Open MPI's library privately (RTLD_LOCAL, as Python does) has its components
/// in no scope that could be searched.
bool is_code_of_newrma(void* function) noexcept {
  Dl_info code{};
  link_map* object = nullptr;
  if (dladdr1(function, &code, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0)
    return false;
  // It is loaded: this runs no constructor.
  void* handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  // dlsym also finds what libraries define that the object depends on.
  const void* component = dlsym(handle, "mca_osc_newrma_component");
  Dl_info definition{};
  const bool own = component != nullptr && dladdr(component, &definition) != 0 &&
                   definition.dli_fbase == code.dli_fbase;
  dlclose(handle);
  return own;
}

/// @returns  how often this process has unloaded an object
unsigned long long count_unloads() noexcept {
  unsigned long long unloads = 0;
  const auto first = [](dl_phdr_info* info, std::size_t, void* result) {
    *static_cast<unsigned long long*>(result) = info->dlpi_subs;
    return 1;  // every entry says the same
  };
  dl_iterate_phdr(first, &unloads);
  return unloads;
}

/// The same, remembered: dlopen searches by name, on every call too much. The address of a function
/// stands for it until something is unloaded; then another component may lie there.
bool is_put_of_newrma(void* function) noexcept {
  struct Known {
    void* function = nullptr;
    unsigned long long unloads = 0;
  };
  thread_local Known known;
  if (function == nullptr) return false;
  const unsigned long long unloads = count_unloads();
  if (function == known.function && unloads == known.unloads) return true;
  if (!is_code_of_newrma(function)) return false;
  known = {function, unloads};
  return true;
}

}  // namespace

const overlap_nonblocking_calls* find_nonblocking_calls(
    const ompi_osc_base_module_t* module) noexcept {
  if (module == nullptr || !is_put_of_newrma(reinterpret_cast<void*>(module->osc_put)))
    return nullptr;
  const auto* calls = reinterpret_cast<const NonblockingModule*>(module)->calls;
  if (calls == nullptr || calls->magic != OVERLAP_NONBLOCKING_MAGIC ||
      calls->version < OVERLAP_NONBLOCKING_VERSION)
    return nullptr;
  return calls;
}

}  // namespace overlap
