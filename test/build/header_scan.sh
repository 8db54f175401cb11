# Does every header that needs no Open MPI compile on its own? Needs SOURCE, BUILD, CXX, CXXFLAGS.
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
[ $scanned -gt 0 ] || { echo "nothing to scan in $SOURCE"; exit 99; }
echo "$scanned headers compiled, $faults faults"
[ $faults -eq 0 ]
