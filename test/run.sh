#!/bin/sh
# Run every test level and print "N passed, N failed, N skipped" as the last line. Exits 0 only if nothing failed.
#
#   OVERLAP_BUILD             folder for the builds (default: _build/test)
#   OVERLAP_TEST_LEVELS       which levels (default: "unit sanitizers install helper mpi ring coll programs slurm vm openmpi5")
#   OVERLAP_TEST_OPENMPI5=1   also build and test with Open MPI 5.0 in a Debian 13 folder (needs root and debootstrap)
#
# helper, mpi, ring, coll, programs, slurm, vm and openmpi5 are scripts test/LEVEL/run.sh; they get OVERLAP_BUILD (the build) and OVERLAP_PREFIX (its private
# installation) and print a line "PASS name", "FAIL name" or "SKIP name: reason" for each test case.
# SPDX-License-Identifier: BSD-3-Clause
set -u
source_folder=$(cd "$(dirname "$0")/.." && pwd)
cd "$source_folder" || exit 1
builds=${OVERLAP_BUILD:-$source_folder/_build/test}
levels=${OVERLAP_TEST_LEVELS:-unit sanitizers install helper mpi ring coll programs slurm vm openmpi5}
jobs=$(nproc 2>/dev/null || echo 2)
mkdir -p "$builds" || exit 1
builds=$(cd "$builds" && pwd)
# One for each level: two levels that run side by side do not write into one file.
results=$builds/results
rm -f "$results" "$results".*
: >"$results"
started=$(date +%s)

# At once, whatever a level's own lines wait for.
exec 3>&1
say() { echo "[$(($(date +%s) - started)) s] $*" >&3; }
result() { echo "$*" | tee -a "$results"; }
wanted() { case " $levels " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

finish() {
    cat "$results".* >>"$results" 2>/dev/null
    passed=$(grep -c '^PASS ' "$results")
    failed=$(grep -c '^FAIL ' "$results")
    skipped=$(grep -c '^SKIP ' "$results")
    if [ "$failed" -gt 0 ]; then
        echo
        echo "Failed:"
        grep '^FAIL ' "$results" | sort | uniq -c
    fi
    [ "$skipped" -eq 0 ] || { echo; echo "Skipped:"; grep '^SKIP ' "$results"; }
    echo
    say "done"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

# step LOG COMMAND...: run quietly; on failure show the end of the log.
step() {
    log=$1
    shift
    if "$@" >"$log" 2>&1; then return 0; fi
    echo "failed: $* (log: $log)"
    tail -n 40 "$log"
    return 1
}

# count_checks FOLDER LABEL: one line per Catch2 test case and per check script that `make check` ran below FOLDER.
count_checks() {
    found=0
    for trs in $(find "$1" -name '*.trs' | sort); do
        found=1
        log=${trs%.trs}.log
        name="$2 $(basename "${trs%.trs}")"
        outcome=$(sed -n 's/^:test-result: //p' "$trs")
        # "All tests passed (201 assertions in 37 test cases)" or "test cases: 37 | 36 passed | 1 failed [| 1 skipped]"
        good=$(sed -n 's/^All tests passed (.* in \([0-9]*\) test case.*/\1/p; s/^test cases:.*[| ]\([0-9]*\) passed.*/\1/p' "$log" | tail -n 1)
        bad=$(sed -n 's/^test cases:.*[| ]\([0-9]*\) failed.*/\1/p' "$log" | tail -n 1)
        left=$(sed -n 's/^test cases:.*[| ]\([0-9]*\) skipped.*/\1/p' "$log" | tail -n 1)
        if [ -n "$good$bad$left" ]; then
            i=0; while [ $i -lt "${good:-0}" ]; do echo "PASS $name" >>"$results"; i=$((i + 1)); done
            i=0; while [ $i -lt "${bad:-0}" ]; do echo "FAIL $name" >>"$results"; i=$((i + 1)); done
            i=0; while [ $i -lt "${left:-0}" ]; do echo "SKIP $name: by the test itself" >>"$results"; i=$((i + 1)); done
            echo "$name: ${good:-0} cases passed, ${bad:-0} failed, ${left:-0} skipped"
            # A crash after the totals, or a sanitizer's report at exit.
            [ "$outcome" = PASS ] || [ "${bad:-0}" -gt 0 ] || result "FAIL $name (exit status)"
        else
            case $outcome in
                PASS) result "PASS $name" ;;
                SKIP) result "SKIP $name: $(sed -n 1p "$log")" ;;
                *) result "FAIL $name" ;;
            esac
        fi
        [ "$outcome" = PASS ] || [ "$outcome" = SKIP ] || tail -n 60 "$log"
    done
    [ $found = 1 ] || result "FAIL $2 (make check ran nothing)"
}

