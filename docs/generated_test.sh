# Are the documents up to date? Tunables and counters as in the tables of the sources, every help topic in troubleshooting.md.
# Needs SOURCE; runs in the build folder of docs.
# SPDX-License-Identifier: BSD-3-Clause
set -u
for table in ompi/mca/pml/speculative/tunables.def ompi/mca/common/overlap/tunables.def opal/mca/btl/ring/tunables.def ompi/mca/osc/newrma/tunables.def ompi/mca/coll/mq/tunables.def; do
    [ -f "$SOURCE/$table" ] || { echo "the documents describe a component whose folder was deleted: no $table"; exit 77; }
done
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
sh "$SOURCE/docs/generate" ./parameters "$SOURCE" "$work" || exit 1
faults=0
for file in parameters.md man/pml_speculative.7 man/common_overlap.7 man/btl_ring.7 man/osc_newrma.7 man/coll_mq.7; do
    diff -u "$SOURCE/docs/$file" "$work/$file" || faults=$((faults + 1))
done
[ $faults -eq 0 ] || { echo "run: make -C docs update"; exit 1; }
# Could it fail? A changed row must be noticed.
sed 's/Default/Defaults/' "$work/man/btl_ring.7" >"$work/changed"
! cmp -s "$SOURCE/docs/man/btl_ring.7" "$work/changed" || { echo "the man page has no generated rows"; exit 1; }

# A help topic is known by its first line, without its first word (the component) and its end.
topics=$(find "$SOURCE/ompi" "$SOURCE/opal" -name 'help-*.txt' -exec awk '/^\[/ { getline; print }' {} + | sed 's/^pml\/speculative //; s/[.:]$//')
[ -n "$topics" ] || { echo "no help topics found"; exit 1; }
echo "$topics" | while read -r line; do
    grep -qF "$line" "$SOURCE/docs/troubleshooting.md" || { echo "docs/troubleshooting.md has no entry for: $line"; exit 1; }
done || exit 1
