# Sourced: build the programs of test/mpi into $build; sets programs. Needs here (test/mpi), build, prefix, fail() and failed; sets nonblocking, too.
# SPDX-License-Identifier: BSD-3-Clause
programs=
# These call libmpix_overlap: nobody builds them where the prefix has none.
nonblocking="rma_nonblocking rma_nonblocking_errors rma_nonblocking_order rma_nonblocking_threads rma_deferred rma_patterns"
for source in "$here"/*.cpp; do
    program=$(basename "$source" .cpp)
    [ "$program" != mpi_test ] || continue
    case " $nonblocking " in *" $program "*) [ -f "$prefix/include/mpix_overlap.h" ] || continue ;; esac
    programs="$programs $program"
done

# Up to date objects are kept; two at a time.
compile() { # PROGRAM
    if [ "$build/$1" -nt "$here/$1.cpp" ] && [ "$build/$1" -nt "$here/scene.hpp" ] && [ "$build/$1" -nt "$here/rma.hpp" ] &&
        [ "$build/$1" -nt "$here/coll.hpp" ] &&
        [ "$build/$1" -nt "$here/nonblocking.hpp" ] && [ "$build/$1" -nt "$build/mpi_test.o" ]; then return 0; fi
    main=$build/mpi_test.o first="-include $shared"
    case $1 in abort | early_sends | end_comms | end_requests | exits | forever | idle_calls | new_connections | ring_goodbye | ring_connect) main= first= ;; esac  # they have their own
    mpix=
    case " $nonblocking " in *" $1 "*) mpix=$(pkg-config --cflags --libs mpix_overlap) || return 1 ;; esac
    # shellcheck disable=SC2086
    mpicxx $options $first "$here/$1.cpp" $main -o "$build/$1" $mpix $catch >"$build/$1.compile" 2>&1
}
# Levels that run side by side build the same programs.
exec 9>"$build/lock" && flock 9
if ! [ "$build/mpi_test.o" -nt "$here/mpi_test.cpp" ] || ! [ "$build/mpi_test.o" -nt "$here/mpi_test.hpp" ]; then
    mpicxx -std=c++20 -O1 -Wall -Wextra -c "$here/mpi_test.cpp" -o "$build/mpi_test.o" || { fail "compile mpi_test"; exit 1; }
fi
# Compiled once, where the compiler can: reading it is half of what a program takes.
options="-std=c++20 -O0 -Wall -Wextra -pthread"
shared=$build/shared.hpp
if ! [ "$shared.gch" -nt "$here/mpi_test.hpp" ] || ! [ "$shared.gch" -nt "$here/../support/catch.hpp" ]; then
    printf '#include "%s/mpi_test.hpp"\n' "$here" >"$shared"
    # shellcheck disable=SC2086
    mpicxx $options -c -x c++-header "$shared" -o "$shared.gch" 2>/dev/null || rm -f "$shared.gch"
fi
catch=$(pkg-config --libs catch2 2>/dev/null)  # a library from version 3 on
waiting=
for program in $programs; do
    compile "$program" &
    waiting="$waiting $program:$!"
    if [ "$(echo "$waiting" | wc -w)" -ge 2 ]; then
        for each in $waiting; do wait "${each#*:}" || fail "compile ${each%:*}"; done
        waiting=
    fi
done
for each in $waiting; do wait "${each#*:}" || fail "compile ${each%:*}"; done
exec 9>&-
if [ $failed -ne 0 ]; then
    cat "$build"/*.compile >&2
    exit 1
fi
