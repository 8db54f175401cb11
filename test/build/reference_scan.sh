# Does everything exist that sources and documents cite: requirements (P1.6), files, links of documents? Needs SOURCE.
# SPDX-License-Identifier: BSD-3-Clause
set -u
cd "$SOURCE" || exit 99
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
faults=0
complain() { echo "$1"; faults=$((faults + 1)); }

find . \( -name .git -o -name _build -o -name _install -o -name generated -o -name autom4te.cache \) -prune -o -type f -print |
    sed 's|^\./||' | sort >"$work/tree"
sed 's|.*/||' "$work/tree" | sort -u >"$work/names"
# What speaks to people: sources with their comments, scripts, documents. This script and scan_faults.sh name things that do not exist.
grep -E '\.(cpp|hpp|c|def|sh|py|md|am|ac|m4|7|1|txt)$' "$work/tree" | grep -vE '^test/build/(reference_scan|scan_faults)\.sh$' >"$work/files"
[ -s "$work/files" ] || { echo "nothing to scan in $SOURCE"; exit 99; }

# Requirements: each has a row of its own in docs/requirements.md.
if [ ! -f docs/requirements.md ]; then complain "docs/requirements.md is missing"; else
    sed -n 's/^| \(P[1-6]\.[0-9]*\) |.*/\1/p' docs/requirements.md | sort -u >"$work/known"
    xargs grep -noHE '\bP[1-6]\.[0-9]+\b' <"$work/files" >"$work/cited"
    known=" $(tr '\n' ' ' <"$work/known")"
    while IFS=: read -r file line number; do
        case $known in *" $number "*) ;; *) complain "$file:$line: there is no requirement $number in docs/requirements.md" ;; esac
    done <"$work/cited"
fi

# Files: with a path from the top or from the citing file, or a bare name of any file of the tree. .h and .c names are Open MPI's, names
# in capitals placeholders. Scripts also name what they make: there only what begins with a folder of the tree counts.
xargs grep -noHE '[A-Za-z0-9_.*$/-]*[A-Za-z0-9*-][A-Za-z0-9_*-]*\.(cpp|hpp|def|md|py|sh|f90|m4)\b' <"$work/files" >"$work/all"
# Most are names of files that are there; only the rest needs a closer look.
awk -F: 'NR == FNR { names[$0]; next } !($3 in names)' "$work/names" "$work/all" >"$work/cited"
while IFS=: read -r file line name; do
    case $name in
        *'*'* | *'$'* | .* | _* | /* | catch2/* | nlohmann/*) continue ;;
    esac
    case /$name/ in
        */[A-Z]*[A-Z]/*) continue ;;
    esac
    case $file in
        *.sh | *.py | *.am | *.ac | *.m4) [ -d "${name%%/*}" ] || continue ;;
    esac
    case $name in
        */*) [ -e "$name" ] || [ -e "$(dirname "$file")/$name" ] || grep -q "/$name\$" "$work/tree" ;;
        *) grep -qxE "$name(\.in)?" "$work/names" ;;
    esac || complain "$file:$line: $name is not in the tree"
done <"$work/cited"

# Links between documents.
grep '\.md$' "$work/files" | xargs grep -noHE '\]\([^)#:]+[)#]' >"$work/cited" 2>/dev/null
while IFS=: read -r file line link; do
    target=$(echo "$link" | sed 's/^](//; s/[)#]$//')
    [ -e "$(dirname "$file")/$target" ] || complain "$file:$line: the link to $target leads nowhere"
done <"$work/cited"

echo "$(wc -l <"$work/files") files scanned, $faults faults"
[ $faults -eq 0 ]
