/* LD_PRELOAD this to be an Open MPI whose users' buffers may lie in the memory of an accelerator,
 * while it selects its PML. Any longer would need the accelerator.
 */
/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>

extern bool opal_cuda_support __attribute__((weak));

int mca_pml_base_select(bool progress_threads, bool mpi_threads) {
  int (*next)(bool, bool) = (int (*)(bool, bool))dlsym(RTLD_NEXT, "mca_pml_base_select");
  opal_cuda_support = true;
  const int rc = next(progress_threads, mpi_threads);
  opal_cuda_support = false;
  return rc;
}
