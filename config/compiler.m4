# Flags of every C++ source, and what a sanitizer build adds.
# SPDX-License-Identifier: BSD-3-Clause

# OVERLAP_TRY_FLAG(FLAG, VARIABLE): append FLAG to VARIABLE if the compiler takes it.
AC_DEFUN([OVERLAP_TRY_FLAG], [
    overlap_saved=$CXXFLAGS
    CXXFLAGS="$CXXFLAGS -Werror $1"
    AC_MSG_CHECKING([whether $CXX takes $1])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes]); $2="$$2 $1"], [AC_MSG_RESULT([no])])
    CXXFLAGS=$overlap_saved
])

AC_DEFUN([OVERLAP_COMPILER], [
    AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [warnings are errors (for maintainers)])])
    OVERLAP_CXXFLAGS="-std=c++20 -pthread"
    AC_MSG_CHECKING([whether $CXX compiles C++20])
    overlap_saved=$CXXFLAGS
    CXXFLAGS="$CXXFLAGS $OVERLAP_CXXFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
        #include <bit>
        #include <compare>
        #include <concepts>
        #include <span>
        struct Options { int first = 1; int second = 2; };
        template <std::integral T> constexpr bool single(T t) { return std::has_single_bit(t); }
    ]], [[
        Options options{.second = 3};
        std::span<Options> all{&options, 1};
        return single(8u) && all.size() == 1 ? 0 : 1;
    ]])], [AC_MSG_RESULT([yes])], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([a C++20 compiler is needed (g++ 12 or newer); set CXX])
    ])
    CXXFLAGS=$overlap_saved

    OVERLAP_WARNINGS=
    OVERLAP_TRY_FLAG([-Wall], [OVERLAP_WARNINGS])
    OVERLAP_TRY_FLAG([-Wextra], [OVERLAP_WARNINGS])
    OVERLAP_TRY_FLAG([-Wswitch-enum], [OVERLAP_WARNINGS])
    # g++ 12 sees overlapping copies in std::string where there are none (GCC bug 105651).
    OVERLAP_TRY_FLAG([-Wno-restrict], [OVERLAP_WARNINGS])
    AS_IF([test "x$enable_werror" = xyes], [OVERLAP_WARNINGS="$OVERLAP_WARNINGS -Werror"])
    OVERLAP_TRY_FLAG([-fvisibility=hidden], [OVERLAP_CXXFLAGS])
    # Open MPI's free lists compare and swap 16 bytes. And g++ clears 100 bytes and more with "rep stos", and copies what may be as long
    # with "rep movs", which take 14 ns to begin on AMD's processors; the C library needs 3.
    AS_CASE([$host_cpu], [x86_64|amd64], [
        OVERLAP_TRY_FLAG([-mcx16], [OVERLAP_CXXFLAGS])
        OVERLAP_TRY_FLAG([-mstringop-strategy=libcall], [OVERLAP_CXXFLAGS])
    ])
    AC_SUBST([OVERLAP_CXXFLAGS])
    AC_SUBST([OVERLAP_WARNINGS])
])

AC_DEFUN([OVERLAP_SANITIZER], [
    AC_ARG_ENABLE([sanitizer], [AS_HELP_STRING([--enable-sanitizer=LIST],
        [build everything with -fsanitize=LIST: address, undefined, thread, or address,undefined])],
        [], [enable_sanitizer=no])
    OVERLAP_SANITIZER_FLAGS=
    AS_CASE([$enable_sanitizer],
        [no], [],
        [yes], [AC_MSG_ERROR([--enable-sanitizer needs a value: address, undefined, thread, or address,undefined])],
        [OVERLAP_SANITIZER_FLAGS="-fsanitize=$enable_sanitizer -fno-omit-frame-pointer"
         AS_CASE([$enable_sanitizer], [*undefined*],
             [OVERLAP_SANITIZER_FLAGS="$OVERLAP_SANITIZER_FLAGS -fno-sanitize-recover=undefined"])
         overlap_saved=$CXXFLAGS
         CXXFLAGS="$CXXFLAGS $OVERLAP_SANITIZER_FLAGS"
         AC_MSG_CHECKING([whether $CXX links with -fsanitize=$enable_sanitizer])
         AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])],
             [AC_MSG_RESULT([no]); AC_MSG_ERROR([this compiler has no -fsanitize=$enable_sanitizer])])
         CXXFLAGS=$overlap_saved])
    AM_CONDITIONAL([SANITIZER], [test "x$enable_sanitizer" != xno])
    AM_CONDITIONAL([SANITIZER_THREAD], [test "x$enable_sanitizer" = xthread])
    AC_SUBST([OVERLAP_SANITIZER_FLAGS])
])
