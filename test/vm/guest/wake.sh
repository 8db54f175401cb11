# Job of the guest for the kernel module ompi_wake. The kernel checks the module's memory (slub_debug) and logs what is wrong.
# SPDX-License-Identifier: BSD-3-Clause
. /out/settings.sh
. "$VM_SOURCE/guest/lib.sh"
check=$VM_BUILD/test/vm/wake_check

# loaded: is the module there?
loaded() { [ -e /sys/module/ompi_wake ]; }
unload() { modprobe -d "$VM_KERNEL/kernel" -r ompi_wake; }
# clean NAME: has the kernel found a fault since it started?
clean() {
    dmesg >/run/dmesg
    echo "--- $1"
    if grep -E 'BUG|WARNING|Oops|INFO: |UBSAN|general protection|refcount_t|page fault|objects remaining|Call Trace' /run/dmesg; then fail "$1"; else pass "$1"; fi
}

run "ompi_wake: no device" 20 $check absent
load ompi_wake || fail "ompi_wake: modprobe"
run "ompi_wake: a device for root alone" 20 $check forbidden
# What the udev rule does on a site.
chmod "$(sed -n 's/^SUBSYSTEM.*MODE="\(0[0-7]*\)".*/\1/p' "$VM_SOURCE/../../kernel/60-ompi_wake.rules")" /dev/ompi_wake
for scenario in one early nonblocking poll signals inherited killed fdinfo class spaces taken arguments pointers limits; do
    run "ompi_wake: $scenario" 60 $check $scenario
done
for scenario in stress hammer ring shared churn fuzz; do run "ompi_wake: $scenario" 120 $check $scenario; done
clean "ompi_wake: the kernel's log after the load"

# Unloading: refused while a process sleeps, whatever goes on beside it; else at once, and nothing is left.
$check hold &
holder=$!
until ls -l /proc/$holder/fd | grep -q /dev/ompi_wake; do sleep 0.1; done
$check churn 4 &
churn=$!
refused=0
while kill -0 $churn 2>/dev/null; do
    unload 2>/dev/null && break
    refused=$((refused + 1))
done
wait $churn || fail "ompi_wake: churn beside modprobe -r"
echo "modprobe -r was refused $refused times"
if loaded && [ $refused -gt 0 ]; then pass "ompi_wake: modprobe -r beside a sleeper"; else fail "ompi_wake: modprobe -r beside a sleeper"; fi
kill -9 $holder
wait $holder
if unload && ! loaded && [ ! -e /dev/ompi_wake ]; then pass "ompi_wake: modprobe -r"; else fail "ompi_wake: modprobe -r"; fi

# Loaded and unloaded while processes try to use it: each gets it or finds no device.
(until [ -e /run/enough ]; do
    $check early >/dev/null 2>&1
done) &
user=$!
rounds=0
for ((try = 0; try < 300 && rounds < 6; try++)); do
    load ompi_wake && unload 2>/dev/null && rounds=$((rounds + 1))
done
touch /run/enough
wait $user
echo "loaded and unloaded $rounds times"
! loaded || unload
if [ $rounds = 6 ] && ! loaded; then pass "ompi_wake: load and unload"; else fail "ompi_wake: load and unload"; fi
clean "ompi_wake: the kernel's log after modprobe -r"

load ompi_wake
$check latency || fail "ompi_wake: latency"
echo "--- dmesg"
tail -n 30 /run/dmesg
