# What the jobs in the guests share. PASS and FAIL lines go to /out/results, everything else to the log.
# SPDX-License-Identifier: BSD-3-Clause

pass() { echo "PASS vm: $*" | tee -a /out/results; }
fail() { echo "FAIL vm: $*" | tee -a /out/results; }

# run NAME LIMIT_S COMMAND...: passes when the command exits with 0.
run() {
    local name=$1 limit_s=$2 begin=$SECONDS status
    shift 2
    echo "--- $name"
    timeout -k 20 "$limit_s" "$@" </dev/null
    status=$?
    echo "--- $name: exit status $status after $((SECONDS - begin)) s"
    if [ $status = 0 ]; then pass "$name"; else fail "$name"; fi
}

# says NAME PATTERN COMMAND...: passes when there is output and each line of it matches.
says() {
    local name=$1 pattern=$2 output
    shift 2
    output=$(timeout 60 "$@" 2>&1 </dev/null)
    echo "--- $name"
    echo "$output"
    # nothing else may be printed: looking for a device is quiet
    if [ -n "$output" ] && ! grep -qvE "$pattern" <<<"$output"; then pass "$name"; else fail "$name"; fi
}

load() { modprobe -d "$VM_KERNEL/kernel" -a "$@"; }
