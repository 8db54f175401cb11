#!/bin/sh
# The tree with Open MPI 5.0 inside a Debian 13 folder: build, make check, two-rank smoke tests of pml/speculative and btl/ring; programs of
# test/mpi for messages, osc/newrma, libmpix_overlap and coll/mq.
#
#   OVERLAP_BUILD      a build folder; the Debian folder goes beside it, unless
#   OVERLAP_TRIXIE     names one (made when it is not there; kept)
# Needs root and debootstrap, which takes 3 to 5 minutes the first time.
# SPDX-License-Identifier: BSD-3-Clause
set -u
source_folder=$(cd "$(dirname "$0")/../.." && pwd)
debian=${OVERLAP_TRIXIE:-${OVERLAP_BUILD:?a build folder}/../trixie}
failed=0

skip() { echo "SKIP openmpi5: $*"; exit 0; }

[ "$(id -u)" = 0 ] || skip "needs root (debootstrap, chroot)"
sh "$source_folder/test/support/install-packages" openmpi5 >&2 || skip "debootstrap is not installed"

inside() { chroot "$debian" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

# try NAME COMMAND...: one test case; the log of a failure goes to stderr.
try() {
    name=$1
    shift
    if "$@" >"$debian/tmp/overlap-step.log" 2>&1; then
        echo "PASS openmpi5: $name"
    else
        echo "FAIL openmpi5: $name"
        tail -n 40 "$debian/tmp/overlap-step.log" >&2
        failed=1
        return 1
    fi
}

if [ ! -x "$debian/usr/bin/mpirun" ] || [ ! -f "$debian/var/lib/overlap-ready" ]; then
    mkdir -p "$debian" || exit 1
    if [ ! -f "$debian/etc/debian_version" ]; then
        debootstrap --variant=minbase trixie "$debian" "${OVERLAP_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >&2 ||
            skip "debootstrap could not fetch Debian 13"
    fi
    cp /etc/resolv.conf "$debian/etc/" 2>/dev/null
    inside apt-get update >&2 && inside apt-get install -y --no-install-recommends openmpi-bin libopenmpi-dev g++ make autoconf automake \
        libtool pkg-config catch2 libevent-dev libpmix-dev libibverbs-dev librdmacm-dev >&2 || skip "packages could not be installed in Debian 13"
    touch "$debian/var/lib/overlap-ready"
fi

# mpirun needs these; they are taken away at the end.
mounted=
trap 'for folder in $mounted; do umount "$debian/$folder" 2>/dev/null; done' EXIT
for folder in proc sys dev; do
    mountpoint -q "$debian/$folder" && continue
    case $folder in
        proc) mount -t proc proc "$debian/proc" ;;
        sys) mount -t sysfs sysfs "$debian/sys" ;;
        dev) mount --bind /dev "$debian/dev" ;;
    esac && mounted="$folder $mounted"
done
if ! mountpoint -q "$debian/dev/shm" && mkdir -p "$debian/dev/shm"; then
    mount -t tmpfs tmpfs "$debian/dev/shm" && mounted="dev/shm $mounted"
fi

tree=/tmp/overlap
rm -rf "${debian:?}$tree/source"  # a kept Debian folder may hold files that the tree has no more
mkdir -p "$debian$tree/source" "$debian$tree/build"
tar -C "$source_folder" -cf - --exclude=./_build --exclude=./_install --exclude=./.git --exclude='*.o' --exclude='*.lo' --exclude='*.la' \
    --exclude=.libs --exclude=.deps --exclude=./config/generated --exclude=./autom4te.cache --exclude=./config.status --exclude=./aclocal.m4 \
    --exclude=./configure --exclude=Makefile --exclude=Makefile.in --exclude=./config/autoconf.h --exclude=./config/overlap_config.h --exclude=./config/mpirun --exclude=./config/mpiexec . |
    tar -xf - -C "$debian$tree/source" || exit 1
