/* LD_PRELOAD this to be another version of Open MPI than the component was built for. */
/* SPDX-License-Identifier: BSD-3-Clause */
const char opal_version_string[] = "4.1.99";
