/* Stand-in for a header that packages of Open MPI leave out: conversions where a Fortran INTEGER is
 * a C int. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OVERLAP_SUPPLIED_FINT_2_INT_H
#define OVERLAP_SUPPLIED_FINT_2_INT_H

#if OMPI_SIZEOF_FORTRAN_INTEGER != SIZEOF_INT
#error "A Fortran INTEGER of this Open MPI is not a C int: install fint_2_int.h of its source tree."
#endif

#define OMPI_INT_2_FINT(value) value
#define OMPI_FINT_2_INT(value) value
#define OMPI_SINGLE_NAME_DECL(name)
#define OMPI_SINGLE_NAME_CONVERT(name) name
#define OMPI_SINGLE_INT_2_FINT(name)
#define OMPI_SINGLE_FINT_2_INT(name)

#endif
