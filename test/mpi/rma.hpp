// Windows of every kind for the programs that test one-sided communication, and access to one's own
// window memory by MPI's rules.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi_test.hpp"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>

namespace overlap::test {

/// How the memory of a window comes about.
enum class Kind { create, allocate, shared, dynamic };

/// Do all processes of a communicator share memory? Collective.
inline bool on_one_node(MPI_Comm comm) {
  MPI_Comm node = MPI_COMM_NULL;
  int here = 0, all = 0;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &here);
  MPI_Comm_size(comm, &all);
  MPI_Comm_free(&node);
  return here == all;
}

inline const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::create: return "create";
    case Kind::allocate: return "allocate";
    case Kind::shared: return "allocate_shared";
    case Kind::dynamic: return "dynamic";
  }
  return "";
}

/// A window and its memory at this rank, every byte 0xEE. Collective over `comm`.
class Window {
 public:
  explicit Window(std::size_t bytes, Kind kind = Kind::create, int unit = 1,
                  MPI_Comm comm = MPI_COMM_WORLD)
      : kind_(kind), unit_(kind == Kind::dynamic ? 1 : unit), bytes_(bytes), comm_(comm) {
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    make();
    if (kind == Kind::dynamic) share_addresses();
    locally([&] {
      if (bytes_ > 0) std::memset(memory, 0xEE, bytes_);
    });
    MPI_Barrier(comm);
  }
  ~Window() {
    if (std::uncaught_exceptions() > 0) return;  // the job ends; the others may not come here
    if (kind_ == Kind::dynamic) {
      MPI_Barrier(comm_);
      if (bytes_ > 0) MPI_Win_detach(win, memory);
    }
    MPI_Win_free(&win);
    if (kind_ == Kind::create || kind_ == Kind::dynamic) std::free(memory);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// Displacement of byte `offset` of the memory of `target`.
  [[nodiscard]] MPI_Aint at(int target, std::size_t offset) const {
    const auto units = static_cast<MPI_Aint>(offset) / unit_;
    return kind_ == Kind::dynamic ? MPI_Aint_add(address_[static_cast<std::size_t>(target)], units)
                                  : units;
  }

  /// Read or write the own memory; no epoch of this process, and no lock_all of another one that
  /// waits for this process, may be open.
  template <class Action>
  void locally(Action&& action) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, win);
    action();
    MPI_Win_unlock(me, win);
  }

  [[nodiscard]] int right() const { return (me + 1) % ranks; }
  [[nodiscard]] int left() const { return (me + ranks - 1) % ranks; }

  int me = 0;
  int ranks = 1;
  MPI_Win win = MPI_WIN_NULL;
  unsigned char* memory = nullptr;

 private:
  void make() {
    const auto length = static_cast<MPI_Aint>(bytes_);
    switch (kind_) {
      case Kind::create:
        memory = static_cast<unsigned char*>(std::malloc(bytes_ + 1));
        MPI_Win_create(memory, length, unit_, MPI_INFO_NULL, comm_, &win);
        return;
      case Kind::allocate:
        MPI_Win_allocate(length, unit_, MPI_INFO_NULL, comm_, &memory, &win);
        return;
      case Kind::shared:
        if (!on_one_node(comm_)) {  // MPI has no such windows: another allocated one
          MPI_Win_allocate(length, unit_, MPI_INFO_NULL, comm_, &memory, &win);
          return;
        }
        MPI_Win_allocate_shared(length, unit_, MPI_INFO_NULL, comm_, &memory, &win);
        return;
      case Kind::dynamic:
        memory = static_cast<unsigned char*>(std::malloc(bytes_ + 1));
        MPI_Win_create_dynamic(MPI_INFO_NULL, comm_, &win);
        if (bytes_ > 0) MPI_Win_attach(win, memory, length);
        return;
    }
  }
  void share_addresses() {
    MPI_Aint mine = 0;
    MPI_Get_address(memory, &mine);
    address_.resize(static_cast<std::size_t>(ranks));
    MPI_Allgather(&mine, 1, MPI_AINT, address_.data(), 1, MPI_AINT, comm_);
  }

  Kind kind_;
  int unit_;
  std::size_t bytes_;
  MPI_Comm comm_;
  std::vector<MPI_Aint> address_;
};

/// A window of elements of one type.
template <class Type>
class Array : public Window {
 public:
  explicit Array(std::size_t count, Type value = Type{}, Kind kind = Kind::create,
                 MPI_Comm comm = MPI_COMM_WORLD)
      : Window(count * sizeof(Type), kind, sizeof(Type), comm) {
    locally([&] { std::fill_n(data(), count, value); });
    MPI_Barrier(comm);
  }
  [[nodiscard]] Type* data() { return reinterpret_cast<Type*>(memory); }
  Type& operator[](std::size_t index) { return data()[index]; }
  [[nodiscard]] MPI_Aint index(int target, std::size_t i) const {
    return at(target, i * sizeof(Type));
  }
};

/// Element `index` of the own memory, read under a lock.
template <class Type>
Type own(Array<Type>& array, std::size_t index = 0) {
  Type value{};
  array.locally([&] { value = array[index]; });
  return value;
}

using Word = std::int64_t;

/// One word to, from and onto word `at` of another process.
inline void put(const Array<Word>& window, const Word& value, int to, std::size_t at) {
  MPI_Put(&value, 1, MPI_INT64_T, to, window.index(to, at), 1, MPI_INT64_T, window.win);
}
inline void get(const Array<Word>& window, Word& value, int from, std::size_t at) {
  MPI_Get(&value, 1, MPI_INT64_T, from, window.index(from, at), 1, MPI_INT64_T, window.win);
}
inline void add(const Array<Word>& window, const Word& value, int to, std::size_t at) {
  MPI_Accumulate(&value, 1, MPI_INT64_T, to, window.index(to, at), 1, MPI_INT64_T, MPI_SUM,
                 window.win);
}

/// The job's size and the own rank as indices.
inline std::size_t ranks() { return static_cast<std::size_t>(size()); }
inline std::size_t self() { return static_cast<std::size_t>(rank()); }

/// A group of some ranks of a window.
class Group {
 public:
  Group(MPI_Win win, const std::vector<int>& ranks) {
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &group_);
    MPI_Group_free(&all);
  }
  ~Group() {
    if (group_ != MPI_GROUP_EMPTY) MPI_Group_free(&group_);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  operator MPI_Group() const { return group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

/// Sizes in bytes below and above what is sent at once, copied, striped.
inline std::vector<std::size_t> window_sizes() {
  return {0, 1, 8, 4096, 65535, (std::size_t{1} << 20) + 3};
}
constexpr std::size_t largest_transfer = (std::size_t{1} << 20) + 3;

/// What a call has returned is of one of these classes.
inline void expect(int code, std::initializer_list<int> classes) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  const int found = error_class(code);
  MPI_Error_string(code, text, &length);
  INFO("returned: " << text);
  const bool named = std::find(classes.begin(), classes.end(), found) != classes.end();
  CHECK(named);
}
inline void expect(const std::vector<int>& codes, std::initializer_list<int> classes) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    INFO("call " << i);
    expect(codes[i], classes);
  }
}

}  // namespace overlap::test
