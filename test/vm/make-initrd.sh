#!/bin/sh
# make-initrd.sh FOLDER: put Debian's kernel into FOLDER/kernel and an initial RAM disk into FOLDER/initrd.gz. What is there is kept.
# The RAM disk has only what mounting the host's root takes; the guest loads all other modules from FOLDER/kernel.
# Prints one sentence and exits 1 when something is missing.
# SPDX-License-Identifier: BSD-3-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
mkdir -p "$folder" && cd "$folder" || exit 1
give_up() { echo "$*"; exit 1; }

for tool in busybox cpio modprobe depmod apt-get dpkg; do
    command -v $tool >/dev/null || give_up "$tool is not installed"
done

if [ ! -f kernel/complete ]; then
    rm -rf kernel download && mkdir download || exit 1
    # The metapackage names the kernel that is current.
    image=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-/ {print $2; exit}')
    [ -n "$image" ] || give_up "apt knows no linux-image-amd64 (apt-get update?)"
    (cd download && timeout 180 apt-get -qq -o APT::Sandbox::User=root download "$image") >download.log 2>&1 || give_up "$image cannot be downloaded"
    dpkg -x download/"$image"_*.deb kernel || give_up "$image cannot be unpacked"
    release=$(ls kernel/lib/modules)
    depmod -b kernel "$release" || give_up "depmod failed"
    rm -rf download && touch kernel/complete
fi
release=$(ls kernel/lib/modules)

if [ ! initrd.gz -nt "$here/guest/init" ] || [ ! initrd.gz -nt kernel/complete ]; then
    root=root.$$
    mkdir -p $root/bin $root/dev $root/proc $root/sys $root/modules || exit 1
    cp "$(command -v busybox)" $root/bin/busybox && cp "$here/guest/init" $root/init && chmod +x $root/init || exit 1
    for module in virtio_pci virtio_net 9p 9pnet_virtio overlay; do
        modprobe -d "$PWD/kernel" -S "$release" --show-depends $module | sed -n 's/^insmod \([^ ]*\).*/\1/p'
    done | awk '!seen[$0]++' >modules.list
    while read -r file; do
        cp "$file" $root/modules/ && basename "$file" >>$root/modules/order
    done <modules.list
    (cd $root && find . | cpio -o -H newc --quiet | gzip -1) >initrd.new && mv initrd.new initrd.gz || exit 1
    rm -rf $root
fi
