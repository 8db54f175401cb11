# Does every header that needs no Open MPI compile on its own? C headers (.h): as C11 and as C++; the public one as C99, pedantically. Needs
# SOURCE, BUILD, CC, CXX, CXXFLAGS, MPI_CPPFLAGS (empty without Open MPI).
# SPDX-License-Identifier: BSD-3-Clause
set -u
cd "$SOURCE" || exit 99
faults=0
scanned=0
for header in $(find ompi opal -path '*/protocol/*.hpp' -o -path '*/common/overlap/*.hpp' | sort); do
    case $header in
        */openmpi.hpp) continue ;;
    esac
    # What uses Catch2 belongs to tests; what is expanded with a macro set beforehand says so.
    grep -qE 'openmpi\.hpp|test/support/catch\.hpp|#error' "$header" && continue
    scanned=$((scanned + 1))
    if ! echo "#include \"$header\"" | $CXX $CXXFLAGS -fsyntax-only -I"$SOURCE" -I"$BUILD" -x c++ -; then
        echo "$header does not compile on its own"
        faults=$((faults + 1))
    fi
done
for header in $(find ompi opal -name '*.h' -not -path 'opal/mca/common/overlap/openmpi/*' | sort); do
    grep -q '<mpi\.h>' "$header" && [ -z "$MPI_CPPFLAGS" ] && continue
    case $header in ompi/mpix/mpix_overlap.h) standard=c99 ;; *) standard=c11 ;; esac
    scanned=$((scanned + 1))
    if ! echo "#include \"$header\"" | $CC -std=$standard -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -I"$SOURCE" $MPI_CPPFLAGS -x c - ||
        ! echo "#include \"$header\"" | $CXX $CXXFLAGS -Wall -Wextra -Werror -fsyntax-only -I"$SOURCE" $MPI_CPPFLAGS -x c++ -; then
        echo "$header does not compile on its own"
        faults=$((faults + 1))
    fi
done
[ $scanned -gt 0 ] || { echo "nothing to scan in $SOURCE"; exit 99; }
echo "$scanned headers compiled, $faults faults"
[ $faults -eq 0 ]
