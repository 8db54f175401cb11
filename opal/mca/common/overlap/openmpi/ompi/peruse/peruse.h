/* Stand-in for a header that packages of Open MPI leave out; only what other installed headers need
 * of it. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OVERLAP_SUPPLIED_OMPI_PERUSE_H
#define OVERLAP_SUPPLIED_OMPI_PERUSE_H

typedef void* peruse_event_h;

#endif
