// Print the tables of tunables for the documents: `parameters markdown` is docs/parameters.md
// without
// its counters, `parameters man PREFIX` the TUNABLES
// SPDX-License-Identifier: BSD-3-Clause
// of a man page.
//
// A component whose folder was deleted has no table here either.
#include <cstdio>
#include <cstring>
#include <string>

#include "opal/mca/common/overlap/tunables.hpp"

#if __has_include("ompi/mca/pml/speculative/tunables.def")
#define HAVE_SPECULATIVE 1
namespace speculative {
#define OVERLAP_TUNABLES_FILE "ompi/mca/pml/speculative/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"
}  // namespace speculative
#endif
#if __has_include("ompi/mca/common/overlap/tunables.def")
#define HAVE_COMMON 1
namespace common {
#define OVERLAP_TUNABLES_FILE "ompi/mca/common/overlap/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"
}  // namespace common
#endif
#if __has_include("opal/mca/btl/ring/tunables.def")
#define HAVE_RING 1
namespace ring {
#define OVERLAP_TUNABLES_FILE "opal/mca/btl/ring/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"
}  // namespace ring
#endif
#if __has_include("ompi/mca/osc/newrma/tunables.def")
#define HAVE_NEWRMA 1
namespace newrma {
#define OVERLAP_TUNABLES_FILE "ompi/mca/osc/newrma/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"
}  // namespace newrma
#endif
#if __has_include("ompi/mca/coll/mq/tunables.def")
#define HAVE_COLL_MQ 1
namespace coll_mq {
#define OVERLAP_TUNABLES_FILE "ompi/mca/coll/mq/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"
}  // namespace coll_mq
#endif

namespace {

using namespace overlap;

struct Advice {
  const char* name;
  const char* when;
};
constexpr Advice all_advice[] = {
#define WHEN(name, when) {#name, when},
#include "docs/when.def"
#undef WHEN
};

constexpr int advised_level = 4;  // users and sites change these; the rest is for measurements

const char* advice_for(const std::string& name) {
  for (const Advice& advice : all_advice)
    if (name == advice.name) return advice.when;
  return nullptr;
}

/// The table and the advice of one component.
/// @returns  false when a tunable up to advised_level has no advice, or one above it has
bool print_component(const char* prefix, const char* title, std::span<const TunableRow> rows) {
  std::printf("\n## %s\n\n%s\nWhen to change it:\n\n", title,
              render_markdown(prefix, rows).c_str());
  bool complete = true;
  for (const TunableRow& row : rows) {
    const std::string name = std::string(prefix) + row.name;
    const char* when = advice_for(name);
    if ((when != nullptr) != (row.level <= advised_level)) {
      std::fprintf(stderr, "docs/when.def: %s has level %d and %s advice\n", name.c_str(),
                   row.level, when != nullptr ? "an" : "no");
      complete = false;
    }
    if (when != nullptr) std::printf("- `%s`: %s\n", name.c_str(), when);
  }
  return complete;
}

/// Does every line of advice name a tunable of these components?
bool advice_is_known(std::span<const std::string> names) {
  bool known = true;
  for (const Advice& advice : all_advice) {
    bool found = false;
    for (const std::string& name : names) found = found || name == advice.name;
    if (!found) std::fprintf(stderr, "docs/when.def: there is no tunable %s\n", advice.name);
    known = known && found;
  }
  return known;
}

struct Component {
  const char* prefix;
  const char* title;
  std::span<const TunableRow> rows;
};

std::vector<Component> components() {
  std::vector<Component> all;
#ifdef HAVE_SPECULATIVE
  static speculative::Tunables speculative_values;
  static const auto speculative_rows = speculative::tunable_rows(speculative_values);
  all.push_back({"pml_speculative_", "pml/speculative", speculative_rows});
#endif
#ifdef HAVE_COMMON
  static common::Tunables common_values;
  static const auto common_rows = common::tunable_rows(common_values);
  all.push_back({"common_overlap_", "common/overlap", common_rows});
#endif
#ifdef HAVE_RING
  static ring::Tunables ring_values;
  static const auto ring_rows = ring::tunable_rows(ring_values);
  all.push_back({"btl_ring_", "btl/ring", ring_rows});
#endif
#ifdef HAVE_NEWRMA
  static newrma::Tunables newrma_values;
  static const auto newrma_rows = newrma::tunable_rows(newrma_values);
  all.push_back({"osc_newrma_", "osc/newrma", newrma_rows});
#endif
#ifdef HAVE_COLL_MQ
  static coll_mq::Tunables coll_mq_values;
  static const auto coll_mq_rows = coll_mq::tunable_rows(coll_mq_values);
  all.push_back({"coll_mq_", "coll/mq", coll_mq_rows});
#endif
  return all;
}

int print_markdown() {
  bool good = true;
  std::vector<std::string> names;
  for (const Component& component : components()) {
    good = print_component(component.prefix, component.title, component.rows) && good;
    for (const TunableRow& row : component.rows)
      names.push_back(std::string(component.prefix) + row.name);
  }
  return good && advice_is_known(names) ? 0 : 1;
}

int print_man(const char* prefix) {
  for (const Component& component : components()) {
    if (std::strcmp(component.prefix, prefix) != 0) continue;
    std::printf("%s", render_man(prefix, component.rows).c_str());
    return 0;
  }
  std::fprintf(stderr, "parameters: no component has the prefix %s\n", prefix);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "markdown") == 0) return print_markdown();
  if (argc == 3 && std::strcmp(argv[1], "man") == 0) return print_man(argv[2]);
  std::fprintf(stderr, "usage: parameters markdown | parameters man PREFIX\n");
  return 2;
}
