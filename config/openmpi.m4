# Find one installed Open MPI: its exact version, flags, and folders.
# SPDX-License-Identifier: BSD-3-Clause

# OVERLAP_OMPI_PATH(VARIABLE, NAME): what ompi_info --path NAME says.
AC_DEFUN([OVERLAP_OMPI_PATH], [
    $1=`$OMPI_INFO --parsable --path $2 2>/dev/null | sed -n 's/^path:$2://p'`
    AS_IF([test -z "$$1"], [AC_MSG_ERROR([$OMPI_INFO does not tell its $2])])
])

# OVERLAP_UNCLOSED(HEADER, VARIABLE): set VARIABLE to 1 if HEADER leaves an extern "C" open.
AC_DEFUN([OVERLAP_UNCLOSED], [
    AC_MSG_CHECKING([whether $1 leaves extern "C" open])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
        #include <cstdlib>
        #include <event2/event.h>
        #include <event2/thread.h>
        extern "C" {
        #include "ompi_config.h"
        #include "opal/class/opal_list.h"
        }
        extern "C" {
        #include "$1"
        }
        template <class T> T outside(T t) { return t; }
    ]])], [AC_MSG_RESULT([no]); $2=0], [
        AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
            #include <cstdlib>
            #include <event2/event.h>
            #include <event2/thread.h>
            extern "C" {
            #include "ompi_config.h"
            #include "opal/class/opal_list.h"
            }
            extern "C" {
            #include "$1"
            }
            }
            template <class T> T outside(T t) { return t; }
        ]])], [AC_MSG_RESULT([yes]); $2=1], [
            AC_MSG_RESULT([it does not compile])
            AC_MSG_FAILURE([$1 does not compile: is this Open MPI complete and supported (4.1.x, 5.0.x)?])
        ])
    ])
])

AC_DEFUN([OVERLAP_OPENMPI], [
    AC_ARG_WITH([openmpi], [AS_HELP_STRING([--with-openmpi=DIR],
        [Open MPI to build for (default: the ompi_info and mpicc on the PATH); --without-openmpi builds and tests only what needs no Open MPI])],
        [], [with_openmpi=yes])
    OVERLAP_OPENMPI_VERSION=none
    OVERLAP_OPENMPI_ALIAS_UNCLOSED=0
    OVERLAP_OPENMPI_EVENT_UNCLOSED=0
    AS_IF([test "x$with_openmpi" != xno], [OVERLAP_FIND_OPENMPI])
    AM_CONDITIONAL([HAVE_OPENMPI], [test "x$with_openmpi" != xno])
    AM_CONDITIONAL([OPENMPI_5], [expr "$OVERLAP_OPENMPI_VERSION" : '5[[.]]' >/dev/null])
    AS_IF([test -n "$OMPI_INFO"], [OVERLAP_LAUNCHERS=`dirname "$OMPI_INFO"`])  # MPIRUN may be ours, after env.sh
    AC_SUBST([OVERLAP_LAUNCHERS])
    AC_SUBST([OVERLAP_OPENMPI_VERSION])
    AC_SUBST([OVERLAP_OPENMPI_ALIAS_UNCLOSED])
    AC_SUBST([OVERLAP_OPENMPI_EVENT_UNCLOSED])
    AC_SUBST([OPENMPI_CPPFLAGS])
    AC_SUBST([OPENMPI_LIBS])
])

