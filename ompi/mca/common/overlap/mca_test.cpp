// Tunables, counters and version check against the real MCA: a component that exists only here.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/openmpi.hpp"

#define OVERLAP_TUNABLES_FILE "opal/mca/common/overlap/tunables_example.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/version_check.hpp"
#include "opal/mca/common/overlap/contains.hpp"

namespace {

using overlap::contains;

/// As a site's openmpi-mca-params.conf.
constexpr const char* parameter_file =
    "pml_ovfile1_ring_slots = 12abc\n"
    "pml_ovfile2_limit_bytes = 64kb\n"
    "pml_ovfile3_limit_bytes = 64k\n"
    "pml_ovfile4_hazard_control = eager\n"
    "pml_ovuser3_ring_slots = many\n"
    "pml_ovown5_ring_slots = many\n"
    "pml_ovfile5_limit_bytes =\n"
    "pml_ovfile6_hazard_control =\n"
    "pml_ovfile7_device =\n"
    "pml_ovfile8_ring_slots = 7 # seven\n"
    "pml_ovfile9_limit_bytes = 4k\r\n";

/// MPI_T alone starts the MCA; once per process.
void start_mca() {
  static const bool started = [] {
    char name[] = "/tmp/overlap-mca-test-XXXXXX";
    const int file = mkstemp(name);
    REQUIRE(file >= 0);
    const auto bytes = static_cast<ssize_t>(std::strlen(parameter_file));
    REQUIRE(write(file, parameter_file, std::strlen(parameter_file)) == bytes);
    close(file);
    setenv("OMPI_MCA_mca_base_param_files", name, 1);
    const struct Remove {
      const char* name;
      ~Remove() { unlink(name); }
    } remove_it{name};
    int provided = 0;
    return MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS;
  }();
  REQUIRE(started);
}

mca_base_component_t make_component(const char* name, const char* type = "pml") {
  mca_base_component_t component{};
  std::snprintf(component.mca_project_name, sizeof component.mca_project_name, "ompi");
  std::snprintf(component.mca_type_name, sizeof component.mca_type_name, "%s", type);
  std::snprintf(component.mca_component_name, sizeof component.mca_component_name, "%s", name);
  return component;
}

/// Everything written to stderr while act runs.
template <class Act>
std::string stderr_of(Act&& act) {
  std::fflush(stderr);
  std::FILE* file = std::tmpfile();
  const int saved = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  act();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file))
    text += c == '\n' ? ' ' : static_cast<char>(c);
  std::fclose(file);
  return text;
}

struct Run {
  Tunables values;
  int registered = 0;
  int checked = 0;
  std::string said;
};

/// Register and check the example table under one component name, with one setting in the
/// environment.
/// @param user  set under this component's name; empty: under its own
Run run(const char* component_name, const char* tunable, const char* value,
        const std::string& type = "pml", const std::string& user = {}) {
  start_mca();
  static std::vector<std::unique_ptr<Tunables>> storages;  // the MCA keeps pointers into them
  Tunables& values = *storages.emplace_back(std::make_unique<Tunables>());
  const auto component = make_component(component_name, type.c_str());
  const auto rows = tunable_rows(values);
  const std::string variable =
      "OMPI_MCA_" + type + "_" + (user.empty() ? component_name : user) + "_" + tunable;
  if (value != nullptr) setenv(variable.c_str(), value, 1);
  Run result;
  result.said = stderr_of([&] {
    result.registered = overlap::register_tunables(&component, rows);
    if (!user.empty() && result.registered == OPAL_SUCCESS)
      result.registered =
          overlap::register_synonyms(component, rows, make_component(user.c_str(), type.c_str()));
    result.checked = overlap::check_tunables(&component, rows);
  });
  unsetenv(variable.c_str());
  result.values = values;
  return result;
}

}  // namespace

