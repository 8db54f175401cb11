#!/bin/sh
# Real MPI programs on this PML; each verifies its own results. Prints "PASS name", "FAIL name" or "SKIP name: reason" per case.
#
#   OVERLAP_BUILD   a build folder; logs go to programs/ in it
#   OVERLAP_PREFIX  a private installation with env.sh
#   PML             the PML to run on (default: speculative); PML=ob1 shows what stock Open MPI does
#
#   OVERLAP_MPI4PY_TESTS  the folder test/ of mpi4py's sources, in the version of the installed mpi4py: its own tests of one-sided
#                   communication run, too. Debian's package does not have them.
#
# HPC Challenge, NetPIPE, Global Arrays (over ARMCI-MPI) and NWChem come from Debian, messages.py (mpi4py, numpy), wait_f08.f90,
# global_arrays.c and the programs of examples/mpix are our own. About two minutes.
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${OVERLAP_BUILD:?a build folder}
prefix=${OVERLAP_PREFIX:?a private installation}
pml=${PML:-speculative}
work=$build/programs
failed=0

# shellcheck source=/dev/null
. "$prefix/env.sh" || exit 1
mkdir -p "$work" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

pass() { echo "PASS programs: $1"; }
fail() {
    echo "FAIL programs: $1"
    tail -n 25 "$2" >&2
    failed=1
}

# run LIMIT_S RANKS BTL COMMAND...: mpirun; ranks may outnumber the cores, so they give way while they wait.
run() {
    limit=$1 ranks=$2 btl=$3
    shift 3
    timeout -k 5 "$limit" mpirun --oversubscribe --bind-to none -n "$ranks" --mca pml "$pml" --mca btl "self,$btl" \
        --mca mpi_yield_when_idle 1 "$@" </dev/null
}

# have NAME COMMAND: is it there? Otherwise one SKIP line. Packages are installed beforehand.
have() {
    command -v "$2" >/dev/null && return 0
    echo "SKIP programs: $1: $2 is not installed ($packages_problem)"
    return 1
}

# hpcc_case NAME RANKS BTL N QS: HPC Challenge with matrices of N x N on the grids 1 x Q and 2 x Q of QS.
hpcc_case() {
    folder=$work/hpcc-$1
    rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" || return
    sed "s/@N@/$4/; s/@Q@/$5/" "$here/hpccinf.txt" >hpccinf.txt
    if ! run 90 "$2" "$3" hpcc >log 2>&1; then
        fail "hpcc $1 (exit status)" log
        return
    fi
    # HPCC's own checks: HPL and PTRANS print PASSED or FAILED per run, the others a count or a bound.
    good=1
    expect() { grep -qE "$1" hpccoutf.txt || { echo "hpccoutf.txt lacks: $1" >>log; good=0; }; }
    refuse() { ! grep -E "$1" hpccoutf.txt >>log || good=0; }
    expect '^Success=1$'
    expect '\|\|Ax-b\|\|.*PASSED'
    expect '^WALL .* PASSED '
    expect '^MPIRandomAccess_Errors=0$'
    expect '^MPIRandomAccess_LCG_Errors=0$'
    expect '^MPIFFT_maxErr='
    expect 'Solution Validates'
    refuse 'FAILED|[1-9][0-9]* tests completed and failed'
    refuse 'Node\(s\) with error [1-9]|Found [1-9][0-9]* errors'
    awk -F= '/FFT_maxErr=/ { if ($2 + 0 > 1e-12) { print "FFT error too large: " $0; bad = 1 } } END { exit bad }' hpccoutf.txt >>log || good=0
    if [ $good = 1 ]; then pass "hpcc $1"; else fail "hpcc $1" log; fi
}