# run_checks FOLDER LABEL CXXFLAGS [PATTERN]: `make check` of the build in FOLDER, all its folders side by side (make alone takes one after the
# other), but for those that match.
# The flags are those of the tests; what they test, and the simulator, keep the flags of the build. Catch2 is compiled once for all tests, where
# the compiler can.
run_checks() {
    flags=$3
    first=$1/test/support/first.hpp
    find "$1" -name '*.trs' -exec rm -f {} +
    # Those with the longest tests first. Catch2's main is what they share.
    folders=$(cd "$1" && find . -name Makefile -exec grep -l '^check-TESTS:' {} + | sed 's,/Makefile$,,' | grep -vE "^\./docs$|${4:-^$}" | sort -r |
        awk '/(coll\/mq|newrma|speculative)\/protocol|ompi\/mca\/common\/overlap$/ { print; next } { rest = rest $0 "\n" } END { printf "%s", rest }')
    {
        make -C "$1/test/support" -j"$jobs" check-am
        # It has no use for Catch2.
        make -C "$1/docs" check-am
        [ -f "$first" ] || echo '#include "test/support/catch.hpp"' >"$first"
        echo 'first.hpp.gch: first.hpp $(top_srcdir)/test/support/catch.hpp; $(CXXCOMPILE) -x c++-header first.hpp -o $@' |
            make -C "$1/test/support" -f Makefile -f - first.hpp.gch CXXFLAGS="$flags" && flags="$flags -include $first"
        # It has no test under TSan.
        [ "$2" = thread ] || make -C "$1/test/sim" -j"$jobs" libsim.la
        printf '%s\n' '.PHONY: all $(folders)' 'all: $(folders)' '$(folders):; +@$(MAKE) -C $@ check-am CXXFLAGS="$(flags)"' |
            make -C "$1" -k -j"$jobs" -f - all folders="$(echo $folders)" flags="$flags"
    } >"$1-check.log" 2>&1
    status=$?
    [ $status -eq 0 ] || grep -E '(error|Error) ' "$1-check.log" | head -n 20
    count_checks "$1" "$2"
    # A program that does not compile has no result of its own.
    [ $status -eq 0 ] || grep -q "^FAIL $2 " "$results" || result "FAIL $2 (make check, see $1-check.log)"
}

# run_script LEVEL LIMIT_S: test/LEVEL/run.sh, its lines copied.
run_script() {
    script=test/$1/run.sh
    if [ ! -f $script ]; then
        result "SKIP $1: there is no $script"
        return
    fi
    say "$1: $script"
    began=$(date +%s)
    OVERLAP_BUILD=$build OVERLAP_PREFIX=$prefix timeout -k 10 "$2" sh $script >"$builds/$1.out" 2>"$builds/$1.err"
    status=$?
    say "$1: took $(($(date +%s) - began)) s"
    grep -E '^(PASS|FAIL|SKIP) ' "$builds/$1.out" | tee -a "$results"
    grep -qE '^(PASS|FAIL|SKIP) ' "$builds/$1.out" || [ $status -ne 0 ] || result "FAIL $1 (printed no result)"
    if [ $status -ne 0 ]; then
        grep -q '^FAIL ' "$builds/$1.out" || result "FAIL $1 (exit status $status; 124 is the time limit of $2 s)"
        echo "end of $builds/$1.out and .err:"
        tail -n 30 "$builds/$1.out" "$builds/$1.err"
    fi
}

