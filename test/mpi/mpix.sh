#!/bin/sh
# libmpix_overlap as programs use it: C, C++ and Fortran programs built by pkg-config, on windows of Open MPI's own one-sided components
# and of osc/newrma.
# Needs OVERLAP_BUILD and OVERLAP_PREFIX; runs on the PML that OMPI_MCA_pml names.
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${OVERLAP_BUILD:?a build folder}/test-mpi
prefix=${OVERLAP_PREFIX:?a private installation}
work=$build/mpix
rm -rf "$work" && mkdir -p "$work" || exit 1
. "$prefix/env.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
shared_memory=$(mktemp -d /dev/shm/overlap-mpix-XXXXXX) || exit 1
trap 'rm -rf "$shared_memory"' EXIT
export OMPI_MCA_btl_vader_backing_directory="$shared_memory" OMPI_MCA_osc_sm_backing_directory="$shared_memory"
failed=0

# result NAME STATUS LOG
result() {
    if [ "$2" -eq 0 ]; then echo "PASS mpi: mpix: $1"; return; fi
    echo "FAIL mpi: mpix: $1"
    failed=1
    echo "$1: exit status $2; end of $3:" >&2
    tail -n 25 "$3" >&2
}
# compile PROGRAM COMPILER...
compile() {
    program=$1
    shift
    # shellcheck disable=SC2046
    (cd "$work" && "$@" -o "$program" $(pkg-config --cflags --libs mpix_overlap)) >"$work/$program.compile" 2>&1
    result "$program compiles and links by pkg-config" $? "$work/$program.compile"
}

compile calls_c mpicc -std=c99 -pedantic-errors -Wall -Wextra -Werror "$here/mpix/calls.c"
# Open MPI 4.1 brings its C++ binding along with mpi.h, which today's compilers warn of.
compile calls_cxx mpicxx -std=c++20 -Wall -Werror -DOMPI_SKIP_MPICXX -x c++ "$here/mpix/calls.c" -x none
compile nonblocking_c mpicc -std=c99 -pedantic-errors -Wall -Wextra -Werror "$here/mpix/nonblocking.c"
compile nonblocking_cxx mpicxx -std=c++20 -Wall -Werror -DOMPI_SKIP_MPICXX -x c++ "$here/mpix/nonblocking.c" -x none
compile late_target mpicc -std=c99 -Wall -Wextra -Werror "$here/../../examples/mpix/late_target.c"
programs="calls_c calls_cxx"
nonblocking="nonblocking_c nonblocking_cxx"
if [ -f "$prefix/lib/overlap/fortran/mpix_overlap.mod" ]; then
    compile calls_f08 mpifort -Wall -Werror "$here/mpix/calls_f08.f90"
    compile nonblocking_f08 mpifort -Wall -Werror "$here/mpix/nonblocking_f08.f90"
    programs="$programs calls_f08"
    nonblocking="$nonblocking nonblocking_f08"
else
    echo "SKIP mpi: mpix: calls_f08 nonblocking_f08: the Fortran module was not built"
fi

# The kinds of windows need components of their own: sm takes allocated ones, pt2pt (which 5.0 has no more) and rdma what is left.
version=$(ompi_info --version | sed -n 's/^Open MPI v//p')
case $version in 4.*) stock="sm,pt2pt sm,rdma" ;; *) stock=sm,rdma ;; esac
for program in $programs; do
    [ -x "$work/$program" ] || continue
    for osc in $stock; do
        log=$work/$program-$osc.log
        timeout -k 5 60 mpirun -n 2 --mca osc $osc "$work/$program" >"$log" 2>&1 </dev/null
        result "$program --mca osc $osc" $? "$log"
    done
done

# Under MPI's own error handler the message names the call and the class. mpirun 4.1.4 loses such messages of its own now and then (ORTE_ERROR_LOG
# ... show_help.c): the job must end each time, with the message in one of five.
log=$work/fatal.log
status=1 tries=5
while [ $status -ne 0 ] && [ $tries -gt 0 ]; do
    timeout -k 5 60 mpirun -n 2 --mca osc "${stock%% *}" "$work/calls_c" fatal >"$log" 2>&1 </dev/null
    ended=$?
    [ $ended -ne 0 ] && [ $ended -ne 124 ] || break
    grep -q 'An error occurred in MPIX_Win_ilock' "$log" && grep -q 'MPI_ERR_UNSUPPORTED_OPERATION' "$log"
    status=$?
    tries=$((tries - 1))
done
result "an unsupported call ends the job and is named" $status "$log"

# Another python3 may be first on the PATH.
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import mpi4py' 2>/dev/null; then python=$candidate; break; fi
done
# sum NAME WORDS OPTION...   examples/mpix/sum.py, and which calls it says it has used
sum() {
    name="examples/mpix/sum.py, $1" words=$2
    shift 2
    if [ -z "$python" ]; then echo "SKIP mpi: mpix: $name: no python3 that imports mpi4py"; return; fi
    log=$work/sum.log
    timeout -k 5 60 mpirun -n 3 "$@" "$python" -m mpi4py "$here/../../examples/mpix/sum.py" >"$log" 2>&1 </dev/null && grep -qx "sum 6 with $words" "$log"
    result "$name" $? "$log"
}
sum "no non-blocking epochs" "blocking calls" --mca osc "${stock%% *}"

# Windows that have them.
newrma="--mca pml speculative --mca osc newrma"
if [ -f "$prefix/lib/openmpi/mca_osc_newrma.so" ]; then
    for program in $nonblocking; do
        [ -x "$work/$program" ] || continue
        for ranks in 2 3; do
            log=$work/$program-$ranks.log
            # shellcheck disable=SC2086
            timeout -k 5 60 mpirun -n $ranks $newrma "$work/$program" >"$log" 2>&1 </dev/null
            result "$program --mca osc newrma np $ranks" $? "$log"
        done
    done
    # shellcheck disable=SC2086
    sum "osc/newrma" "non-blocking epochs" $newrma
    log=$work/late_target.log
    # shellcheck disable=SC2086
    timeout -k 5 60 mpirun -n 2 $newrma "$work/late_target" >"$log" 2>&1 </dev/null && grep -q 's with MPI_Win_complete$' "$log" && grep -q 's with MPIX_Win_icomplete$' "$log"
    result "examples/mpix/late_target.c" $? "$log"
else
    echo "SKIP mpi: mpix: $nonblocking sum.py late_target on windows of osc/newrma: there is no mca_osc_newrma.so in $prefix/lib/openmpi"
fi

# Built for another version than the one that runs: no window is read, and all have no non-blocking epochs.
other=$(echo "$version" | sed 's/.$/Z/')
mkdir "$work/other" && LC_ALL=C sed "s/$version\\x00/$other\\x00/g" "$prefix/lib/libmpix_overlap.so.0" >"$work/other/libmpix_overlap.so.0"
log=$work/version.log
# The program that expects wrong arguments to be named fails: the other library is the one in use.
if cmp -s "$prefix/lib/libmpix_overlap.so.0" "$work/other/libmpix_overlap.so.0"; then
    echo "libmpix_overlap.so.0 names no version $version" >"$log"
    false
else
    with_other() { LD_LIBRARY_PATH=$work/other timeout -k 5 60 mpirun -n 2 --mca osc "${stock%% *}" -x LD_LIBRARY_PATH "$work/calls_c" "$@" >"$log" 2>&1 </dev/null; }
    with_other valid && ! with_other && grep -q 'MPI_MODE_NOCHECK, win.*expected' "$log"
fi
result "for another version of Open MPI every window is unsupported" $? "$log"
exit $failed
