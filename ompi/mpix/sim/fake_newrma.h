/* Two stand-ins for a one-sided component, loaded by the unit test: both hand out the module of a
 * window; one defines mca_osc_newrma_component and the other does not.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef OVERLAP_FAKE_NEWRMA_H
#define OVERLAP_FAKE_NEWRMA_H

#ifdef __cplusplus
extern "C" {
#endif

/* A function of the stand-in, for osc_put; it must never run. */
typedef void (*fake_code_t)(void);
fake_code_t fake_code(void);
/* How often it ran. */
int fake_runs(void);

#ifdef __cplusplus
}
#endif

#endif
