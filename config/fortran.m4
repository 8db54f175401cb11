# Open MPI's Fortran compiler, and whether it knows the module mpi_f08.
# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([OVERLAP_FORTRAN], [
    AC_ARG_ENABLE([fortran], [AS_HELP_STRING([--disable-fortran], [leave out the Fortran module mpix_overlap])])
    overlap_have_fortran=no
    AS_IF([test "x$with_openmpi" = xno], [overlap_no_fortran="--without-openmpi"], [overlap_no_fortran="--disable-fortran"])
    AS_IF([test "x$with_openmpi" != xno && test "x$enable_fortran" != xno], [
        AC_PATH_PROGS([MPIFORT], [mpifort.openmpi mpifort], [], [$overlap_path])
        overlap_no_fortran="mpifort does not compile \"use mpi_f08\" (Debian: gfortran libopenmpi-dev)"
        AS_IF([test -n "$MPIFORT"], [
            AC_MSG_CHECKING([whether $MPIFORT knows mpi_f08])
            rm -rf conftest.fortran && mkdir conftest.fortran
            cat >conftest.fortran/conftest.f90 <<'END'
program conftest
  use mpi_f08
  type(MPI_Win) :: win
  win = MPI_WIN_NULL
end program
END
            AS_IF([(cd conftest.fortran && $MPIFORT $FCFLAGS -c conftest.f90) >&AS_MESSAGE_LOG_FD 2>&1], [overlap_have_fortran=yes])
            rm -rf conftest.fortran
            AC_MSG_RESULT([$overlap_have_fortran])
        ])
    ])
    AS_IF([test "x$enable_fortran" = xyes && test $overlap_have_fortran = no], [AC_MSG_ERROR([--enable-fortran: $overlap_no_fortran])])
    AC_ARG_VAR([FCFLAGS], [flags of the Fortran compiler])
    AM_CONDITIONAL([HAVE_FORTRAN], [test $overlap_have_fortran = yes])
])
