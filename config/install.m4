# Where things go. Without --prefix: into the Open MPI installation itself; with --prefix=DIR: a private tree with env.sh.
# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([OVERLAP_INSTALL], [
    AS_IF([test "x$with_openmpi" = xno || test "x$prefix" != xNONE], [
        overlap_site_wide=no
        componentdir='${prefix}/lib/openmpi'
        helpdir='${prefix}/share/openmpi'
    ], [
        overlap_site_wide=yes
        prefix=$openmpi_prefix
        componentdir=$openmpi_componentdir
        helpdir=$openmpi_datadir
        mandir=$openmpi_mandir
    ])
    overlap_prefix=$prefix
    AS_IF([test "x$prefix" = xNONE], [overlap_prefix=$ac_default_prefix])
    AS_IF([test $overlap_site_wide = yes], [OVERLAP_HELP_FOLDER=$helpdir], [OVERLAP_HELP_FOLDER=$overlap_prefix/share/openmpi])
    AM_CONDITIONAL([PRIVATE_TREE], [test $overlap_site_wide = no && test "x$with_openmpi" != xno])
    AC_SUBST([componentdir])
    AC_SUBST([helpdir])
    AC_SUBST([OVERLAP_HELP_FOLDER])
    AC_SUBST([OVERLAP_PREFIX], [$overlap_prefix])
])
