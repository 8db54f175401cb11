# Can the scans fail? Plant one fault at a time in a small tree and look. Needs what the scans need.
set -u
here=$SOURCE/test/build
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
wrong=0

# expect passes|fails SCAN WHAT: run it over the small tree.
expect() {
    if SOURCE=$work BUILD=$work sh "$here/$2" >"$work/output" 2>&1; then outcome=passes; else outcome=fails; fi
    if [ $outcome != "$1" ]; then
        echo "$2 $outcome with $3:"
        sed 's/^/    /' "$work/output"
        wrong=$((wrong + 1))
    fi
}

glue=ompi/mca/pml/example
mkdir -p "$work/$glue/protocol" "$work/opal/mca/common/overlap" "$work/$glue/.libs"
echo '#include "ompi_config.h"' >"$work/opal/mca/common/overlap/openmpi.hpp"
tree() {
    printf '#include <vector>\n#include "ompi/mca/pml/example/protocol/queue.hpp"\n' >"$work/$glue/protocol/queue.cpp"
    printf '#pragma once\n#include <cstdint>\nstruct Queue { std::uint32_t head; };\n' >"$work/$glue/protocol/queue.hpp"
    printf '#include "opal/mca/common/overlap/openmpi.hpp"\n#include <unistd.h>\n' >"$work/$glue/glue.cpp"
}

tree
expect passes include_scan.sh "a clean tree"
for fault in '#include <chrono>' '#include <sys/uio.h>' '#include "opal/mca/common/overlap/openmpi.hpp"' '# include "ompi/mca/pml/example/glue.cpp"'; do
    tree
    echo "$fault" >>"$work/$glue/protocol/queue.cpp"
    expect fails include_scan.sh "'$fault' in protocol code"
done
for fault in '#include "ompi/mca/pml/pml.h"' '#include <mpi.h>' '#if OMPI_MAJOR_VERSION == 4'; do
    tree
    echo "$fault" >>"$work/$glue/glue.cpp"
    expect fails include_scan.sh "'$fault' in glue"
done

tree
expect passes header_scan.sh "a clean tree"
sed -i '/cstdint/d' "$work/$glue/protocol/queue.hpp"
expect fails header_scan.sh "a header without its own include"

library() {
    echo "$1" | $CXX $CXXFLAGS -fvisibility=default -shared -fPIC -x c++ -o "$work/$glue/.libs/$2" - || exit 99
}
library 'extern "C" { int mca_pml_example_component = 1; }' mca_pml_example.so
library 'namespace overlap { int shown; }' libmca_common_overlap.so
expect passes export_scan.sh "clean libraries"
library 'extern "C" { int mca_pml_example_component = 1; } int stranger;' mca_pml_example.so
expect fails export_scan.sh "a component that shows more"
library 'int other;' mca_pml_example.so
expect fails export_scan.sh "a component that does not show itself"
library 'extern "C" { int mca_pml_example_component = 1; }' mca_pml_example.so
library 'int stranger;' libmca_common_overlap.so
expect fails export_scan.sh "a common library that shows more"

echo "$wrong of the scans' answers were wrong"
[ $wrong -eq 0 ]
