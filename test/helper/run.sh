#!/bin/sh
# The helper of a node, ompi-progressd, with processes that are no MPI programs: service, faults, users, what is left behind.
#
#   OVERLAP_BUILD    a build
#   OVERLAP_PREFIX   its private installation
#
# One line PASS, FAIL or SKIP per case.
# SPDX-License-Identifier: BSD-3-Clause
set -u
build=${OVERLAP_BUILD:?a build folder}
prefix=${OVERLAP_PREFIX:?a private installation}
if [ ! -x "$prefix/bin/ompi-progressd" ]; then
    echo "SKIP helper: ompi-progressd was not built (libhwloc-dev libcli11-dev nlohmann-json3-dev)"
    exit 0
fi
make -C "$build/opal/tools/progressd" fake_client >/dev/null || { echo "FAIL helper: fake_client was not built"; exit 1; }
fake=$build/opal/tools/progressd/fake_client
[ ! -x "$build/opal/tools/progressd/.libs/fake_client" ] || fake=$build/opal/tools/progressd/.libs/fake_client
# Another user may not see the build or the installation.
work=$(mktemp -d) || exit 1
chmod 755 "$work"
cp "$fake" "$prefix/bin/ompi-progressd" "$work/" || exit 1
fake=$work/fake_client
progressd=$work/ompi-progressd
# Not the user's own helper.
name=test-$$
failed=0
clients=
before=$(ls /dev/shm /tmp 2>/dev/null | grep -i progressd)

helper() { "$progressd" --name "$name" "$@"; }
cleanup() {
    for each in $clients; do kill -9 "$each" 2>/dev/null; done
    clients=
    helper --stop >/dev/null 2>&1
}
trap 'cleanup; rm -rf "$work"' EXIT
try() {
    what=$1
    shift
    # In this shell: what it starts, cleanup ends.
    if "$@" >"$work/output" 2>&1; then
        echo "PASS helper: $what"
    else
        echo "FAIL helper: $what"
        tail -n 20 "$work/output" >&2
        failed=1
    fi
    cleanup >/dev/null 2>&1
}
# eventually COMMAND...: until it succeeds, for ten seconds at most.
eventually() {
    attempt=0
    until "$@"; do
        attempt=$((attempt + 1))
        [ $attempt -lt 200 ] || { echo "not within ten seconds: $*"; return 1; }
        sleep 0.05
    done
}
# receiver NUMBER [COMMAND...]: start one; what it prints goes to $work/receiver.NUMBER
receiver() {
    said=$work/receiver.$1
    : >"$said"
    shift
    "$@" "$fake" receive "$name" >"$said" 2>&1 &
    pid=$!
    clients="$clients $pid"
    eventually grep -q '^address' "$said"
}
send() { "$fake" send "$(sed -n 's/^address //p' "$said" | head -n 1)"; }
sends() { [ "$(send)" = "$1" ]; }
said_times() { [ "$(grep -c "^$1\$" "$said")" -ge "$2" ]; }
field() { helper --status --json | tr -d '\n' | sed -n "s/.*\"$1\": *\"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p"; }
is() { [ "$(field "$1")" = "$2" ]; }
running() { kill -0 "$1" 2>/dev/null && [ "$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null)" != Z ]; }
not_running() { ! running "$1"; }
no_helper() { ! helper --status >/dev/null 2>&1; }
watched() { helper --status | grep -q ' yes '; }

command_line() {
    helper --help | grep -q -- --share-core || return 1
    helper --version | grep -q '^ompi-progressd [0-9]' || return 1
    for wrong in --nonsense "--helpers 0" "--bind x" "--status --stop" "--json" "--bind 65000"; do
        # shellcheck disable=SC2086
        helper $wrong 2>"$work/said"
        [ $? -eq 2 ] && [ "$(wc -l <"$work/said")" = 1 ] && grep -q -- '--help lists the options' "$work/said" || { cat "$work/said"; return 1; }
    done
    for command in --status --on --off --stop; do
        helper $command 2>"$work/said"
        [ $? -eq 1 ] && grep -q 'start one with' "$work/said" || { cat "$work/said"; return 1; }
    done
}
try "the command line" command_line

