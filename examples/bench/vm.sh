#!/bin/bash
# vm.sh BUILD PREFIX OUT [PAIRS]: boot a virtual machine with a Soft-RoCE device (test/vm), run vm_job.sh in it, and make tables and plots
# of it in OUT with run.py --vm. BUILD is a build folder of this tree, PREFIX its private installation. Takes 3 to 8 minutes.
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
vm=$(cd "$here/../../test/vm" && pwd) || exit 1
build=$(cd "${1:?a build folder}" && pwd) && prefix=$(cd "${2:?a private installation}" && pwd) || exit 1
mkdir -p "${3:?a folder for the results}" && out=$(cd "$3" && pwd) || exit 1
pairs=${4:-5}
command -v qemu-system-x86_64 >/dev/null || { echo "vm.sh: qemu-system-x86_64 is not installed (Debian: qemu-system-x86)" >&2; exit 1; }
sh "$here/build.sh" "$out/programs" pingpong message_rate || exit 1
sentence=$(bash "$vm/make-initrd.sh" "$build/vm" 2>"$out/make-initrd.log") || { echo "vm.sh: $sentence" >&2; exit 1; }
rm -rf "$out/guest" && mkdir -p "$out/guest"
cat >"$out/guest/job.sh" <<JOB
. /out/settings.sh
. "\$VM_SOURCE/guest/lib.sh"
load crc32_generic rdma_rxe
rdma link add rxe0 type rxe netdev eth0
load rdma_ucm
until [ -e /dev/infiniband/rdma_cm ]; do sleep 0.1; done
. "$prefix/env.sh"
sh "$here/vm_job.sh" "$out/programs" $pairs >/out/results.txt 2>&1
JOB
printf 'export VM_SOURCE=%q VM_BUILD=%q VM_PREFIX=%q VM_KERNEL=%q\n' "$vm" "$build" "$prefix" "$build/vm" >"$out/guest/settings.sh"
bash "$vm/start.sh" "$build/vm" "$out/guest" 1 "${VM_LIMIT_S:-900}"
status=$?
if ! grep -q '^fact,ended' "$out/guest/results.txt" 2>/dev/null; then
    echo "vm.sh: the guest did not get to its end (status $status); the end of its console:" >&2
    tail -n 20 "$out/guest/console" >&2
fi
"$here/run.py" --vm "$out/guest/results.txt" --out "$out"
