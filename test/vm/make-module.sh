#!/bin/sh
# make-module.sh FOLDER: build kernel/ompi_wake.ko for the kernel that make-initrd.sh put into FOLDER/kernel, and put it among that kernel's
# modules. Debian's headers are unpacked into FOLDER/headers; nothing is installed. What is there is kept while its sources are older.
# Prints one sentence and exits 1 when something is missing, 2 when the module does not build.
# SPDX-License-Identifier: BSD-3-Clause
set -u
source=$(cd "$(dirname "$0")/../../kernel" && pwd) || exit 1
folder=$1
cd "$folder" || exit 1
give_up() { echo "$*"; exit 1; }

release=$(ls kernel/lib/modules)
headers=$folder/headers/usr/src/linux-headers-$release
if [ ! -f headers/complete ] || [ ! -d "$headers" ]; then
    rm -rf headers download && mkdir headers download || exit 1
    # The packages that the one for this kernel needs, and the compiler that built it, which is left to the host.
    packages=$(apt-cache depends "linux-headers-$release" 2>/dev/null | awk '/Depends: linux-(headers|kbuild)-/ {print $2}')
    [ -n "$packages" ] || give_up "apt knows no linux-headers-$release"
    # shellcheck disable=SC2086
    (cd download && timeout 180 apt-get -qq -o APT::Sandbox::User=root download "linux-headers-$release" $packages) >download.log 2>&1 ||
        give_up "linux-headers-$release cannot be downloaded"
    for package in download/*.deb; do dpkg -x "$package" headers || give_up "$package cannot be unpacked"; done
    # They name each other by where they are installed.
    sed -i "s| /usr/src/| $folder/headers/usr/src/|" "$headers/Makefile" && rm -rf download && touch headers/complete || exit 1
fi
compiler=$(sed -n 's/^CC = .*CROSS_COMPILE)//p' "$headers/.kernelvariables")
command -v "$compiler" >/dev/null || give_up "$compiler, which built the kernel, is not installed"

modules=kernel/lib/modules/$release/updates
newer=$(find "$source" -type f -newer "$modules/ompi_wake.ko" 2>&1)
if [ -n "$newer" ] || [ ! "$modules/ompi_wake.ko" -nt headers/complete ]; then
    # The kernel's make builds beside the sources; debug information for BPF would need pahole.
    rm -rf module && cp -r "$source" module && make -C module KDIR="$headers" W=1 CONFIG_DEBUG_INFO_BTF_MODULES= >module.log 2>&1 || { echo "kernel/ does not build"; cat module.log; exit 2; }
    ! grep -i 'warning' module.log || { echo "kernel/ builds with warnings"; exit 2; }
    mkdir -p "$modules" && cp module/ompi_wake.ko "$modules/" && depmod -b kernel "$release" || exit 1
fi
