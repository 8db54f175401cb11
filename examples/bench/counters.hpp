// Read the performance variables of pml/speculative through MPI_T.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>

#include "bench.hpp"

namespace bench {

/// All performance variables whose name starts with a prefix, as seen by this process.
class Counters {
 public:
  explicit Counters(const char* prefix = "pml_speculative_") {
    int provided = 0, count = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return;
    MPI_T_pvar_session_create(&session_);
    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count; ++i) add(i, prefix);
  }
  ~Counters() { end(); }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  /// Give all handles back; call before MPI_Finalize (Open MPI 4.1 does not survive MPI_T_finalize
  /// after it).
  void end() {
    if (session_ == MPI_T_PVAR_SESSION_NULL) return;
    for (auto& v : variables_) MPI_T_pvar_handle_free(session_, &v.handle);
    variables_.clear();
    MPI_T_pvar_session_free(&session_);
    session_ = MPI_T_PVAR_SESSION_NULL;
    MPI_T_finalize();
  }

  bool empty() const { return variables_.empty(); }

  /// Read all; the name without the prefix -> the value now.
  std::map<std::string, double> read() {
    std::map<std::string, double> out;
    for (auto& v : variables_) {
      union {
        int i;
        unsigned u;
        unsigned long ul;
        unsigned long long ull;
        double d;
        unsigned char room[64];
      } value = {};
      if (MPI_T_pvar_read(session_, v.handle, value.room) != MPI_SUCCESS) continue;
      if (v.type == MPI_INT) out[v.name] = value.i;
      if (v.type == MPI_UNSIGNED) out[v.name] = value.u;
      if (v.type == MPI_UNSIGNED_LONG) out[v.name] = static_cast<double>(value.ul);
      if (v.type == MPI_UNSIGNED_LONG_LONG) out[v.name] = static_cast<double>(value.ull);
      if (v.type == MPI_DOUBLE) out[v.name] = value.d;
    }
    return out;
  }

  /// Sum over all ranks; every rank must have the same variables (call on all ranks).
  std::map<std::string, double> sum() {
    std::map<std::string, double> out = read();
    for (auto& entry : out) {
      double total = 0;
      MPI_Allreduce(&entry.second, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      entry.second = total;
    }
    return out;
  }

 private:
  struct Variable {
    std::string name;
    MPI_Datatype type;
    MPI_T_pvar_handle handle;
  };

  void add(int index, const char* prefix) {
    char name[256], text[2048];
    int name_size = sizeof name, text_size = sizeof text;
    int verbosity, kind, bind, readonly, continuous, atomic, values = 0;
    MPI_Datatype type;
    MPI_T_enum names;
    if (MPI_T_pvar_get_info(index, name, &name_size, &verbosity, &kind, &type, &names, text,
                            &text_size, &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS)
      return;
    if (std::strncmp(name, prefix, std::strlen(prefix)) != 0) return;
    MPI_Comm world = MPI_COMM_WORLD;
    void* object = bind == MPI_T_BIND_MPI_COMM ? static_cast<void*>(&world) : nullptr;
    MPI_T_pvar_handle handle;
    if (MPI_T_pvar_handle_alloc(session_, index, object, &handle, &values) != MPI_SUCCESS) return;
    if (values != 1) {
      MPI_T_pvar_handle_free(session_, &handle);
      return;
    }
    if (!continuous) MPI_T_pvar_start(session_, handle);
    variables_.push_back({name + std::strlen(prefix), type, handle});
  }

  MPI_T_pvar_session session_ = MPI_T_PVAR_SESSION_NULL;
  std::vector<Variable> variables_;
};

}  // namespace bench