AC_DEFUN([OVERLAP_FIND_OPENMPI], [
    AS_IF([test "x$with_openmpi" = xyes], [overlap_path=$PATH], [
        overlap_path=$with_openmpi/bin
        AS_IF([test ! -x "$overlap_path/ompi_info"], [AC_MSG_ERROR([no Open MPI in $with_openmpi: $overlap_path/ompi_info is missing])])
    ])
    AC_PATH_PROG([OMPI_INFO], [ompi_info], [], [$overlap_path])
    AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc], [], [$overlap_path])
    AC_PATH_PROGS([MPICXX], [mpicxx.openmpi mpicxx], [], [$overlap_path])
    AC_PATH_PROGS([MPIRUN], [mpirun.openmpi mpirun], [], [$overlap_path])
    AS_IF([test -z "$OMPI_INFO" || test -z "$MPICC"], [
        AC_MSG_ERROR([no Open MPI on the PATH (ompi_info, mpicc); on Debian: apt-get install openmpi-bin libopenmpi-dev; else --with-openmpi=DIR])
    ])

    AC_MSG_CHECKING([version of Open MPI])
    OVERLAP_OPENMPI_VERSION=`$OMPI_INFO --version 2>/dev/null | sed -n 's/^Open MPI v//p'`
    AC_MSG_RESULT([$OVERLAP_OPENMPI_VERSION])
    AS_CASE([$OVERLAP_OPENMPI_VERSION],
        [4.1.*|5.0.*], [],
        [AC_MSG_ERROR([Open MPI "$OVERLAP_OPENMPI_VERSION" is not supported, 4.1.x and 5.0.x are])])

    OVERLAP_OMPI_PATH([openmpi_prefix], [prefix])
    OVERLAP_OMPI_PATH([openmpi_componentdir], [pkglibdir])
    OVERLAP_OMPI_PATH([openmpi_datadir], [pkgdatadir])
    OVERLAP_OMPI_PATH([openmpi_mandir], [mandir])
    OVERLAP_OMPI_PATH([openmpi_libdir], [libdir])
    OVERLAP_OMPI_PATH([openmpi_incdir], [incdir])
    OVERLAP_OMPI_PATH([openmpi_pkgincdir], [pkgincludedir])

    AC_MSG_CHECKING([for Open MPI's internal headers])
    AS_IF([test -f "$openmpi_pkgincdir/ompi/mca/pml/pml.h"], [AC_MSG_RESULT([$openmpi_pkgincdir])], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([$openmpi_pkgincdir/ompi/mca/pml/pml.h is missing: install Open MPI's development files (Debian: libopenmpi-dev; from source: configure --with-devel-headers)])
    ])
    OPENMPI_CPPFLAGS="-isystem $openmpi_incdir -isystem $openmpi_pkgincdir"
    # 5.0 includes PMIx, libevent and hwloc, which may live elsewhere.
    overlap_extra=
    for overlap_package in pmix libevent hwloc; do
        overlap_flags=`${PKG_CONFIG-pkg-config} --cflags-only-I $overlap_package 2>/dev/null | sed 's/-I/-isystem /g'`
        overlap_extra="$overlap_extra $overlap_flags"
    done
    OPENMPI_CPPFLAGS="$OPENMPI_CPPFLAGS$overlap_extra"
    # Last: a complete installation's own headers win over our stand-ins.
    overlap_standins=`cd "$srcdir" && pwd`/opal/mca/common/overlap/openmpi
    overlap_saved_cpp=$CPPFLAGS
    overlap_saved_cxx=$CXXFLAGS
    CPPFLAGS="$CPPFLAGS $OPENMPI_CPPFLAGS -isystem $overlap_standins"
    CXXFLAGS="$CXXFLAGS $OVERLAP_CXXFLAGS"
    AS_CASE([$OVERLAP_OPENMPI_VERSION], [5.*], [
        OVERLAP_UNCLOSED([opal/mca/base/mca_base_alias.h], [OVERLAP_OPENMPI_ALIAS_UNCLOSED])
        OVERLAP_UNCLOSED([opal/util/event.h], [OVERLAP_OPENMPI_EVENT_UNCLOSED])
    ])
    CPPFLAGS=$overlap_saved_cpp
    OPENMPI_CPPFLAGS="$OPENMPI_CPPFLAGS -isystem \$(top_srcdir)/opal/mca/common/overlap/openmpi"

    overlap_saved_libs=$LIBS
    OPENMPI_LIBS="-L$openmpi_libdir -lmpi -lopen-pal"
    LIBS="$OPENMPI_LIBS $LIBS"
    AC_MSG_CHECKING([whether Open MPI links])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[extern "C" int opal_progress_register(int (*)(void));]], [[return opal_progress_register(nullptr);]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no]); AC_MSG_FAILURE([cannot link with $OPENMPI_LIBS])])
    LIBS="$overlap_saved_libs"
    AC_MSG_CHECKING([for libevent])
    overlap_found=no
    for overlap_try in "" "-levent_core" "-levent"; do
        LIBS="$OPENMPI_LIBS $overlap_try $overlap_saved_libs"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[extern "C" int event_base_loop(void *, int);]], [[return event_base_loop(nullptr, 0);]])],
            [overlap_found=yes; break])
    done
    AS_IF([test $overlap_found = yes], [
        AC_MSG_RESULT([${overlap_try:-inside Open MPI}])
        OPENMPI_LIBS="$OPENMPI_LIBS $overlap_try"
    ], [
        # A bundled libevent has its names prefixed; then Open MPI's own library has what the headers name.
        AC_MSG_RESULT([under Open MPI's own names])
    ])
    # 5.0's modex macros call PMIx by name.
    AS_CASE([$OVERLAP_OPENMPI_VERSION], [5.*], [
        AC_MSG_CHECKING([for PMIx])
        overlap_found=no
        for overlap_try in "" "`${PKG_CONFIG-pkg-config} --libs-only-L pmix 2>/dev/null` -lpmix"; do
            LIBS="$OPENMPI_LIBS $overlap_try $overlap_saved_libs"
            AC_LINK_IFELSE([AC_LANG_PROGRAM([[extern "C" int PMIx_Initialized(void);]], [[return PMIx_Initialized();]])],
                [overlap_found=yes; break])
        done
        AS_IF([test $overlap_found = no], [AC_MSG_RESULT([no]); AC_MSG_FAILURE([cannot link with PMIx, which Open MPI 5.0 needs (Debian: libpmix-dev)])])
        AC_MSG_RESULT([${overlap_try:-inside Open MPI}])
        OPENMPI_LIBS="$OPENMPI_LIBS $overlap_try"
    ])
    LIBS=$overlap_saved_libs
    CXXFLAGS=$overlap_saved_cxx
])
