/* Built twice: with FAKE_IS_NEWRMA it is osc/newrma for those who ask the loader.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "ompi/mpix/sim/fake_newrma.h"

#ifdef FAKE_IS_NEWRMA
int mca_osc_newrma_component = 1;
#endif

static int runs;

static void code(void) { ++runs; }

fake_code_t fake_code(void) { return code; }

int fake_runs(void) { return runs; }
