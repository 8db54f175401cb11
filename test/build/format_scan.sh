# Is every C and C++ file laid out as .clang-format says? Needs SOURCE. Other versions of clang-format break lines elsewhere.
# SPDX-License-Identifier: BSD-3-Clause
set -u
cd "$SOURCE" || exit 99
tool=${CLANG_FORMAT:-clang-format-14}
command -v "$tool" >/dev/null || tool=clang-format
if ! version=$("$tool" --version 2>/dev/null); then
    echo "clang-format is not installed"
    exit 77
fi
case $version in
    *'version 14.'*) ;;
    *) echo "clang-format 14 is needed; this is: $version"; exit 77 ;;
esac
files=$(find ompi opal test examples \( -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h' \) | sort)
[ -n "$files" ] || { echo "nothing to scan in $SOURCE"; exit 99; }
# shellcheck disable=SC2086
"$tool" --dry-run --Werror $files || { echo "run: clang-format -i on these"; exit 1; }
# shellcheck disable=SC2086
long=$(awk 'length($0) > 100 { print FILENAME ":" FNR ": " length($0) " columns" }' $files)
[ -z "$long" ] || { echo "$long"; echo "shorten these comments to 100 columns"; exit 1; }
echo "$(echo "$files" | wc -l) files scanned"
