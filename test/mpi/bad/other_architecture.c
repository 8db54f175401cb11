/* LD_PRELOAD this to be on a host of another architecture than all peers: the number of the own one
 * is changed, in this process's own description.
 */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <stdint.h>

extern void* ompi_proc_local_proc __attribute__((weak));
extern uint32_t opal_local_arch __attribute__((weak));
int PMPI_Init(int* argc, char*** argv);

int MPI_Init(int* argc, char*** argv) {
  const size_t words_max = 64; /* the member is among the first of its structure */
  const int rc = PMPI_Init(argc, argv);
  uint32_t* word = ompi_proc_local_proc;
  for (size_t i = 0; i < words_max; ++i) {
    if (word[i] != opal_local_arch) continue;
    word[i] ^= 1;
    break;
  }
  return rc;
}