TEST_CASE("a setting reaches the struct", "[mca]") {
  const Run slots = run("ovok1", "ring_slots", "1k");
  CHECK(slots.registered == OPAL_SUCCESS);
  CHECK(slots.checked == OPAL_SUCCESS);
  CHECK(slots.values.ring_slots == 1024);
  CHECK(slots.values.limit_bytes == 65536);
  CHECK(slots.said.empty());
  CHECK(run("ovok2", "priority", "-7").values.priority == -7);
  CHECK_FALSE(run("ovok3", "speculation", "false").values.speculation);
  CHECK(run("ovok4", "hazard_control", "eager_flag").values.hazard_control ==
        hazard_control_choice::eager_flag);
}

TEST_CASE("a setting out of range is refused with range and unit", "[mca]") {
  const Run large = run("ovbad1", "ring_slots", "5000");
  CHECK(large.registered == OPAL_SUCCESS);  // ompi_info still lists it
  CHECK(large.checked == OPAL_ERR_BAD_PARAM);
  CHECK_THAT(large.said,
             contains("pml_ovbad1_ring_slots is 5000, too large; allowed: 5 .. 4096 slots"));
  CHECK_THAT(run("ovbad2", "ring_slots", "4294967301").said, contains("is 4294967301, too large"));
  const Run text = run("ovbad3", "ring_slots", "12abc");
  CHECK_THAT(text.said, contains("\"12abc\", which is no number"));
  CHECK_THAT(text.said, !contains("is not used"));  // without its PML a job ends
  CHECK_THAT(run("ovbad7", "ring_slots", "12abc", "osc").said,
             contains("osc/ovbad7 is not used; what else --mca osc allows takes its place."));
}

TEST_CASE("a choice or flag that does not exist is refused once", "[mca]") {
  const Run choice = run("ovbad4", "hazard_control", "eager");
  CHECK(choice.checked == OPAL_ERR_BAD_PARAM);
  CHECK_THAT(choice.said, contains("pml_ovbad4_hazard_control is \"eager\", which is no choice"));
  CHECK_THAT(choice.said, !contains("invalid value"));  // Open MPI's message, which gets lost
  const Run flag = run("ovbad5", "speculation", "perhaps");
  CHECK(flag.checked == OPAL_ERR_BAD_PARAM);
  CHECK_THAT(flag.said, contains("pml_ovbad5_speculation"));
}

TEST_CASE("a setting in a parameter file is refused as one on the command line", "[mca]") {
  const Run number = run("ovfile1", "ring_slots", nullptr);
  CHECK(number.checked == OPAL_ERR_BAD_PARAM);
  CHECK_THAT(number.said, contains("pml_ovfile1_ring_slots is \"12abc\", which is no number"));
  const Run unit = run("ovfile2", "limit_bytes", nullptr);
  CHECK_THAT(unit.said, contains("pml_ovfile2_limit_bytes is \"64kb\", which is no number"));
  CHECK(run("ovfile2", "limit_bytes", "100").checked == OPAL_SUCCESS);  // goes before the file's
  const Run good = run("ovfile3", "limit_bytes", nullptr);
  CHECK(good.checked == OPAL_SUCCESS);
  CHECK(good.values.limit_bytes == 65536);
  CHECK_THAT(run("ovfile4", "hazard_control", nullptr).said,
             contains("pml_ovfile4_hazard_control is \"eager\", which is no choice"));
}

TEST_CASE("a parameter file may say what Open MPI reads", "[mca]") {
  for (const auto& [component, tunable] : {std::pair("ovfile5", "limit_bytes"),
                                           {"ovfile6", "hazard_control"},
                                           {"ovfile7", "device"}}) {
    INFO(component);  // nothing stands behind "="
    CHECK(run(component, tunable, nullptr).checked == OPAL_SUCCESS);
  }
  const Run commented = run("ovfile8", "ring_slots", nullptr);
  CHECK(commented.checked == OPAL_SUCCESS);
  CHECK(commented.values.ring_slots == 7);
  const Run returned = run("ovfile9", "limit_bytes", nullptr);
  CHECK(returned.checked == OPAL_SUCCESS);
  CHECK(returned.values.limit_bytes == 4096);
}

