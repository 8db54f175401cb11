# No shared library that was built clears or copies memory with "rep stos" or "rep movs", which take longer to begin than what is mostly
# cleared or copied here. Needs BUILD, OBJDUMP, CXXFLAGS.
# SPDX-License-Identifier: BSD-3-Clause
set -u
case $CXXFLAGS in
    *-mstringop-strategy=libcall*) ;;
    *) echo "this build is without -mstringop-strategy=libcall"; exit 77 ;;
esac
$OBJDUMP --version >/dev/null 2>&1 || { echo "there is no objdump"; exit 77; }
cd "$BUILD" || exit 99
faults=0
scanned=0
for library in $(find . -path '*/.libs/*.so' | sort); do
    scanned=$((scanned + 1))
    code=$($OBJDUMP -dC --no-show-raw-insn "$library") || exit 99
    found=$(echo "$code" | awk '/^[0-9a-f]+ </ { name = $0 } /[ \t]rep[ \t]+(stos|movs)/ { print name }' | sort -u)
    [ -n "$found" ] || continue
    echo "$library begins slow string instructions in"
    echo "$found" | sed 's/^[0-9a-f]* /    /'
    faults=$((faults + 1))
done

[ $faults -eq 0 ] || echo "built before configure asked for -mstringop-strategy=libcall (make clean), or CXXFLAGS ask for something else"
[ $scanned -gt 0 ] || { echo "no shared library was built"; exit 77; }
echo "$scanned libraries scanned, $faults faults"
[ $faults -eq 0 ]
