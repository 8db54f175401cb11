// Expand a table of tunables into a struct and its rows. No include guard: once per component.
//
//   #define OVERLAP_TUNABLES_FILE "ompi/mca/pml/speculative/tunables.def"
//   #include "opal/mca/common/overlap/tunables_expand.hpp"
//
// declares in the surrounding namespace
//   struct Tunables { std::uint32_t ring_slots = 100; ... };
//   inline auto tunable_rows(Tunables& values);   // std::array<overlap::TunableRow, N>
// A choice x becomes `enum class x_choice : int { first, second }` and the member `x_choice x`.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/tunables.hpp"

#include <array>

#ifndef OVERLAP_TUNABLES_FILE
#error "define OVERLAP_TUNABLES_FILE before this include"
#endif

#define OVERLAP_TUNABLE_CPP_u32 std::uint32_t
#define OVERLAP_TUNABLE_CPP_u64 std::uint64_t
#define OVERLAP_TUNABLE_CPP_i32 std::int32_t
#define OVERLAP_TUNABLE_CPP_flag bool

#define X(name, type, ...)
#define X_TEXT(...)
#define X_CHOICE(name, default_name, level, help, ...) enum class name##_choice : int{__VA_ARGS__};
#include OVERLAP_TUNABLES_FILE
#undef X
#undef X_TEXT
#undef X_CHOICE

struct Tunables {
#define X(name, type, default_value, ...) OVERLAP_TUNABLE_CPP_##type name = default_value;
#define X_CHOICE(name, default_name, ...) name##_choice name = name##_choice::default_name;
#define X_TEXT(name, ...) const char* name = nullptr;
#include OVERLAP_TUNABLES_FILE
#undef X
#undef X_TEXT
#undef X_CHOICE
};

inline auto tunable_rows(Tunables& values) {
  constexpr std::size_t count = 0
#define X(...) +1
#define X_CHOICE(...) +1
#define X_TEXT(...) +1
#include OVERLAP_TUNABLES_FILE
#undef X
#undef X_TEXT
#undef X_CHOICE
      ;
  return std::array<overlap::TunableRow, count>{{
#define X(name, type, default_value, min, max, unit, level, help) \
  {#name, overlap::TunableType::type, default_value, min, max, unit, level, help, "", &values.name},
#define X_CHOICE(name, default_name, level, help, ...) \
  {#name,                                              \
   overlap::TunableType::choice,                       \
   static_cast<int>(name##_choice::default_name),      \
   0,                                                  \
   overlap::count_choices(#__VA_ARGS__) - 1,           \
   "",                                                 \
   level,                                              \
   help,                                               \
   #__VA_ARGS__,                                       \
   &values.name},
#define X_TEXT(name, level, help) \
  {#name, overlap::TunableType::text, 0, 0, 0, "", level, help, "", &values.name},
#include OVERLAP_TUNABLES_FILE
#undef X
#undef X_TEXT
#undef X_CHOICE
  }};
}

#undef OVERLAP_TUNABLE_CPP_u32
#undef OVERLAP_TUNABLE_CPP_u64
#undef OVERLAP_TUNABLE_CPP_i32
#undef OVERLAP_TUNABLE_CPP_flag
#undef OVERLAP_TUNABLES_FILE
