#!/bin/bash
# start.sh KERNEL_FOLDER OUT_FOLDER ID LIMIT_S [NETDEV]: boot one guest that runs OUT_FOLDER/job.sh; returns its exit status, 124 when
# it took longer than LIMIT_S, 125 when it did not get there within VM_BOOT_S (default 120 s; 15 s are usual). The guest sees the whole host
# read-only and OUT_FOLDER as /out. Two guests on one wire: see run.sh. VM_APPEND: more words for the kernel.
#
# Software emulation only: /dev/kvm is left alone. Two processors are the steadiest; without the tsc options reading the clock is slow.
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
kernel=$1 out=$2 id=$3 limit_s=$4 netdev=${5:-user,id=net0}
cp "$here/guest/boot.sh" "$out/boot.sh"
rm -f "$out/status" "$out/log"
timeout --foreground -k 5 "$limit_s" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m "${VM_MEMORY:-2G}" -nographic -no-reboot \
    -kernel "$kernel"/kernel/boot/vmlinuz-* -initrd "$kernel/initrd.gz" \
    -append "console=ttyS0 mitigations=off nokaslr random.trust_cpu=on panic=-1 clocksource=tsc tsc=reliable vm_id=$id ${VM_APPEND:-}" \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
    -virtfs "local,path=$out,mount_tag=out,security_model=none,multidevs=remap" \
    -netdev "$netdev" -device "virtio-net-pci,netdev=net0,mac=52:54:00:00:00:0$id,romfile=" </dev/null >"$out/console" 2>&1 &
guest=$!
for ((left_s = ${VM_BOOT_S:-120}; left_s > 0; left_s--)); do
    [ ! -e "$out/log" ] && kill -0 $guest 2>/dev/null || break
    sleep 1
done
[ -e "$out/log" ] || kill $guest 2>/dev/null
wait $guest
[ -e "$out/log" ] || exit 125
exit "$(cat "$out/status" 2>/dev/null || echo 124)"