# netpipe_case NAME BTL OPTION...: two ranks; every size must be reported, and as intact where -i asks for a check.
netpipe_case() {
    name=$1 btl=$2
    shift 2
    log=$work/netpipe-$(echo "$name" | tr ' ' -)
    if ! run 60 2 "$btl" NPopenmpi -o "$log.np" "$@" >"$log" 2>&1; then
        fail "netpipe $name (exit status)" "$log"
        return
    fi
    sizes=$(grep -cE '^ *[0-9]+: +[0-9]+ bytes' "$log")
    case " $* " in
        *" -i "*) intact=$(grep -c 'Integrity check passed' "$log") ;;
        *) intact=$(grep -cE 'Mbps in +[0-9.]+ usec' "$log") ;;
    esac
    if [ "$sizes" -gt 10 ] && [ "$sizes" = "$intact" ]; then pass "netpipe $name"; else fail "netpipe $name ($intact of $sizes)" "$log"; fi
}

# messages_case NAME RANKS BTL: one result per case of messages.py.
messages_case() {
    log=$work/messages-$1
    run 90 "$2" "$3" "$python" -m mpi4py "$here/messages.py" >"$log" 2>&1
    status=$?
    sed -n "s/^ok \(.*\)/PASS programs: mpi4py $1: \1/p" "$log"
    if [ $status -ne 0 ] || ! grep -q '^all cases passed$' "$log"; then
        last=$(sed -n 's/^ok //p' "$log" | tail -n 1)
        fail "mpi4py $1 (exit status $status, after case ${last:-none})" "$log"
    fi
}

# One-sided communication runs on osc/newrma where it is installed and the PML is ours.
osc=
[ "$pml" != speculative ] || [ ! -f "$prefix/lib/openmpi/mca_osc_newrma.so" ] || osc="--mca osc newrma"

# onesided_case NAME RANKS BTL WORDS COMMAND...: the program must end with 0 and print a line with these words (a regular expression).
onesided_case() {
    name=$1 ranks=$2 btl=$3 words=$4
    shift 4
    log=$work/onesided-$(echo "$name" | tr ' ,' '--')
    # shellcheck disable=SC2086
    if run 90 "$ranks" "$btl" $osc "$@" >"$log" 2>&1 && grep -qE "$words" "$log"; then pass "$name"; else fail "$name" "$log"; fi
}

# nwchem_case NAME RANKS BTL: the energies of water.nw, as every process count and transport must find them.
nwchem_case() {
    folder=$work/nwchem-$1
    rm -rf "$folder" && mkdir -p "$folder" && cp "$here/water.nw" "$folder" && cd "$folder" || return
    # shellcheck disable=SC2086
    if run 90 "$2" "$3" $osc nwchem.openmpi water.nw >log 2>&1 && [ "$(grep -cE 'Total SCF energy = +-75\.98399682' log)" = 2 ] &&
        grep -qE 'Total MP2 energy +-76\.11277184' log; then pass "nwchem $1"; else fail "nwchem $1" log; fi
}

packages_problem="its package was installed just now without it"
sh "$here/../support/install-packages" programs >"$work/packages" 2>&1 || packages_problem="$(tail -n 1 "$work/packages")"

if have hpcc hpcc; then
    hpcc_case vader 2 vader 1000 "2 1"
    hpcc_case vader-4-ranks 4 vader 600 "4 2"
    hpcc_case tcp 2 tcp 600 "2 1"
fi

if have netpipe NPopenmpi; then
    netpipe_case "integrity vader" vader -i -n 4 -u 3000000
    netpipe_case "integrity tcp" tcp -i -n 4 -u 1000000
    netpipe_case "integrity vader, receives first" vader -a -i -n 4 -u 3000000
    netpipe_case "integrity vader, any source, both ways" vader -a -2 -z -i -n 4 -u 1000000
    netpipe_case "integrity tcp, receives first, synchronous" tcp -a -S -i -n 4 -u 1000000
    netpipe_case "speed vader" vader -n 10 -u 1000000
    netpipe_case "speed tcp, receives first" tcp -a -n 10 -u 1000000
fi

# Another python3 may be first on the PATH.
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import mpi4py, numpy' 2>/dev/null; then python=$candidate; break; fi
done
if [ -n "$python" ]; then
    messages_case vader 2 vader
    messages_case tcp 3 tcp
    messages_case vader,tcp 4 vader,tcp
else
    echo "SKIP programs: mpi4py: no python3 that imports mpi4py and numpy ($packages_problem)"