cat >"$debian$tree/hello.c" <<'EOF'
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
/* Every size of interest in both directions, received early and late. */
int main(int argc, char **argv)
{
    int rank, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int bytes = 1; bytes <= 4 << 20; bytes *= 4) {
        unsigned char *out = malloc(bytes), *in = malloc(bytes);
        for (int early = 0; early < 2; early++) {
            MPI_Request request;
            memset(out, rank + bytes + early, bytes);
            memset(in, 0, bytes);
            if (early) {
                MPI_Irecv(in, bytes, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, &request);
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Send(out, bytes, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD);
            } else {
                MPI_Isend(out, bytes, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, &request);
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            for (int i = 0; i < bytes; i++) {
                wrong += in[i] != (unsigned char)(1 - rank + bytes + early);
            }
        }
        free(out);
        free(in);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong != 0;
}
EOF

prefix=$tree/prefix
# mpirun as after ". env.sh", with what all runs need.
mkdir -p "$debian$tree/bin"
cat >"$debian$tree/bin/mpirun" <<EOF
#!/bin/sh
exec $prefix/bin/mpirun --allow-run-as-root --oversubscribe --bind-to none "\$@"
EOF
chmod +x "$debian$tree/bin/mpirun"
smoke() { # PML MCA ARGUMENTS...
    pml=$1
    shift
    inside timeout -k 5 60 $tree/bin/mpirun -n 2 --mca pml "$pml" "$@" $tree/hello
}
info() {
    inside sh -c ". $prefix/env.sh && ompi_info --param pml speculative --level 9" >"$debian$tree/info" 2>&1
    cat "$debian$tree/info"
    grep -q pml_speculative_priority "$debian$tree/info"
}

# The README's own commands.
silent() {
    inside sh -c ". $prefix/env.sh && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 && timeout -k 5 60 mpirun --oversubscribe \
        -n 2 --mca pml speculative --mca btl sm,self $tree/hello && mpiexec --version" >"$debian$tree/said" 2>&1 || { cat "$debian$tree/said"; return 1; }
    cat "$debian$tree/said"
    grep -q 'Open MPI' "$debian$tree/said" && [ "$(head -n 1 "$debian$tree/said" | grep -c 'Open MPI')" = 1 ]
}

# The site's file with the line that the README tells a site to append.
site_default() {
    { cat "$debian/etc/openmpi/openmpi-mca-params.conf"; printf '\npml = speculative\n'; } >"$debian$tree/params.conf"
    for pml in speculative ob1; do
        asked=
        [ $pml = speculative ] || asked="--mca pml ob1"
        # shellcheck disable=SC2086
        inside timeout -k 5 60 env OMPI_MCA_mca_base_param_files=$tree/params.conf $tree/bin/mpirun -n 2 --mca btl self,sm \
            --mca pml_base_verbose 10 $asked $tree/hello >"$debian$tree/said" 2>&1 || { cat "$debian$tree/said"; return 1; }
        grep 'component .* selected' "$debian$tree/said"
        [ "$(grep -c "component $pml selected" "$debian$tree/said")" = 2 ] || return 1
    done
}

# rma_keys plays a BTL with Open MPI's own headers, of which Debian leaves some out.
programs=$tree/programs
messages="pt2pt completion random back_pressure blocking_copies"
interrupted="progress threads probe_cancel"
build_programs() {
    rm -rf "${debian:?}$programs"
    mkdir -p "$debian$programs/test/mpi" "$debian$programs/examples" "$debian$tree/build/test-mpi" &&
        cp -rp "$source_folder/test/support" "$debian$programs/test/" && cp -rp "$source_folder/examples/mpix" "$debian$programs/examples/" &&
        (cd "$source_folder/test/mpi" && cp -rp build.sh mpix.sh mpix ./*.hpp mpi_test.cpp rma_*.cpp coll_*.cpp $(printf '%s.cpp ' $messages $interrupted onesided foreign_windows) "$debian$programs/test/mpi/") &&
        rm -f "$debian$programs/test/mpi/rma_keys.cpp" &&
        inside sh -c ". $prefix/env.sh && here=$programs/test/mpi build=$tree/build/test-mpi prefix=$prefix failed=0 &&
            fail() { echo \"FAIL \$*\"; failed=1; } && . $programs/test/mpi/build.sh"
}
# each_program NUMBERS OF RANKS, BTLS, PROGRAMS, MCA ARGUMENTS...
each_program() {
    numbers=$1 lists=$2 names=$3
    shift 3
    for program in $names; do
        for ranks in $numbers; do
            for btl in $lists; do
                try "$program $btl np $ranks" inside OVERLAP_TEST_SECONDS=1 OMPI_MCA_pml=speculative OMPI_MCA_mpi_yield_when_idle=1 \
                    OMP_NUM_THREADS="$(nproc --all)" OMPI_MCA_btl_tcp_if_include=lo timeout -k 5 120 $tree/bin/mpirun -n "$ranks" --mca btl "$btl" "$@" $tree/build/test-mpi/"$program"
            done
        done
    done
}
names_of() { (cd "$debian$programs/test/mpi" && ls "$1"_*.cpp | sed 's/\.cpp$//'); }
mpix() {
    # Its env.sh puts the installed mpirun before ours.
    inside PATH=$tree/bin:/usr/bin:/bin PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_pml=speculative OVERLAP_BUILD=$tree/build OVERLAP_PREFIX=$prefix sh $programs/test/mpi/mpix.sh
}
session_programs() {
    cp "$source_folder/test/openmpi5/sessions.cpp" "$debian$tree/" &&
        inside mpicxx -std=c++20 -Wall -Wextra -o $tree/sessions $tree/sessions.cpp
}
# Without the C library's thread cache what is used behind its end damages the heap at once.
sessions() { # RANKS MCA ARGUMENTS...
    ranks=$1
    shift
    inside OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_tcp_if_include=lo timeout -k 5 120 $tree/bin/mpirun -n "$ranks" \
        -x MALLOC_PERTURB_=165 -x GLIBC_TUNABLES=glibc.malloc.tcache_count=0 --mca pml speculative "$@" $tree/sessions
}
# Jobs that are to go on when processes fail. With --with-ft 5.0.7's prterun itself does not end now and then when such a job ends early.
declines_fault_tolerance() {
    log=$debian$tree/fault-tolerance.log
    inside timeout -k 2 15 $tree/bin/mpirun -n 2 --with-ft ulfm --mca pml speculative $tree/hello >"$log" 2>&1 && return 1
    grep 'this job is to go on (--with-ft ulfm)' "$log"
}
nothing_left() {
    left=$(find "$debian/dev/shm" -mindepth 1)
    echo "$left"
    [ -z "$left" ]
}

try "autogen.sh" inside sh -c "cd $tree/source && ./autogen.sh" &&
    try "configure" inside sh -c "cd $tree/build && $tree/source/configure --prefix=$prefix --enable-werror" &&
    try "make" inside sh -c "cd $tree/build && make -j2" &&
    try "make check" inside sh -c "cd $tree/build && make -j2 -k check || { find . -name test-suite.log | xargs cat; exit 1; }"
if [ $failed = 0 ] || [ -f "$debian$tree/build/ompi/mca/pml/speculative/mca_pml_speculative.la" ]; then
    try "make install" inside sh -c "cd $tree/build && make install && mpicc -o $tree/hello $tree/hello.c" &&
        try "ompi_info lists the component" info &&
        try "mpirun prints nothing of its own" silent &&
        try "a site makes it the default with pml = speculative" site_default &&
        try "two ranks over shared memory" smoke speculative --mca btl self,sm &&
        try "two ranks over tcp" smoke speculative --mca btl self,tcp --mca btl_tcp_if_include lo &&
        try "two ranks over ring, software device" smoke speculative --mca btl self,ring --mca btl_ring_fabric soft &&
        try "two ranks over ring below ob1" smoke ob1 --mca btl self,ring --mca btl_ring_fabric soft &&
        try "jobs with --with-ft ulfm are declined" declines_fault_tolerance
    if try "programs of test/mpi compile" build_programs; then
        each_program "2 3" "sm,self" "$messages"
        each_program 2 "sm,self" "$messages" --mca pml_speculative_blocking_copy fragments
        each_program 2 "tcp,self" "pt2pt completion random $interrupted"
        each_program 2 "sm,self" "pt2pt completion random $interrupted" --mca common_overlap_progress on
        each_program 2 "ring,self" progress --mca common_overlap_progress on --mca btl_ring_fabric soft
        # Windows of osc/rdma, which calls BTLs outside the progress lock.
        each_program 2 "tcp,self sm,self" "onesided foreign_windows" --mca common_overlap_progress on --mca osc rdma,sm
        each_program 2 "tcp,self sm,self" foreign_windows --mca common_overlap_progress on --mca osc_newrma_priority 0
        # osc/newrma is not asked for: it takes the windows by its priority. rma_errors and the non-blocking ones fail on others.
        each_program "2 3" "sm,self tcp,self" "$(names_of rma | grep -v sandboxed)"
        each_program "2 3" "sm,self" rma_sandboxed
        each_program 2 "sm,self" rma_progress --mca common_overlap_progress on
        mpix_log=$debian/tmp/overlap-mpix.log
        mpix >"$mpix_log" 2>&1 || failed=1
        sed -n 's/^\(PASS\|FAIL\|SKIP\) mpi: /\1 openmpi5: /p' "$mpix_log"
        ! grep -q '^FAIL' "$mpix_log" || cat "$mpix_log" >&2
        each_program "2 3" "sm,self tcp,self" "$(names_of coll | grep -v spawn)" --mca coll_mq_priority 100
        each_program 2 "sm,self" coll_progress --mca coll_mq_priority 100 --mca common_overlap_progress on
        each_program 2 "sm,tcp,self" coll_spawn --mca coll_mq_priority 100
        if try "sessions compile" session_programs; then
            for ranks in 2 3; do
                for list in sm,self tcp,self; do
                    try "sessions $list np $ranks" sessions $ranks --mca btl $list
                done
                try "sessions ring,self np $ranks" sessions $ranks --mca btl ring,self --mca btl_ring_fabric soft
                try "sessions sm,self np $ranks, coll/mq" sessions $ranks --mca btl sm,self --mca coll_mq_priority 100
            done
        fi
        try "nothing is left in /dev/shm" nothing_left
    fi
fi
exit $failed
