// A BTL that connects processes of a node and wants keys, as an adapter does that is used without
// shared memory: no get or put goes out without them. The BTL of shared memory plays it.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <atomic>
#include <utility>

#include <dlfcn.h>

// The interfaces of Open MPI are C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvolatile"
extern "C" {
#include "opal_config.h"

#include "opal/mca/btl/btl.h"

struct mca_btl_base_registration_handle_t {
  std::uint64_t key;
};
}
#pragma GCC diagnostic pop

namespace {

using namespace overlap::test;

using Btl = mca_btl_base_module_t;
using Handle = mca_btl_base_registration_handle_t;

constexpr std::uint64_t own_key = 0x6b6579;
std::atomic<int> without_key{0};
mca_btl_base_module_get_fn_t plain_get = nullptr;
mca_btl_base_module_put_fn_t plain_put = nullptr;

void check(const Handle* local, const Handle* remote) {
  if (local == nullptr || remote == nullptr || local->key != own_key || remote->key != own_key)
    ++without_key;
}

int keyed_get(Btl* btl, mca_btl_base_endpoint_t* endpoint, void* local, std::uint64_t remote,
              Handle* local_key, Handle* remote_key, std::size_t bytes, int flags, int order,
              mca_btl_base_rdma_completion_fn_t end, void* context, void* data) {
  check(local_key, remote_key);
  return plain_get(btl, endpoint, local, remote, local_key, remote_key, bytes, flags, order, end,
                   context, data);
}

int keyed_put(Btl* btl, mca_btl_base_endpoint_t* endpoint, void* local, std::uint64_t remote,
              Handle* local_key, Handle* remote_key, std::size_t bytes, int flags, int order,
              mca_btl_base_rdma_completion_fn_t end, void* context, void* data) {
  check(local_key, remote_key);
  return plain_put(btl, endpoint, local, remote, local_key, remote_key, bytes, flags, order, end,
                   context, data);
}

/// @returns  false: Open MPI's shared memory is not in use
bool want_keys() {
  // The component is loaded; its module is a variable of it.
  void* const all = dlopen(nullptr, RTLD_NOW);
  void* found = dlsym(all, "mca_btl_vader");
  if (found == nullptr) {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&MPI_Init), &info) == 0) return false;
    std::string folder = info.dli_fname;
    folder.resize(folder.rfind('/'));
    for (const char* const below : {"/openmpi/lib/openmpi3", "/openmpi", ""}) {
      const std::string name = folder + below + "/mca_btl_vader.so";
      if (void* const component = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD))
        found = dlsym(component, "mca_btl_vader");
    }
  }
  if (found == nullptr) return false;
  Btl& btl = *static_cast<Btl*>(found);
  if (btl.btl_get == nullptr || btl.btl_put == nullptr) return false;
  plain_get = std::exchange(btl.btl_get, keyed_get);
  plain_put = std::exchange(btl.btl_put, keyed_put);
  btl.btl_register_mem = [](Btl*, mca_btl_base_endpoint_t*, void*, std::size_t, std::uint32_t) {
    return new Handle{own_key};
  };
  btl.btl_deregister_mem = [](Btl*, Handle* handle) {
    delete handle;
    return 0;
  };
  btl.btl_registration_handle_size = sizeof(Handle);
  return true;
}

}  // namespace

TEST_CASE("No get or put without a key, where the BTL of the node wants keys") {
  if (size() < 2) return;
  MPI_Barrier(MPI_COMM_WORLD);
  if (!want_keys()) {
    WARN("no mca_btl_vader here");
    return;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  constexpr int words = 50'000;
  for (const Kind kind : {Kind::create, Kind::dynamic}) {
    INFO(name_of(kind));
    const Window window(words * sizeof(int), kind);
    for (const int count : {1, 1000, words}) {
      std::vector<int> out(static_cast<std::size_t>(count), 5), back(out.size(), 0);
      if (rank() == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window.win);
        MPI_Put(out.data(), count, MPI_INT, 1, window.at(1, 0), count, MPI_INT, window.win);
        MPI_Win_flush(1, window.win);
        MPI_Accumulate(out.data(), count, MPI_INT, 1, window.at(1, 0), count, MPI_INT, MPI_SUM,
                       window.win);
        MPI_Win_flush(1, window.win);
        MPI_Get(back.data(), count, MPI_INT, 1, window.at(1, 0), count, MPI_INT, window.win);
        MPI_Win_unlock(1, window.win);
        CHECK((back.front() == 10 && back.back() == 10));
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  CHECK(without_key == 0);
}