# Everything that a level needs, before configure looks for it.
say "packages"
groups="build unit"
! wanted mpi || groups="$groups nodes"
! wanted programs || groups="$groups programs"
! wanted slurm || groups="$groups nodes slurm"
! wanted vm || groups="$groups vm"
if ! sh test/support/install-packages $groups; then
    # Without these nothing can be built; a level that misses its own says so.
    sh test/support/install-packages build unit || { result "FAIL packages are missing"; finish; }
fi

# A tree that was configured in place cannot be built from elsewhere: use a copy without its products.
if [ -f config.status ]; then
    say "the source tree is configured: building from a copy"
    mkdir -p "$builds/source"
    tar -cf - --exclude=./_build --exclude=./_install --exclude=./.git --exclude=./config.status --exclude=./config/autoconf.h \
        --exclude=./config/overlap_config.h --exclude=./env.sh --exclude=./modulefile --exclude=Makefile --exclude='*.o' --exclude='*.lo' \
        --exclude='*.la' --exclude=.libs --exclude=.deps --exclude='*.trs' --exclude='*.log' . | tar -xf - -C "$builds/source"
    configured_from=$builds/source
else
    configured_from=$source_folder
fi
say "autogen.sh"
step "$builds/autogen.log" "$configured_from/autogen.sh" || { result "FAIL autogen.sh"; finish; }