starts() {
    helper --share-core || return 1
    process=$(field process)
    [ -n "$process" ] && running "$process" || return 1
    helper 2>"$work/said" || return 1
    cat "$work/said"
    grep -q "process $process" "$work/said" && grep -q -- --stop "$work/said" || return 1
    [ -z "$(find "/proc/$process/fd" -lname "$work/*")" ] || { ls -l "/proc/$process/fd"; return 1; }
    helper --stop && eventually not_running "$process" && no_helper
}
try "one per user: a second start says so" starts

status() {
    helper --share-core && receiver 1 || return 1
    helper --status
    helper --status | grep -q "^$pid " || return 1
    if command -v python3 >/dev/null; then helper --status --json | python3 -c 'import json, sys; assert len(json.load(sys.stdin)["clients"]) == 1'; fi
}
try "status as text and as JSON" status

ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
# A client is connected and waits for nothing; then nobody is.
idle() {
    helper --share-core && receiver 1 || return 1
    kill -STOP "$pid"
    process=$(field process)
    eventually is state sleeping || return 1
    first=$(ticks "$process")
    sleep 10
    second=$(ticks "$process")
    echo "ticks of processor time in 10 s: $((second - first))"
    [ $((second - first)) -le 1 ]
}
try "no processor time while nothing comes" idle

wakes() {
    helper --share-core --spin-ms 10000 && receiver 1 && eventually watched || return 1
    for i in 1 2 3; do
        eventually sends 'handed on' && eventually said_times rung $i && eventually watched || return 1
    done
    helper --status
    [ "$(field wakes)" -ge 3 ]
}
try "what is left for a client wakes it" wakes

switch() {
    helper --share-core --spin-ms 10000 && receiver 1 && eventually watched || return 1
    helper --off && is state off && ! watched || return 1
    sends rang && eventually said_times rung 1 || return 1
    helper --on && eventually watched && eventually sends 'handed on' && eventually said_times rung 2
}
try "off and on" switch

killed() {
    helper --share-core --spin-ms 10000 && receiver 1 && eventually watched || return 1
    kill -9 "$(field process)"
    eventually said_times gone 1 && eventually sends rang && eventually said_times rung 1 || return 1
    # Another one can start at once.
    helper --share-core && receiver 2 && said_times served 1
}
try "a helper that is killed" killed

frozen() {
    helper --share-core --spin-ms 10000 && receiver 1 && eventually watched || return 1
    process=$(field process)
    kill -STOP "$process"
    # What it had been left just before waits for it; later senders ring themselves.
    eventually sends rang && eventually said_times rung 1 || { kill -CONT "$process"; return 1; }
    timeout 20 "$progressd" --name "$name" --status 2>"$work/said"
    code=$?
    kill -CONT "$process"
    cat "$work/said"
    [ $code = 1 ] && grep -q 'kill -CONT' "$work/said" && eventually watched && eventually sends 'handed on'
}
try "a helper that is stopped and continued" frozen

client_killed() {
    helper --share-core && receiver 1 || return 1
    first=$pid
    receiver 2 && kill -9 "$first" || return 1
    gone() { ! helper --status | grep -q "^$first "; }
    eventually gone && helper --status | grep -q "^$pid "
}
try "a client that is killed" client_killed

idle_exit() {
    helper --share-core --exit-when-idle && receiver 1 || return 1
    process=$(field process)
    helper --status | grep -q 'ends with its last client' || return 1
    kill "$pid"
    eventually not_running "$process"
}
try "it ends with its last client" idle_exit

# By the first process that needs it; several at once start one.
started() {
    for i in 1 2 3; do
        "$fake" start "$progressd" "$name" >"$work/start.$i" &
        clients="$clients $!"
    done
    for i in 1 2 3; do eventually grep -q runs "$work/start.$i" || return 1; done
    process=$(field process)
    helper --status | grep -q 'ends with its last client' || return 1
    receiver 1 && kill "$pid" && eventually not_running "$process"
}
try "a client starts it" started

terminated() {
    "$progressd" --name "$name" --share-core --foreground &
    process=$!
    clients="$clients $process"
    eventually is process $process && receiver 1 || return 1
    kill "$process"
    wait "$process" && eventually said_times gone 1
}
try "SIGTERM ends it cleanly" terminated

bound() {
    processor=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
    [ "$(nproc)" -gt 1 ] || return 0
    helper --bind "$processor" && receiver 1 taskset -c "$processor" || return 1
    helper --status
    helper --status | grep -q "resting: processor $processor .*--share-core" && is state off || return 1
    sends rang || return 1
    helper --stop
    helper --bind "$processor" --share-core && receiver 2 taskset -c "$processor" && ! is state off
}
try "it does not sit where a client is bound" bound

garbage() {
    helper --share-core --spin-ms 10000 && receiver 1 && eventually watched || return 1
    process=$(field process)
    "$fake" garbage "$name" 3000 &
    first=$!
    "$fake" garbage "$name" 3000 &
    clients="$clients $first $!"
    "$fake" flood "$name" 3000 || return 1
    wait "$first"
    running "$process" || return 1
    receiver 2 && said_times served 1 && eventually watched && eventually sends 'handed on' && eventually said_times rung 1
}
try "garbage and floods" garbage

if [ "$(id -u)" = 0 ] && id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null; then
    as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
    users() {
        helper --share-core && receiver 1 || return 1
        as_nobody "$progressd" --name "$name" --status && return 1
        as_nobody "$progressd" --name "$name" --stop && return 1
        as_nobody "$progressd" --name "$name" --share-core || return 1
        as_nobody "$progressd" --name "$name" --status | grep -q 'no clients' || return 1
        helper --status | grep -q "^$pid " || return 1
        as_nobody "$progressd" --name "$name" --stop
    }
    try "two users have two helpers" users
    squat() {
        # Not through the function: its process is the one to end.
        setpriv --reuid=65534 --regid=65534 --clear-groups "$fake" squat 0 "$name" >"$work/squatter" &
        clients="$clients $!"
        eventually grep -q taken "$work/squatter" || return 1
        helper 2>"$work/said"
        code=$?
        cat "$work/said"
        [ $code = 1 ] && grep -q 'of another user' "$work/said" || return 1
        helper --status 2>"$work/said" && return 1
        grep -q 'of another user' "$work/said" || return 1
        receiver 1 && said_times refused 1
    }
    try "a name that another user has taken" squat
else
    echo "SKIP helper: two users: needs root and setpriv"
fi

left() {
    eventually no_helper || return 1
    after=$(ls /dev/shm /tmp 2>/dev/null | grep -i progressd)
    [ "$before" = "$after" ] || { echo "left: $after"; return 1; }
    ! ps -ef | grep -v grep | grep -e "--name $name" -e "$work/"
}
try "nothing is left behind" left
exit $failed
