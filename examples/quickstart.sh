#!/bin/sh
# Build the components, install them into ./_install and show what they do beside stock Open MPI. Nothing outside this tree changes, but
# for missing Debian packages, which are installed when this runs as root.
# SPDX-License-Identifier: BSD-3-Clause
set -eu

usage() {
    cat <<'END'
usage: sh examples/quickstart.sh [-h] [-b] [-p PAIRS] [-o FOLDER]

Installs what is missing (apt, as root; else says what to install), builds, installs into ./_install, then runs stock ob1 and
speculative in turn: a whole program that exchanges halos of 1 MiB (time of an iteration, and how much of it waits in MPI_Waitall), then
one-way overlap. On a software RDMA device with 1 GB/s, as root between two simulated nodes with TCP at 1 Gbit/s, and on shared memory.
Ends with a table, plots, and the timeline of one exchange. Steps already done are skipped.

  -b         build and install only
  -p PAIRS   how often each variant runs (default: 5)
  -o FOLDER  where tables and plots go (default: ./_build/quickstart/results)
  -h         this text

Afterwards:  . ./_install/env.sh && mpirun --mca pml speculative PROGRAM
To remove everything:  rm -r _install _build
END
}

pairs=5
build_only=no
results=
while getopts hbp:o: option; do
    case $option in
        h) usage; exit 0 ;;
        b) build_only=yes ;;
        p) pairs=$OPTARG ;;
        o) case $OPTARG in /*) results=$OPTARG ;; *) results=$PWD/$OPTARG ;; esac ;;
        *) usage >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 0 ] || { usage >&2; exit 2; }

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
work=$top/_build/quickstart
prefix=$top/_install
stamp=$work/installed
results=${results:-$work/results}
mkdir -p "$work"
started=$(date +%s)
say() { echo "[$(($(date +%s) - started)) s] $*"; }

# step NAME COMMAND...: run with its output in a log; on failure show the end of it.
step() {
    name=$1
    shift
    say "$name"
    if "$@" >"$work/$name.log" 2>&1; then return 0; fi
    echo "quickstart.sh: '$*' failed; the end of $work/$name.log:" >&2
    tail -n 30 "$work/$name.log" >&2
    exit 1
}

# True if this tree is installed: same place, same Open MPI, same packages, and nothing is newer than the installation.
installed() {
    [ -f "$stamp" ] && [ -f "$prefix/env.sh" ] && [ "$(cat "$stamp")" = "$(identity)" ] || return 1
    [ -z "$(find configure.ac autogen.sh Makefile.am env.sh.in config ompi opal -path config/generated -prune -o -type f \
        ! -name '*_test.cpp' ! -name '*.o' ! -name '*.lo' ! -name Makefile ! -name Makefile.in ! -path config/autoconf.h.in \
        -newer "$stamp" -print 2>/dev/null | head -n 1)" ]
}
packages() { sh "$top/test/support/install-packages" --state build; }
identity() { echo "$prefix $(command -v mpirun) $(ompi_info --version 2>/dev/null | head -n 1) $(packages)"; }

build() {
    from=$top
    if [ -f config.status ]; then
        # a tree that was configured in place cannot be built from elsewhere: use a copy without its products
        say "the source tree is configured in place: building from a copy"
        from=$work/source
        mkdir -p "$from"
        tar -cf - --exclude=./_build --exclude=./_install --exclude=./.git --exclude=./config.status --exclude=./config/autoconf.h \
            --exclude=./config/overlap_config.h --exclude=./env.sh --exclude=./modulefile --exclude=Makefile --exclude='*.o' \
            --exclude='*.lo' --exclude='*.la' --exclude=.libs --exclude=.deps . | tar -xf - -C "$from"
    fi
    step autogen "$from/autogen.sh"
    mkdir -p "$work/build"
    cd "$work/build"
    if [ ! -f config.status ] || [ "$from/configure" -nt config.status ] || [ "$(cat configured_for 2>/dev/null)" != "$(packages)" ]; then
        step configure "$from/configure" --prefix="$prefix"
        packages >configured_for
    fi
    step make make -j"$(nproc 2>/dev/null || echo 2)"
    step install make install
    cd "$top"
    identity >"$stamp"
}

say "packages"
sh test/support/install-packages build || exit 1
if [ "$build_only" = no ]; then
    sh test/support/install-packages plots || echo "quickstart.sh: without them there will be no plots" >&2
    command -v python3 >/dev/null || { echo "quickstart.sh: python3 is needed for the demonstration" >&2; exit 1; }
    [ "$(id -u)" != 0 ] || sh test/support/install-packages nodes || exit 1
fi
if installed; then say "already built and installed in _install"; else build; fi
set +u
# shellcheck disable=SC1091
. "$prefix/env.sh"
set -u
if [ "$build_only" = yes ]; then say "installed in $prefix; source its env.sh"; exit 0; fi

transports=soft,vader
if [ "$(id -u)" != 0 ]; then
    echo "not root: the simulated nodes are left out"
elif rm -rf "$work/nodes" && bash test/support/nodes/nodes.sh up "$work/nodes" 1 >"$work/nodes.log" 2>&1; then
    bash test/support/nodes/nodes.sh down "$work/nodes"
    transports=soft,nodes,vader
else
    echo "this system does not allow simulated nodes, which are left out: $(tail -n 1 "$work/nodes.log")"
fi
say "demonstration: a whole program, then overlap of computation and communication"
python=python3
[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3  # the one that Debian's matplotlib belongs to
status=0
"$python" examples/bench/run.py --quick --brief --benchmarks halo,overlap,soft_overlap --variants ob1,speculative --transports "$transports" \
    --pairs "$pairs" --build "$work/bench" --out "$results" || status=$?
"$python" examples/bench/timeline.py --build "$work/bench" --out "$results/timeline.svg" || status=$?
cat <<END

What the table says: 'halo' is a whole program; its iteration should take little longer than its computation, and what it takes longer is
mostly 'waitall'. 'receiver_early.receiver' is the share of a transfer that costs a receiver nothing when it had posted its receive, computed, and then called
MPI_Wait. On shared memory the copy is work for a processor whatever the PML does, so a whole program gains nothing there without a spare core.
Full results: $results/results.txt    One exchange, drawn: $results/timeline.svg
Use it:  . $prefix/env.sh && mpirun --mca pml speculative PROGRAM
END
say "done"
exit $status
