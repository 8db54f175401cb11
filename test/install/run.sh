#!/bin/sh
# Is the installation right? Needs OVERLAP_BUILD (a build) and OVERLAP_PREFIX (its private installation).
# SPDX-License-Identifier: BSD-3-Clause
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

# What programs link: found after env.sh, one library for each language, a page for each call of the header.
extension() {
    (unset PKG_CONFIG_PATH; . "$prefix/env.sh"; . "$prefix/env.sh"; [ "$PKG_CONFIG_PATH" = "$prefix/lib/pkgconfig" ]) || return 1
    (. "$prefix/env.sh"; pkg-config --exists --print-errors mpix_overlap && pkg-config --libs mpix_overlap | grep -q -- '-lmpix_overlap') || return 1
    calls=$(sed -n 's/^int \(MPIX_[A-Za-z_]*\)(.*/\1/p' "$prefix/include/mpix_overlap.h")
    [ "$(echo "$calls" | wc -l)" -ge 14 ] || return 1
    for call in $calls; do
        page=$prefix/share/man/man3/$call.3
        other=$(sed -n 's/^\.so //p' "$page") || return 1
        grep -q "^int $call(" "${other:+$prefix/share/man/}${other:-$page}" || { echo "no page of $call"; return 1; }
    done
}
[ ! -f "$prefix/include/mpix_overlap.h" ] || try "libmpix_overlap is found by pkg-config and has man pages" extension
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

# The site's file as it is, with what the README tells a site to append. Debian's ends without a newline.
site_file() { # LINE
    conf=$("$ompi_info" --parsable --path sysconfdir | sed -n 's/^path:sysconfdir://p')/openmpi-mca-params.conf
    rm -f "$work/params.conf"
    [ ! -f "$conf" ] || cp "$conf" "$work/params.conf"
    printf '\n%s\n' "$1" >>"$work/params.conf"
}
# chosen PML MPIRUN-ARGUMENTS...: do both ranks run on it? The way that docs/troubleshooting.md names.
chosen() {
    pml=$1
    shift
    OMPI_MCA_mca_base_param_files=$work/params.conf run --mca pml_base_verbose 10 "$@" "$work/hello" >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
    grep 'component .* selected' "$work/said"
    [ "$(grep -c "component $pml selected" "$work/said")" = 2 ]
}
site_default() { site_file "pml = speculative" && chosen speculative; }
try "a site makes it the default with pml = speculative" site_default
try "a user goes back with --mca pml ob1" chosen ob1 --mca pml ob1
priority_alone() { site_file "pml_speculative_priority = 100" && ! chosen speculative && grep -q 'component .* selected' "$work/said"; }
try "a priority alone selects nothing" priority_alone

help_text() {
    run --mca pml speculative --mca pml_speculative_priority 1000000 "$work/hello" >"$work/said" 2>&1
    cat "$work/said"
    grep -q 'pml_speculative_priority' "$work/said" && ! grep -qiE 'Sorry! You were supposed|unable to open the file|not found in the file' "$work/said"
}
try "help texts are found in the private tree" help_text

