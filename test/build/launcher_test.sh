# What config/mpirun.in hands to Open MPI's launcher, for which a script stands that prints its arguments. Needs SOURCE.
# SPDX-License-Identifier: BSD-3-Clause
set -u
folder=$PWD/launcher.tmp
rm -rf "$folder"
mkdir -p "$folder/openmpi" "$folder/with suffix" || exit 99
trap 'rm -rf "$folder"' EXIT
faults=0
checked=0
unset OMPI_MCA_mca_base_component_path

# launchers FOLDER SUFFIX: stand-ins there, and ours before them.
launchers() {
    for name in mpirun mpiexec; do
        printf '#!/bin/sh\nprintf "%%s" "${0##*/}"\nfor each; do printf " [%%s]" "$each"; done\n' >"$folder/$1/$name$2"
        chmod +x "$folder/$1/$name$2"
    done
    sed -e "s,@OVERLAP_LAUNCHERS@,$folder/$1,g; s,@OVERLAP_PREFIX@,/prefix,g" "$SOURCE/config/mpirun.in" >"$folder/mpirun"
    chmod +x "$folder/mpirun"
    for name in mpiexec a_link; do ln -sf mpirun "$folder/$name"; done
}
# said WHAT EXPECTED NAME ARGUMENTS...
said() {
    what=$1 expected=$2 name=$3
    shift 3
    checked=$((checked + 1))
    got=$("$folder/$name" "$@")
    [ "$got" = "$expected" ] && return
    echo "$what: printed $got"
    echo "  instead of $expected"
    faults=$((faults + 1))
}

ours='[--mca] [mca_base_component_path] [/prefix/lib/openmpi:SYSTEM_DEFAULT:USER_DEFAULT] [--pmixmca] [mca_base_component_path] []'
launchers openmpi ''
said "the path comes first" "mpirun $ours [-n] [2] [./a b] [] [*]" mpirun -n 2 './a b' '' '*'
said "the other name" "mpiexec $ours" mpiexec
said "by a link of any name" "mpirun $ours [--version]" a_link --version
said "who names the path says all of it" "mpirun [--mca] [mca_base_component_path] [/x] [./a]" mpirun --mca mca_base_component_path /x ./a
said "with one hyphen" "mpirun [-mca] [mca_base_component_path] [/x] [./a]" mpirun -mca mca_base_component_path /x ./a
said "an argument of the program" "mpirun $ours [./a] [mca_base_component_path]" mpirun ./a mca_base_component_path
export OMPI_MCA_mca_base_component_path=/mine
said "the environment's path" "mpirun [--mca] [mca_base_component_path] [/mine] [--pmixmca] [mca_base_component_path] [] [./a]" mpirun ./a
unset OMPI_MCA_mca_base_component_path
launchers "with suffix" .openmpi
said "Debian's names" "mpirun.openmpi $ours [./a]" mpirun ./a

echo "$checked calls checked, $faults faults"
[ $faults -eq 0 ]
