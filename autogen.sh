#!/bin/sh
# Make the build system: list the folders that are there, then run the autotools. A component's folder may be deleted; run this again.
# SPDX-License-Identifier: BSD-3-Clause
set -e
cd "$(dirname "$0")"

generated=config/generated
mkdir -p $generated

# The order is the order of building: what is linked comes first.
folders=
for makefile in \
    test/support/Makefile.am \
    opal/mca/common/*/Makefile.am \
    ?*/mca/*/*/protocol/Makefile.am ?*/mca/*/*/sim/Makefile.am \
    opal/fabric/*/Makefile.am opal/fabric/Makefile.am \
    opal/mca/[!c]*/*/Makefile.am ompi/mca/common/*/Makefile.am ompi/mca/*/*/Makefile.am ompi/mpix/Makefile.am opal/tools/*/Makefile.am \
    test/*/Makefile.am examples/Makefile.am examples/*/Makefile.am docs/Makefile.am docs/*/Makefile.am; do
    [ -f "$makefile" ] || continue
    # It calls that component.
    case $makefile in ompi/mpix/*) [ -f ompi/mca/osc/newrma/nonblocking.h ] || continue ;; esac
    folder=${makefile%/Makefile.am}
    case " $folders " in
        *" $folder "*) ;;
        *) folders="$folders $folder" ;;
    esac
done
folders=${folders# }

{
    echo "dnl Written by autogen.sh."
    echo "m4_define([OVERLAP_FOLDERS], [$folders])dnl"
    echo "AC_CONFIG_FILES([Makefile])"
    for folder in $folders; do
        echo "AC_CONFIG_FILES([$folder/Makefile])"
    done
} > $generated/folders.m4.new
if cmp -s $generated/folders.m4.new $generated/folders.m4; then
    rm $generated/folders.m4.new
else
    mv $generated/folders.m4.new $generated/folders.m4
fi

exec autoreconf --install --warnings=all,no-portability "$@"