# build_in FOLDER CONFIGURE_OPTION...: configure (when never done, or with other options or packages) and make.
packages_state=$(sh test/support/install-packages --state $groups)
# The library's headers are compiled once, where the compiler can; that each file names what it uses is seen by the builds of install.
build_in() {
    mkdir -p "$1"
    (
        cd "$1" || exit 1
        shift
        state="$* $packages_state"
        if [ ! -f config.status ] || [ "$(cat configured_for 2>/dev/null)" != "$state" ] || [ "$configured_from/configure" -nt config.status ]; then
            rm -rf test/support/*.gch
            "$configured_from/configure" "$@" && echo "$state" >configured_for
        fi || exit 1
        for flags in "$@"; do case $flags in CXXFLAGS=*) flags=${flags#CXXFLAGS=}; break ;; esac; done
        first=$PWD/test/support/library.hpp
        compiled_once "$first" "$flags" algorithm array atomic cstdint cstdio cstring deque functional map memory optional span stdexcept string \
            unordered_map vector && flags="$flags -include $first"
        make -j"$jobs" CXXFLAGS="$flags" OVERLAP_FOLDERS="$(folders_but "${left_out:-^$}")"
    )
}

# folders_but PATTERN: the build's folders in their order, without those that match
folders_but() { sed -n 's/^OVERLAP_FOLDERS = //p' Makefile | tr -s ' ' '\n' | grep -vE "$1" | tr '\n' ' '; }

# compiled_once FILE FLAGS HEADER...: a header in test/support that includes these, and its compiled forms for code of programs and of modules.
# Other compilers than GCC's stop where a form does not fit a file's flags.
compiled_once() {
    "${CXX:-g++}" --version | grep -q 'Free Software Foundation' || return 1
    file=$1 once=$2
    shift 2
    printf '#include <%s>\n' "$@" >"$file.new"
    if cmp -s "$file.new" "$file"; then rm "$file.new"; else mv "$file.new" "$file"; rm -rf "$file.gch"; fi
    mkdir -p "$file.gch"
    printf '%s\n' "each = \$(CXXCOMPILE) -x c++-header $file" "all: $file.gch/program $file.gch/module" \
        "$file.gch/program:; \$(each) -o \$@" "$file.gch/module:; \$(each) -fPIC -DPIC -o \$@" |
        make -C "$(dirname "$file")" -j"$jobs" -f Makefile -f - "$file.gch/program" "$file.gch/module" CXXFLAGS="$once"
}

build=$builds/build
prefix=$builds/prefix
# The code of a build by hand; line tables are all that its debug information is needed for, and take a third of the time to compile.
say "build"
step "$builds/build.log" build_in "$build" --prefix="$prefix" CXXFLAGS="-O3 -g1" || { result "FAIL build"; finish; }
result "PASS build"
say "install into $prefix"
rm -rf "$prefix"
step "$builds/install.log" make -C "$build" install || { result "FAIL install"; finish; }

# What uses processors alone takes what the programs leave idle that wait for each other: a rank that gives way to a process of the lowest
# priority only waits for its slice. As a lane.
checks() (
    shell=$(exec sh -c 'echo $PPID')
    chrt --idle -p 0 "$shell" 2>/dev/null || renice -n 19 -p "$shell" >/dev/null
    results=$builds/results.checks
    if wanted unit; then
        say "unit tests and simulation: make check"
        # Under AddressSanitizer the tests of these run as well, and no fewer of them.
        twice=
        ! wanted sanitizers || twice='/opal/fabric|/(newrma|speculative)/protocol$'
        run_checks "$build" unit "-O1 -g1" "$twice"
        say "unit tests and simulation: done"
    fi
    : >"$results.unit_ended"
    # What has been compiled this time. A build with --enable-werror, as with Open MPI 5.0, stops there.
    if grep -hE "^$configured_from/.*: warning: " "$builds/build.log" "$build-check.log" 2>/dev/null | sort -u | grep . >&2; then
        result "FAIL build: the compiler warns"
    else
        result "PASS build: no warnings"
    fi
    ! wanted sanitizers || sanitizers
    : >"$results.ended"
)

sanitizers() {
    for sanitizer in address,undefined thread; do
        say "sanitizer $sanitizer: what needs no Open MPI"
        folder=$builds/$(echo $sanitizer | tr , -)
        # UBSan makes so much code of each assertion that the tests take twice as long to compile with -O1.
        level=-O0 left_out=
        # One thread in all that these have: nothing for TSan to see.
        [ $sanitizer != thread ] || { level=-O1 left_out='/coll/|/mpix|/pml/|/osc/newrma$|^(examples|docs)|test/(build|sim|vm)'; }
        if step "$folder.log" build_in "$folder" --without-openmpi --enable-sanitizer=$sanitizer CXXFLAGS="-O1 -g1" --disable-dependency-tracking; then
            run_checks "$folder" $sanitizer "$level -g1" "$left_out"
        else
            result "FAIL $sanitizer build"
        fi
        say "sanitizer $sanitizer: done"
    done
}

# lane LEVEL:LIMIT_S...: one after the other; what they print, and their results, in files of their own. In a shell of its own: the run's
# results are still those of the others.
lane() (
    for each in "$@"; do
        wanted "${each%:*}" || continue
        results=$builds/results.${each%:*}
        rm -f "$results.ended"
        run_script "${each%:*}" "${each#*:}"
        : >"$results.ended"
    done >"$builds/lane.${1%:*}" 2>&1
)

! wanted helper || run_script helper 300
# Programs that wait for each other leave cores idle, so two levels at a time, and the checks beside them.
say "mpi, ring, coll, programs, slurm, install: two at a time"
checks >"$builds/lane.checks" 2>&1 &
checks=$!
lane mpi:2700 &
mpi=$!
lane ring:1200 coll:900 programs:900 slurm:600 install:900
wait $mpi
cat "$builds/lane.mpi" "$builds/lane.ring"
# The guests have the host's processors to themselves, but for the sanitizers. The level makes programs in the folder of the unit tests.
while ! [ -e "$results.checks.unit_ended" ] && kill -0 $checks 2>/dev/null; do sleep 1; done
! wanted vm || run_script vm 2400
wait $checks
cat "$builds/lane.checks"
for each in checks mpi ring coll programs slurm install; do
    # A lane that was killed says nothing.
    if { [ $each = checks ] || wanted $each; } && ! [ -e "$results.$each.ended" ]; then result "FAIL $each (it has not ended)"; fi
done
if wanted openmpi5; then
    if [ "${OVERLAP_TEST_OPENMPI5:-0}" = 1 ]; then
        run_script openmpi5 2700
    else
        result "SKIP openmpi5: set OVERLAP_TEST_OPENMPI5=1 to build and test with Open MPI 5.0 (Debian 13 folder, root)"
    fi
fi
finish
