# Who includes what: protocol/ only the C++ standard library, itself, and ompi/mca/common/overlap/protocol, which all share; glue and common
# Open MPI through the two openmpi.hpp only,
# the one for its lower layer (opal/) and the one that adds the upper (ompi/); only these ask for Open MPI's version; and opal/ includes
# nothing of ompi/. Needs SOURCE.
# SPDX-License-Identifier: BSD-3-Clause
set -u
cd "$SOURCE" || exit 99
faults=0

complain() {
    echo "$1:$2: $3"
    faults=$((faults + 1))
}

# The rooms' standard library: no clock, no threads, no locks, no files.
standard='algorithm|any|array|bit|bitset|cassert|charconv|cinttypes|climits|cmath|compare|concepts|cstddef|cstdint|cstdio|cstdlib|cstring|deque|exception|forward_list|functional|initializer_list|iosfwd|iterator|limits|list|map|memory|new|numbers|numeric|optional|ostream|queue|ranges|ratio|set|span|sstream|stack|stdexcept|string|string_view|tuple|type_traits|typeinfo|unordered_map|unordered_set|utility|variant|vector|version'

# ours NAME FILE: is NAME a file of this tree, seen from the top or beside FILE?
ours() {
    case $1 in
        opal/mca/common/overlap/openmpi/*) return 1 ;;
        config/overlap_config.h) return 0 ;;
    esac
    [ -f "$1" ] || [ -f "${2%/*}/$1" ]
}

lower_door=opal/mca/common/overlap/openmpi.hpp
upper_door=ompi/mca/common/overlap/openmpi.hpp
# door FILE: is it one of the two?
door() { [ "$1" = $lower_door ] || [ "$1" = $upper_door ]; }

files=$(find ompi opal -name '*.hpp' -o -name '*.cpp' -o -name '*.def' | grep -v '^opal/mca/common/overlap/openmpi/' | sort)
[ -n "$files" ] || { echo "nothing to scan in $SOURCE"; exit 99; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# One line per include: file, line number, opening character, name. A process for each of some thousands would take a minute.
# shellcheck disable=SC2086
grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]' $files |
    sed -n 's/^\([^:]*\):\([0-9]*\):[[:space:]]*#[[:space:]]*include[[:space:]]*\([<"]\)\([^>"]*\)[>"].*/\1 \2 \3 \4/p' >"$work/includes"
while read -r file line kind name; do
    case $file in
        */protocol/*_test.cpp) room=test ;;
        */protocol/*) room=protocol ;;
        *) room=glue ;;
    esac
    folder=${file%/*}
    case $file:$name in
        opal/*:ompi/* | opal/*:ompi_config.h | opal/*:mpi.h | opal/*:mpi-ext.h)
            complain "$file" "$line" "code below MPI may not include \"$name\"" ;;
    esac
    # A lock, or a slot, that lies in memory which processes share is nothing but atomics.
    case $file:$name in
        */protocol/attached_ranges.hpp:atomic | */protocol/ticket_lock.hpp:atomic | */protocol/ticket_takers.hpp:atomic | */protocol/request_slot.hpp:atomic) continue ;;
    esac
    case $room$kind in
        protocol'<')
            case "|$standard|" in
                *"|$name|"*) ;;
                *) complain "$file" "$line" "protocol code may not include <$name>" ;;
            esac ;;
        protocol'"')
            case $name in
                ompi/mca/common/overlap/protocol/*) [ -f "$name" ] ;;
                */*) [ "${name%/*}" = "$folder" ] && [ -f "$name" ] ;;
                *) [ -f "$folder/$name" ] ;;
            esac || complain "$file" "$line" "protocol code may include its own folder and ompi/mca/common/overlap/protocol only, not \"$name\"" ;;
        *'<')
            case $name in
                mpi.h | mpi-ext.h | ompi/* | opal/* | orte/* | ompi_config.h | opal_config.h)
                    door "$file" ||
                        complain "$file" "$line" "Open MPI comes through openmpi.hpp only, not <$name>" ;;
            esac ;;
        *'"')
            door "$file" || ours "$name" "$file" ||
                complain "$file" "$line" "\"$name\" is not of this tree; Open MPI comes through openmpi.hpp only" ;;
    esac
done <"$work/includes"

# shellcheck disable=SC2086
for place in $(grep -noHE '^[[:space:]]*#[[:space:]]*(el)?if.*(OMPI|OPAL)_(MAJOR_|MINOR_|RELEASE_)?VERSION' $files | cut -d: -f1,2); do
    door "${place%:*}" || complain "${place%:*}" "${place#*:}" "only openmpi.hpp asks for Open MPI's version"
done

echo "$(echo "$files" | wc -l) files scanned, $faults faults"
[ $faults -eq 0 ]
