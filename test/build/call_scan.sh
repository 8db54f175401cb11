# Who calls what, where the language cannot say it: requests complete in progress and in calls that wait only, and nothing is decided by the
# name of a component. Needs SOURCE.
# SPDX-License-Identifier: BSD-3-Clause
set -u
cd "$SOURCE" || exit 99
faults=0
scanned=0

files=$(find ompi opal -name '*.hpp' -o -name '*.cpp' | grep -v -e '_test\.cpp$' -e '/sim/' | sort)
# Rows: an extended regular expression | files that may hold it | what is wrong elsewhere.
while IFS='|' read -r pattern allowed complaint; do
    scanned=$((scanned + 1))
    pattern=$(echo "$pattern" | tr '~' '|')
    # shellcheck disable=SC2086
    for place in $(grep -noHE -- "$pattern" $files | cut -d: -f1,2 | uniq); do
        case " $allowed " in *" ${place%:*} "*) continue ;; esac
        echo "$place: $complaint"
        faults=$((faults + 1))
    done
done <<'END'
completions(\.~->)drain\(|ompi/mca/pml/speculative/pml_speculative_progress.cpp ompi/mca/common/overlap/waiting.hpp|only progress and calls that wait complete requests: callbacks run there
mca_component_name.*(==~!=~compare~find\(~_with)~str(n)?cmp.*mca_component_name||a BTL counts by what it can do, not by its name
END

# The BML calls it with its own lock held, which others take under the progress lock.
scanned=$((scanned + 1))
# shellcheck disable=SC2086
for place in $(awk '/^int add_procs\(/ && FILENAME ~ /^opal/ { inside = 1 }
        inside && /(Guard|Entry) [a-z_]+[;({]/ { print FILENAME ":" FNR }
        /^}/ { inside = 0 }' $files); do
    echo "$place: add_procs of a BTL must not take the progress lock"
    faults=$((faults + 1))
done

[ -n "$files" ] && [ $scanned -gt 0 ] || { echo "nothing to scan in $SOURCE"; exit 99; }
echo "$scanned rules scanned, $faults faults"
[ $faults -eq 0 ]
