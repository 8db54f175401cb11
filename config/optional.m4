# What later components use: looked for and reported, never needed.
# SPDX-License-Identifier: BSD-3-Clause

# OVERLAP_LOOK_FOR(NAME, HEADER, LIBRARY, FUNCTION): set overlap_have_NAME.
AC_DEFUN([OVERLAP_LOOK_FOR], [
    overlap_saved_libs=$LIBS
    overlap_have_$1=no
    AC_CHECK_HEADER([$2], [AC_CHECK_LIB([$3], [$4], [overlap_have_$1=yes])])
    LIBS=$overlap_saved_libs
])

AC_DEFUN([OVERLAP_OPTIONAL], [
    OVERLAP_LOOK_FOR([hwloc], [hwloc.h], [hwloc], [hwloc_get_api_version])
    OVERLAP_HAVE_HWLOC=0
    HWLOC_LIBS=
    AS_IF([test $overlap_have_hwloc = yes], [OVERLAP_HAVE_HWLOC=1; HWLOC_LIBS=-lhwloc])
    AC_SUBST([OVERLAP_HAVE_HWLOC])
    AC_SUBST([HWLOC_LIBS])
    OVERLAP_LOOK_FOR([libibverbs], [infiniband/verbs.h], [ibverbs], [ibv_get_device_list])
    OVERLAP_LOOK_FOR([librdmacm], [rdma/rdma_cma.h], [rdmacm], [rdma_create_event_channel])
    AS_IF([test $overlap_have_libibverbs = yes && test $overlap_have_librdmacm = yes], [overlap_have_verbs=yes], [overlap_have_verbs=no])
    AM_CONDITIONAL([HAVE_VERBS], [test $overlap_have_verbs = yes])
    VERBS_LIBS=
    AS_IF([test $overlap_have_verbs = yes], [VERBS_LIBS="-lrdmacm -libverbs"])
    AC_SUBST([VERBS_LIBS])
    AC_CHECK_HEADER([CLI/CLI.hpp], [overlap_have_cli11=yes], [overlap_have_cli11=no])
    AC_CHECK_HEADER([nlohmann/json.hpp], [overlap_have_json=yes], [overlap_have_json=no])
    AS_IF([test $overlap_have_hwloc$overlap_have_cli11$overlap_have_json = yesyesyes],
          [overlap_have_progressd=yes], [overlap_have_progressd=no])
    AM_CONDITIONAL([HAVE_PROGRESSD], [test $overlap_have_progressd = yes])
    OVERLAP_LOOK_FOR([ucx], [uct/api/uct.h], [uct], [uct_md_open])
])

AC_DEFUN([OVERLAP_CATCH], [
    AC_MSG_CHECKING([for Catch2])
    overlap_have_catch=no
    CATCH_LIBS=
    overlap_saved=$CXXFLAGS
    overlap_saved_libs=$LIBS
    CXXFLAGS="$CXXFLAGS $OVERLAP_CXXFLAGS"
    LIBS="$LIBS -lCatch2"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
        #include <catch2/catch_session.hpp>
        int main(int argc, char **argv) { return Catch::Session().run(argc, argv); }
    ]])], [overlap_have_catch=3.x; CATCH_LIBS=-lCatch2], [
        AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <catch2/catch.hpp>]])], [overlap_have_catch=2.x])
    ])
    CXXFLAGS=$overlap_saved
    LIBS=$overlap_saved_libs
    AC_MSG_RESULT([$overlap_have_catch])
    AM_CONDITIONAL([HAVE_CATCH], [test $overlap_have_catch != no])
    AC_SUBST([CATCH_LIBS])
])

# OVERLAP_COMPONENT(FRAMEWORK, NAME, PROJECT): conditional HAVE_FRAMEWORK_NAME; is its folder there?
AC_DEFUN([OVERLAP_COMPONENT], [
    AM_CONDITIONAL(m4_toupper([HAVE_$1_$2]), [test -f "$srcdir/$3/mca/$1/$2/Makefile.am"])
    AS_IF([test -f "$srcdir/$3/mca/$1/$2/Makefile.am"], [overlap_components="$overlap_components $1/$2"],
          [overlap_missing="$overlap_missing $1/$2"])
])

AC_DEFUN([OVERLAP_SUMMARY], [
    AS_IF([test "x$with_openmpi" = xno], [
        overlap_line1="none (--without-openmpi): only what needs no Open MPI is built and tested"
        overlap_line2="nothing"
    ], [
        overlap_line1="$OVERLAP_OPENMPI_VERSION  ($OMPI_INFO)"
        AS_IF([test $overlap_site_wide = yes], [overlap_line2="site-wide, $componentdir"],
              [overlap_line2="private tree $overlap_prefix (use: . $overlap_prefix/env.sh)"])
    ])
    AS_IF([test $overlap_have_catch = no], [overlap_catch="no: unit tests are left out (Debian: catch2)"], [overlap_catch=$overlap_have_catch])
    AS_IF([test $overlap_have_verbs = no], [overlap_verbs="no: btl/ring has its software device only (Debian: libibverbs-dev librdmacm-dev)"], [overlap_verbs=yes])
    AS_IF([test $overlap_have_progressd = no],
          [overlap_progressd="no: helpers cannot be started (Debian: libhwloc-dev libcli11-dev nlohmann-json3-dev)"], [overlap_progressd=yes])
    AS_IF([test $overlap_have_fortran = no], [overlap_fortran="no module mpix_overlap: $overlap_no_fortran"], [overlap_fortran="module mpix_overlap ($MPIFORT)"])
    AC_MSG_NOTICE([

  overlap $PACKAGE_VERSION

  Open MPI      $overlap_line1
  Install       $overlap_line2
  Components   $overlap_components
  Left out      ${overlap_missing:-nothing}
  Compiler      $CXX $CXXFLAGS
  Sanitizer     $enable_sanitizer
  Catch2        $overlap_catch
  Verbs         $overlap_verbs
  Helper        $overlap_progressd
  Fortran       $overlap_fortran

  For later components (not needed now):
    ucx $overlap_have_ucx
])
])