TEST_CASE("a file's wrong setting is no matter where another one is in force", "[mca]") {
  const Run over = run("ovown5", "ring_slots", "1k", "pml", "ovuser5");
  CHECK(over.checked == OPAL_SUCCESS);
  CHECK(over.values.ring_slots == 1024);
}

TEST_CASE("a setting under a synonym is refused under that name", "[mca]") {
  const Run good = run("ovown1", "ring_slots", "1k", "pml", "ovuser1");
  CHECK(good.checked == OPAL_SUCCESS);
  CHECK(good.values.ring_slots == 1024);
  CHECK_THAT(run("ovown2", "limit_bytes", "64kb", "pml", "ovuser2").said,
             contains("pml_ovuser2_limit_bytes is \"64kb\", which is no number"));
  CHECK_THAT(run("ovown3", "ring_slots", nullptr, "pml", "ovuser3").said,
             contains("pml_ovuser3_ring_slots is \"many\", which is no number"));
  const Run choice = run("ovown4", "hazard_control", "eager", "pml", "ovuser4");
  CHECK(choice.registered == OPAL_SUCCESS);
  CHECK(choice.checked == OPAL_ERR_BAD_PARAM);
  CHECK_THAT(choice.said, contains("pml_ovuser4_hazard_control is \"eager\", which is no choice"));
  CHECK_THAT(choice.said, !contains("invalid value"));
}

TEST_CASE("an unknown tunable warns and names the nearest", "[mca]") {
  const Run unknown = run("ovbad6", "ring_slot", "7");
  CHECK(unknown.checked == OPAL_SUCCESS);
  CHECK_THAT(unknown.said, contains("There is no tunable pml_ovbad6_ring_slot") &&
                               contains("Did you mean pml_ovbad6_ring_slots?"));
}

TEST_CASE("counters are MPI_T variables", "[mca]") {
  start_mca();
  static std::array<std::uint64_t, 2> values{3, 5};
  const auto component = make_component("ovcount");
  const std::array<overlap::CounterRow, 2> rows{{
      {"rtr_sent", "Offers sent.", overlap::CounterClass::counter, &values[0]},
      {"posted_max", "Longest queue of posted receives.", overlap::CounterClass::high_watermark,
       &values[1]},
  }};
  REQUIRE(overlap::register_counters(&component, rows) == OPAL_SUCCESS);

  MPI_T_pvar_session session;
  REQUIRE(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
  const auto read_after = [&](const char* name, int mpi_class, auto change) {
    int index = -1;
    REQUIRE(MPI_T_pvar_get_index(name, mpi_class, &index) == MPI_SUCCESS);
    MPI_T_pvar_handle handle;
    int count = 0;
    REQUIRE(MPI_T_pvar_handle_alloc(session, index, nullptr, &handle, &count) == MPI_SUCCESS);
    CHECK(count == 1);
    change();
    unsigned long long value = 0;
    CHECK(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS);
    return value;
  };
  CHECK(read_after("pml_ovcount_rtr_sent", MPI_T_PVAR_CLASS_COUNTER, [&] { values[0] += 4; }) == 4);
  CHECK(read_after("pml_ovcount_posted_max", MPI_T_PVAR_CLASS_HIGHWATERMARK,
                   [&] { values[1] = 9; }) == 9);
  MPI_T_pvar_session_free(&session);
}

TEST_CASE("the running Open MPI is the configured one", "[mca]") {
  CHECK(std::string_view(overlap::running_version()) == OVERLAP_OPENMPI_VERSION);
  CHECK(overlap::check_running_openmpi("pml/example", {}));
  const std::array<overlap::SizeRow, 1> other{{{"a_t", 1, 2}}};
  bool fits = true;
  const std::string said =
      stderr_of([&] { fits = overlap::check_running_openmpi("pml/example", other); });
  CHECK_FALSE(fits);
  CHECK_THAT(said, contains("pml/example is not used") && contains("a_t 1 against 2 bytes") &&
                       contains("--with-openmpi"));
}