fi
# Non-blocking epochs, and the blocking calls that do the same.
if [ -f "$prefix/include/mpix_overlap.h" ]; then
    for program in lu updates patches; do
        # shellcheck disable=SC2046
        if ! mpicxx -std=c++17 -O2 -Wall -Wextra -Werror "$here/../../examples/mpix/$program.cpp" -o "$work/$program" \
            $(pkg-config --cflags --libs mpix_overlap) >"$work/$program.compile" 2>&1; then
            fail "compile examples/mpix/$program.cpp" "$work/$program.compile"
            continue
        fi
        for calls in blocking nonblocking; do
            used=$(echo $calls | sed 's/^non/non-/')
            [ -n "$osc" ] || used=blocking
            onesided_case "$program vader, $calls calls" 4 vader "right with $used calls" "$work/$program" $calls
            onesided_case "$program tcp, $calls calls" 3 tcp "right with $used calls" "$work/$program" $calls
        done
    done
else
    echo "SKIP programs: lu, updates, patches: there is no mpix_overlap.h in $prefix/include"
fi
# Debian's Global Arrays stand on ARMCI-MPI, which stands on MPI's windows; NWChem has both inside.
if [ ! -f /usr/include/ga.h ] || [ ! -f /usr/include/armci.h ]; then
    echo "SKIP programs: global arrays: libglobalarrays-dev or libarmci-mpi-dev is not installed ($packages_problem)"
elif ! mpicc -O1 -Wall -o "$work/global_arrays" "$here/global_arrays.c" -lga -larmci -l:libscalapack-openmpi.so.2.2 -llapack -lblas -lgfortran \
    -lm >"$work/global_arrays.compile" 2>&1; then
    fail "compile global_arrays.c" "$work/global_arrays.compile"
else
    onesided_case "global arrays vader" 4 vader "^all results right" "$work/global_arrays"
    onesided_case "global arrays tcp" 3 tcp "^all results right" "$work/global_arrays"
fi
if have nwchem nwchem.openmpi; then
    nwchem_case vader 2 vader
    nwchem_case vader-4-ranks 4 vader
    nwchem_case tcp 2 tcp
fi
# mpi4py's own tests. Those of 3.1 have three defects that later versions mended: memory that an operation uses is freed before the fence
# ends it, and MPI_Win_test is asked once.
if [ -z "${OVERLAP_MPI4PY_TESTS:-}" ]; then
    echo "SKIP programs: mpi4py's own tests: OVERLAP_MPI4PY_TESTS does not say where they are"
elif [ -n "$python" ]; then
    rm -rf "$work/mpi4py" && cp -R "$OVERLAP_MPI4PY_TESTS" "$work/mpi4py" && cd "$work/mpi4py" || exit 1
    sed -e '/^            finally:$/i\                self.WIN.Fence()' -e '/flag = win.Test()/{N;s/flag = .*assertTrue(flag)/while not win.Test(): pass/}' \
        "$OVERLAP_MPI4PY_TESTS/test_rma.py" >test_rma.py
    for ranks in 1 2 4; do
        onesided_case "mpi4py's own tests np $ranks" $ranks vader '^OK$' "$python" runtests.py -q --no-builddir -i 'test_rma|test_win'
    done
fi
# waitprofile sees the calls in which these programs wait, whatever binding they use.
profile_case() { # NAME CALL COMMAND...
    log=$work/profile-$1
    name=$1 call=$2
    shift 2
    if run 90 2 vader -x LD_PRELOAD="$prefix/lib/overlap/libwaitprofile.so" "$@" >"$log" 2>&1 &&
        grep -qE "^$call +[1-9]" "$log"; then pass "waitprofile $name"; else fail "waitprofile $name: no $call" "$log"; fi
}
[ -z "$python" ] || profile_case mpi4py MPI_Mrecv "$python" -m mpi4py "$here/messages.py"
if mpifort -o "$work/wait_f08" "$here/wait_f08.f90" >"$work/wait_f08.log" 2>&1; then
    profile_case mpi_f08 MPI_Waitall "$work/wait_f08"
else
    fail "compile wait_f08.f90" "$work/wait_f08.log"
fi
exit $failed
