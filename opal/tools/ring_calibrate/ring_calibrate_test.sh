#!/bin/sh
# ring-calibrate on the software device: every line is there and has its form; what is wrong is said in one sentence. No times.
# SPDX-License-Identifier: BSD-3-Clause
set -u
tool=./ring-calibrate
source_folder=${srcdir:-$(dirname "$0")}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

check() { # NAME COMMAND...
    name=$1
    shift
    if "$@"; then
        echo "PASS ring-calibrate: $name"
    else
        echo "FAIL ring-calibrate: $name"
        head -n 40 "$work/out" "$work/err"
        failed=1
    fi
}
run() { timeout -k 5 60 "$tool" "$@" >"$work/out" 2>"$work/err"; }
lines() { [ "$(grep -cE "$1" "$work/out")" = "$2" ]; }
# refused CODE WORDS ARGUMENTS...: exit code, one sentence with these words on stderr, nothing on stdout
refused() {
    code=$1 words=$2
    shift 2
    run "$@"
    [ $? = "$code" ] && [ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -q "^ring-calibrate: .*$words.*\.$" "$work/err"
}

check "tables: runs" run --fabric soft --quick
check "tables: no complaint" [ ! -s "$work/err" ]
check "tables: a line per size" lines '^(128|256|512) B |^[1248] KiB ' 7
check "tables: R, C and V, uses or never" lines '^[0-9]+ K?i?B +[0-9]+ ns +[0-9]+ ns +[0-9]+ ns +(never|[0-9]+) uses +(never|[0-9]+) uses$' 7
check "tables: poll times of 1 to 1024 peers" lines '^(1|2|4|8|16|32|64|128|256|512|1024)( +[0-9.]+ ns){4}$' 11
check "tables: a line for btl_ring_costs" lines '^btl_ring_costs = [1-9][0-9]*(,[0-9]+){4}$' 1

check "csv: runs" run -f soft --quick --csv
check "csv: rows only" lines '^row,ring_costs,[a-z_]+,[0-9]+,[0-9]+,[a-z_]+,(ns|uses),1(,[0-9.e+-]+){6}$' "$(wc -l <"$work/out")"
check "csv: four costs of seven sizes" lines ',(register|copy|look_up|paying),' 28
check "csv: three orders, eleven numbers of peers, in all and per peer" lines ',(sequential|circular|recent),' 66

check "help" run --help
check "help: names every option" sh -c 'for o in fabric device fraction ring-slots slot-bytes quick csv help version; do grep -q -- "--$o" "$1" || exit 1; done' - "$work/out"
check "version" run --version
check "an option that there is not" refused 2 'no option --fabrik' --fabrik soft
check "a short option that there is not" refused 2 'no option -x' -x
check "an option without its value" refused 2 '--fabric wants a value' --fabric
check "a fabric that there is not" refused 2 'there are auto, verbs and soft' --fabric ethernet
check "a number out of range" refused 2 'a number from 1 to 1000' --fraction 0 --fabric soft
check "a number that is none" refused 2 'a number from 5 to 4096' --ring-slots 10x
check "a word too many" refused 2 'what is eth0' --fabric soft eth0
check "a device for soft" refused 2 'goes with verbs' --fabric soft --device mlx5_0
check "a verbs device that there is not" refused 1 'nosuch0\|verbs\|device' --fabric verbs --device nosuch0
if [ ! -e /dev/infiniband ]; then
    check "auto without a device" refused 1 '--fabric soft measures' --fabric auto
fi
OVERLAP_SOFTDEVICE=/nowhere/overlap-softdevice
export OVERLAP_SOFTDEVICE
check "the device's program is not there" refused 1 '/nowhere/overlap-softdevice' --fabric soft
exit $failed
