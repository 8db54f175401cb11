# What the built libraries show: a component its mca_*_component and nothing else, the common library the namespace overlap, libmpix_overlap
# the calls of its header; and no component has a variable of the common library a second time.
# Components load into the global symbol scope. Needs SOURCE, BUILD, NM, CXXFILT.
# SPDX-License-Identifier: BSD-3-Clause
set -u
cd "$BUILD" || exit 99
faults=0
scanned=0

for library in $(find . -path '*/.libs/*mca_*.so' -o -path '*/.libs/libmpix_overlap.so' | sort); do
    scanned=$((scanned + 1))
    name=$(basename "$library" .so)
    shown=$($NM -D --defined-only "$library" | awk '{ print $NF }') || exit 99
    case $name in
        libmpix_overlap)
            shown=$(echo "$shown" | sed 's/@@.*//' | grep -v '^MPIX_OVERLAP_')
            declared=$(sed -n 's/^int \(MPIX_[A-Za-z_]*\)(.*/\1/p' "$SOURCE/ompi/mpix/mpix_overlap.h")
            # The calls of the Fortran module, where there is one.
            shown=$(echo "$shown" | grep -vE '^mpix_win_[a-z_]+_f08$')
            strangers=$(echo "$shown" | grep -vxF "$declared" | grep .)
            for call in ${declared:-no-call}; do
                echo "$shown" | grep -qx "$call" || { echo "$library does not show $call"; faults=$((faults + 1)); }
            done ;;
        lib*) strangers=$(echo "$shown" | $CXXFILT | grep -vE '^((typeinfo|typeinfo name|vtable) for )?overlap::' | grep .) ;;
        *)
            strangers=$(echo "$shown" | grep -vx "${name}_component" | grep .)
            echo "$shown" | grep -qx "${name}_component" || { echo "$library does not show ${name}_component"; faults=$((faults + 1)); } ;;
    esac
    if [ -n "$strangers" ]; then
        echo "$library shows what it should not:"
        echo "$strangers" | sed 's/^/    /'
        faults=$((faults + 1))
    fi
done

# Variables of the common library that a component has for itself, too: inline ones in a header, which components do not show each other.
variables() { $NM "$1" | awk '$2 ~ /^[BbDdVvu]$/ { print $NF }' | $CXXFILT | grep '^overlap::' | sort -u; }
common=$(find . -path '*/.libs/libmca_common_overlap*.so' | sort)
for library in $(find . -path '*/.libs/mca_*.so' | sort); do
    own=$(variables "$library")
    for each in $common; do
        twice=$(variables "$each" | grep -xF "$own" | grep .) || continue
        echo "$library has its own of what $each has: $twice"
        faults=$((faults + 1))
    done
done

[ $scanned -gt 0 ] || { echo "no component was built"; exit 77; }
echo "$scanned libraries scanned, $faults faults"
[ $faults -eq 0 ]
