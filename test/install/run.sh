#!/bin/sh
# Is the installation right? Needs OVERLAP_BUILD (a build) and OVERLAP_PREFIX (its private installation).
set -u
source_folder=$(cd "$(dirname "$0")/../.." && pwd)
build=${OVERLAP_BUILD:?a build folder}
prefix=${OVERLAP_PREFIX:?a private installation}
# The tree that was configured; it differs from this one when that is configured in place.
configured_from=$(sed -n 's/^abs_top_srcdir = //p' "$build/Makefile")
ompi_info=$(sed -n 's/^OMPI_INFO = //p' "$build/Makefile")
mpirun=$(sed -n 's/^MPIRUN = //p' "$build/Makefile")
mpicc=$(sed -n 's/^MPICC = //p' "$build/Makefile")
version=$(sed -n 's/^OVERLAP_OPENMPI_VERSION = //p' "$build/Makefile")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
failed=0

# case NAME COMMAND...: one test case; its output is shown when it fails.
try() {
    name=$1
    shift
    if "$@" >"$work/output" 2>&1; then
        echo "PASS install: $name"
    else
        echo "FAIL install: $name"
        tail -n 20 "$work/output" >&2
        failed=1
    fi
}

run() { timeout -k 5 60 "$mpirun" --oversubscribe -n 2 "$@"; }

cat >"$work/hello.c" <<'EOF'
#include <mpi.h>
int main(int argc, char **argv)
{
    int rank, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum != 1;
}
EOF
"$mpicc" -o "$work/hello" "$work/hello.c" || exit 1

env_script() {
    # Nothing set, something set, sourced twice.
    (unset OMPI_MCA_mca_base_component_path; . "$prefix/env.sh"; . "$prefix/env.sh"
     [ "$OMPI_MCA_mca_base_component_path" = "$prefix/lib/openmpi:SYSTEM_DEFAULT:USER_DEFAULT" ]) || return 1
    (OMPI_MCA_mca_base_component_path=/some/where; . "$prefix/env.sh"
     [ "$OMPI_MCA_mca_base_component_path" = "$prefix/lib/openmpi:/some/where" ])
}
try "env.sh extends the search path once" env_script

. "$prefix/env.sh"
listed() { "$ompi_info" --param pml speculative --level 9 | tee /dev/stderr | grep -q 'pml_speculative_priority'; }
try "ompi_info lists the component and its tunables" listed
try "a program runs with --mca pml speculative" run --mca pml speculative "$work/hello"

not_asked_for() {
    run --mca pml_base_verbose 10 "$work/hello" >"$work/chosen" 2>&1 || return 1
    grep -i 'selected\|select:' "$work/chosen"
    ! grep -q 'speculative selected' "$work/chosen" && ! grep -q 'selected speculative' "$work/chosen" &&
        grep -qE 'selected (ob1|ucx|cm)|(ob1|ucx|cm) selected' "$work/chosen"
}
try "not asked for, it is not chosen" not_asked_for

help_text() {
    run --mca pml speculative --mca pml_speculative_priority 1000000 "$work/hello" >"$work/said" 2>&1
    cat "$work/said"
    grep -q 'pml_speculative_priority' "$work/said" && ! grep -qiE 'Sorry! You were supposed|unable to open the file|not found in the file' "$work/said"
}
try "help texts are found in the private tree" help_text

wrong_version() {
    cp -r "$prefix/lib/openmpi" "$work/wrong" || return 1
    # The same length: the pinned version becomes one that does not exist.
    wrong=$(echo "$version" | sed 's/.$/Z/')
    LC_ALL=C sed -i "s/$version\\x00/$wrong\\x00/g" "$work/wrong"/*.so
    # The component remembers where its library was installed; this comes before.
    LD_LIBRARY_PATH=$work/wrong OMPI_MCA_mca_base_component_path=$work/wrong:SYSTEM_DEFAULT:USER_DEFAULT run --mca pml speculative "$work/hello" >"$work/said" 2>&1 &&
        { echo "the program ran"; return 1; }
    cat "$work/said"
    grep -q "$wrong" "$work/said" && grep -q "$version" "$work/said"
}
try "another version of Open MPI is refused with both versions named" wrong_version

uninstall() {
    make -C "$build" install DESTDIR="$work/root" || return 1
    [ -f "$work/root$prefix/env.sh" ] && [ -f "$work/root$prefix/share/modulefiles/overlap" ] || return 1
    make -C "$build" uninstall DESTDIR="$work/root" || return 1
    left=$(find "$work/root" ! -type d)
    echo "left: $left"
    [ -z "$left" ]
}
try "make uninstall leaves nothing" uninstall

site_wide() {
    mkdir "$work/site" && cd "$work/site" && "$configured_from/configure" CXXFLAGS=-O0 && make -j2 && make install DESTDIR="$work/site-root" || return 1
    folder=$("$ompi_info" --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')
    find "$work/site-root" ! -type d
    [ -f "$work/site-root$folder/mca_pml_speculative.so" ] && [ ! -e "$work/site-root$(dirname "$folder")/env.sh" ]
}
try "without --prefix it goes into Open MPI's own folders" site_wide

deleted() {
    mkdir "$work/less" && tar -C "$source_folder" -cf - --exclude=./_build --exclude=./_install --exclude=./.git --exclude='*.o' --exclude='*.lo' \
        --exclude='*.la' --exclude=.libs --exclude=.deps --exclude=./config/generated --exclude=./config.status --exclude=Makefile \
        --exclude=./config/autoconf.h --exclude=./config/overlap_config.h . | tar -xf - -C "$work/less" || return 1
    rm -rf "$work/less/ompi/mca/pml/speculative"
    cd "$work/less" && ./autogen.sh && ./configure --prefix="$work/less-prefix" CXXFLAGS=-O0 && make -j2 && make install || return 1
    [ -f "$work/less-prefix/lib/openmpi/libmca_common_overlap.so" ] && [ ! -e "$work/less-prefix/lib/openmpi/mca_pml_speculative.so" ]
}
try "the tree builds without the component's folder" deleted

broken_options() {
    cd "$work" && mkdir -p broken && cd broken || return 1
    "$configured_from/configure" --with-openmpi=/nowhere >out 2>&1 && return 1
    grep -q 'no Open MPI in /nowhere' out || { cat out; return 1; }
    "$configured_from/configure" --enable-sanitizer >out 2>&1 && return 1
    grep -q 'enable-sanitizer needs a value' out || { cat out; return 1; }
}
try "configure explains wrong options" broken_options
exit $failed