# The table goes to stderr and shows zeros.
stats() {
    run --mca pml speculative --mca pml_speculative_stats 1 "$work/hello" >"$work/output_of_program" 2>"$work/said" || return 1
    cat "$work/output_of_program" "$work/said"
    [ ! -s "$work/output_of_program" ] && grep -qE '^rtr_sent +0 ' "$work/said"
}
try "the counters go to stderr" stats
# What messages do and what was gained goes to stderr, without a table of counters.
explain() {
    run --mca pml speculative --mca pml_speculative_explain 1 "$work/hello" >"$work/output_of_program" 2>"$work/said" || return 1
    cat "$work/output_of_program" "$work/said"
    [ ! -s "$work/output_of_program" ] && ! grep -q '^rtr_sent' "$work/said" &&
        grep -q 'messages from rank 0 to rank 1 on ' "$work/said" && grep -q 'messages from rank 1 to rank 0 on ' "$work/said" &&
        [ "$(grep -c '^pml/speculative: No message was larger than the eager limit' "$work/said")" = 1 ]
}
try "the paths of messages and their gain go to stderr" explain
# Rank 0 polls once, the other rank calls nothing between MPI_Init and MPI_Finalize.
cat >"$work/idle.c" <<'EOF'
#include <mpi.h>
int main(int argc, char **argv)
{
    int rank, found;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
EOF
idle() {
    "$mpicc" -o "$work/idle" "$work/idle.c" || return 1
    timeout -k 5 20 "$mpirun" --oversubscribe -n 2 --mca pml speculative --mca pml_speculative_explain 1 "$work/idle" >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
    cat "$work/said"
    [ "$(grep -c '^pml/speculative: No message was larger than the eager limit' "$work/said")" = 1 ]
}
try "a process that never polls takes part in the report" idle
# BTLs | words of a line that the table of rank 0 must have, for each BTL; :: separates them
paths() {
    while IFS='|' read -r arguments lines; do
        # shellcheck disable=SC2086
        run --mca pml speculative --mca pml_speculative_explain 1 $arguments "$work/hello" >"$work/said" 2>&1 </dev/null || { cat "$work/said"; return 1; }
        cat "$work/said"
        printf '%s\n' "$lines" | awk '{ gsub(/ *:: */, "\n"); print }' | while read -r line; do
            grep -qE "$line" "$work/said" || { echo "no line: $line"; exit 1; }
        done || return 1
    done <<'END'
--mca btl self,vader|^  0 \.\. [0-9]+ +inject +vader +the BTL copies :: ^  [0-9]+ \.\. +RTS, get +vader +no RTRs: shared memory
--mca btl self,vader --mca pml_speculative_shared_memory always|^  [0-9]+ \.\. +RTR, put +vader +the receive was posted first :: ^  [0-9]+ \.\. +RTS, get +vader
--mca btl self,tcp --mca btl_tcp_if_include lo|^  0 \.\. [0-9]+ +copy +tcp :: ^  [0-9]+ \.\. +RTS, put +tcp +no RTRs: the interrupt threads .*while both compute
--mca btl self,tcp --mca btl_tcp_if_include lo --mca common_overlap_progress off|^  [0-9]+ \.\. +RTR, fragments +tcp :: ^  [0-9]+ \.\. +RTS, put +tcp
--mca btl self,tcp --mca btl_tcp_if_include lo --mca pml_speculative_cancel sender|^  [0-9]+ \.\. +RTR, put +tcp
--mca btl self,tcp --mca btl_tcp_if_include lo --mca pml_speculative_speculation 0|RTS, put +tcp +no RTRs: pml_speculative_speculation is false
--mca btl self,ring --mca btl_ring_fabric soft|inject +ring +.*where it refuses: zero-copy :: ^  [0-9]+ \.\. +RTR, put +ring :: ^  [0-9]+ \.\. +RTS, get +ring
END
}
try "each BTL's paths are named with their reasons" paths
elsewhere() {
    for tunable in stats explain; do
        run --mca pml_speculative_$tunable 1 "$work/hello" >"$work/said" 2>&1 || return 1
        cat "$work/said"
        [ "$(grep -c 'Add --mca pml speculative' "$work/said")" = 1 ] || return 1
    done
}
try "what is asked for on another PML is answered" elsewhere

unreachable() {
    run --mca pml speculative --mca btl self "$work/hello" >"$work/said" 2>&1 && { echo "the program ran"; return 1; }
    cat "$work/said"
    [ "$(grep -c 'no BTL that connects two processes' "$work/said")" = 1 ] &&
        grep -qE '^  From:  rank [01] on [^ ]+' "$work/said" && grep -qE '^  To:    rank [01] on [^ ]+' "$work/said" &&
        grep -qE '^  BTLs:  self$' "$work/said" && grep -q 'Add a BTL that connects them to --mca btl' "$work/said"
}
try "a process that cannot be reached is named with its host and the remedy" unreachable

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

# Open MPI 4.1 and 5.0 know no second choice: where the component declines, the job ends with its sentence, and ob1 has to be named.
declined() {
    for line in "pml = speculative" "pml = speculative,ob1"; do
        site_file "$line"
        (export LD_LIBRARY_PATH="$work/wrong" OMPI_MCA_mca_base_component_path="$work/wrong:SYSTEM_DEFAULT:USER_DEFAULT"
         OMPI_MCA_mca_base_param_files=$work/params.conf run "$work/hello" >"$work/said" 2>&1) && { echo "the program ran with $line"; return 1; }
        cat "$work/said"
        grep -q 'pml/speculative is not used' "$work/said" && grep -q 'PML speculative.* cannot be selected' "$work/said" || return 1
    done
    (export LD_LIBRARY_PATH="$work/wrong" OMPI_MCA_mca_base_component_path="$work/wrong:SYSTEM_DEFAULT:USER_DEFAULT"
     chosen ob1 --mca pml ob1)
}
try "where a site's default declines, the job says so and --mca pml ob1 runs" declined

uninstall() {
    make -C "$build" install DESTDIR="$work/root" || return 1
    [ -f "$work/root$prefix/env.sh" ] && [ -f "$work/root$prefix/share/modulefiles/overlap" ] || return 1
    make -C "$build" uninstall DESTDIR="$work/root" || return 1
    left=$(find "$work/root" ! -type d; find "$work/root$prefix" 2>/dev/null)
    echo "left: $left"
    [ -z "$left" ]
}
try "make uninstall leaves nothing" uninstall

# Where the component itself goes, without a build.
site_wide() {
    mkdir "$work/site-wide" && cd "$work/site-wide" && "$configured_from/configure" && make -C ompi/mca/pml/speculative installdirs DESTDIR="$work/folders" || return 1
    folder=$("$ompi_info" --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')
    find "$work/folders"
    [ -d "$work/folders$folder" ]
}
try "without --prefix the component goes into Open MPI's own folder" site_wide

# One build for two questions: each takes minutes.
site_wide_without_folder() {
    mkdir "$work/less" && tar -C "$source_folder" -cf - --exclude=./_build --exclude=./_install --exclude=./.git --exclude='*.o' --exclude='*.lo' \
        --exclude='*.la' --exclude=.libs --exclude=.deps --exclude=./config/generated --exclude=./config.status --exclude=Makefile \
        --exclude=./config/autoconf.h --exclude=./config/overlap_config.h . | tar -xf - -C "$work/less" || return 1
    rm -rf "$work/less/ompi/mca/pml/speculative"
    cd "$work/less" && ./autogen.sh && ./configure CXXFLAGS=-O0 && make -j2 && make install DESTDIR="$work/site" || return 1
    folder=$("$ompi_info" --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')
    find "$work/site" ! -type d
    [ -f "$work/site$folder/mca_btl_ring.so" ] && [ -f "$work/site$folder/libmca_common_overlap.so" ] &&
        [ ! -e "$work/site$folder/mca_pml_speculative.so" ] && [ ! -e "$work/site$(dirname "$folder")/env.sh" ]
}
try "without --prefix, and without a component's folder, the rest goes into Open MPI's own folders" site_wide_without_folder

broken_options() {
    cd "$work" && mkdir -p broken && cd broken || return 1
    "$configured_from/configure" --with-openmpi=/nowhere >out 2>&1 && return 1
    grep -q 'no Open MPI in /nowhere' out || { cat out; return 1; }
    "$configured_from/configure" --enable-sanitizer >out 2>&1 && return 1
    grep -q 'enable-sanitizer needs a value' out || { cat out; return 1; }
    "$configured_from/configure" --without-openmpi --enable-fortran >out 2>&1 && return 1
    grep -q 'enable-fortran: --without-openmpi' out || { cat out; return 1; }
}
try "configure explains wrong options" broken_options
exit $failed
