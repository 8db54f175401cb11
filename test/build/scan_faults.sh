# Can the scans fail? Plant one fault at a time in a small tree and look. Needs what the scans need.
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$SOURCE/test/build
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
wrong=0

# expect passes|fails SCAN WHAT: run it over the small tree.
expect() {
    SOURCE=$work BUILD=$work sh "$here/$2" >"$work/output" 2>&1
    case $? in
        0) outcome=passes ;;
        1) outcome=fails ;;
        *) outcome="ends neither way" ;;
    esac
    if [ "$outcome" != "$1" ]; then
        echo "$2 $outcome with $3:"
        sed 's/^/    /' "$work/output"
        wrong=$((wrong + 1))
    fi
}

glue=ompi/mca/pml/example
mkdir -p "$work/$glue/protocol" "$work/opal/mca/common/overlap" "$work/$glue/.libs"
mkdir -p "$work/ompi/mca/common/overlap"
echo '#include "ompi_config.h"' >"$work/ompi/mca/common/overlap/openmpi.hpp"
tree() {
    echo '#include "opal_config.h"' >"$work/opal/mca/common/overlap/openmpi.hpp"
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
for fault in '#include "ompi_config.h"' '#include "mpi.h"' '#include "ompi/mca/pml/pml.h"' '#include "ompi/mca/common/overlap/openmpi.hpp"'; do
    tree
    echo "$fault" >>"$work/opal/mca/common/overlap/openmpi.hpp"
    expect fails include_scan.sh "'$fault' below MPI"
done

tree
echo 'void say(const Btl& btl) { print(btl.btl_version.mca_component_name); }' >>"$work/$glue/glue.cpp"
expect passes call_scan.sh "a clean tree"
for fault in '  pml->completions.drain();' '  if (std::strcmp(btl.btl_version.mca_component_name, "tcp") == 0) return;' \
    '  return std::string_view(btl.btl_version.mca_component_name) == "vader";'; do
    tree
    echo "$fault" >>"$work/$glue/glue.cpp"
    expect fails call_scan.sh "'$fault' in glue"
done

btl=opal/mca/btl/example
mkdir -p "$work/$btl"
procs() { printf 'int add_procs(int count) noexcept {\n  %s\n  return 0;\n}\n\nint del_procs() {\n  const Guard guard;\n}\n' "$1" >"$work/$btl/procs.cpp"; }
tree
procs '// No Guard here.'
expect passes call_scan.sh "a BTL that adds processes"
procs 'const Guard guard;'
expect fails call_scan.sh "a BTL that adds processes under the progress lock"
rm -r "${work:?}/$btl"

tree
expect passes header_scan.sh "a clean tree"
sed -i '/cstdint/d' "$work/$glue/protocol/queue.hpp"
expect fails header_scan.sh "a header without its own include"
tree
for fault in 'uint32_t n;' 'namespace { }' 'struct s { int class; };'; do
    echo "$fault" >"$work/$glue/table.h"
    expect fails header_scan.sh "a C header that holds '$fault'"
done
echo '#include <stdint.h>' >"$work/$glue/table.h"
expect passes header_scan.sh "a C header"
rm "$work/$glue/table.h"

# The layout: a file that clang-format would change. Skipped where format_scan.sh is.
printf 'int  a ;\n' >"$work/$glue/protocol/layout.hpp"
mkdir -p "$work/test" "$work/examples"
cp "$SOURCE/.clang-format" "$work/"
if SOURCE=$SOURCE sh "$here/format_scan.sh" >/dev/null 2>&1; then
    expect fails format_scan.sh "a file that is not laid out"
    rm "$work/$glue/protocol/layout.hpp" "$work/$glue/protocol/queue.hpp" "$work/$glue/protocol/queue.cpp" "$work/$glue/glue.cpp"
    printf 'int a;\n' >"$work/$glue/protocol/layout.hpp"
    expect passes format_scan.sh "a clean file"
    printf '// %0100d\n' 0 >>"$work/$glue/protocol/layout.hpp"
    expect fails format_scan.sh "a comment of more than 100 columns"
    tree
fi
rm -f "$work/$glue/protocol/layout.hpp"

# What is cited must exist: requirements, files, links.
mkdir -p "$work/docs"
cited() {
    tree
    printf '# Requirements\n\n| number | requirement |\n|---|---|\n| P1.6 | acknowledgements |\n' >"$work/docs/requirements.md"
    printf 'See [the list](requirements.md) and `queue.hpp`.\n' >"$work/docs/notes.md"
    printf '/// Source: P1.6, docs/notes.md, queue.hpp.\n' >>"$work/$glue/protocol/queue.cpp"
}
cited
expect passes reference_scan.sh "a clean tree"
for fault in '// (P1.60)' '// see docs/absent.md' '// as in absent.hpp' '// as in protocol/absent.cpp'; do
    cited
    echo "$fault" >>"$work/$glue/glue.cpp"
    expect fails reference_scan.sh "'$fault' in a source"
done
for fault in '[gone](absent.txt)' 'It is P2.1 that asks for it.'; do
    cited
    echo "$fault" >>"$work/docs/notes.md"
    expect fails reference_scan.sh "'$fault' in a document"
done
cited
rm "$work/docs/requirements.md"
expect fails reference_scan.sh "no list of requirements"
rm -rf "$work/docs"
tree

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
library 'namespace overlap { int shown; }' libmca_common_overlap.so
mkdir -p "$work/ompi/mpix"
echo 'int MPIX_Win_example(void);' >"$work/ompi/mpix/mpix_overlap.h"
library 'extern "C" { int MPIX_Win_example; }' libmpix_overlap.so
expect passes export_scan.sh "a library of calls"
library 'extern "C" { int MPIX_Win_example, MPIX_Win_other; }' libmpix_overlap.so
expect fails export_scan.sh "a library with a call that its header does not declare"
library 'extern "C" { int stranger; }' libmpix_overlap.so
expect fails export_scan.sh "a library without a call that its header declares"
rm -r "$work/ompi/mpix" "$work/$glue/.libs/libmpix_overlap.so"

# Skipped where string_scan.sh is.
case $CXXFLAGS-$($OBJDUMP --version 2>/dev/null) in
    *-mstringop-strategy=libcall*-?*)
        expect passes string_scan.sh "clean libraries"
        for instruction in stosq movsb; do
            library "void f() { asm volatile(\"rep $instruction\" ::: \"memory\"); }" mca_pml_example.so
            expect fails string_scan.sh "rep $instruction in a library"
        done ;;
esac

echo "$wrong of the scans' answers were wrong"
[ $wrong -eq 0 ]
