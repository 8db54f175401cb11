#!/bin/sh
# build.sh [FOLDER [NAME...]]: compile the benchmarks (plain MPI), or those named, into FOLDER, by default ./build beside this script.
# Skips what is up to date.
# SPDX-License-Identifier: BSD-3-Clause
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/build}
[ $# -eq 0 ] || shift
mkdir -p "$out"
command -v "${MPICXX:-mpicxx}" >/dev/null || { echo "build.sh: mpicxx not found (Debian: libopenmpi-dev g++)" >&2; exit 1; }
flags=${BENCH_CXXFLAGS:--O2 -g -std=c++17 -Wall -Wextra}

up_to_date() { # target source
  [ -e "$1" ] && [ -z "$(find "$2" "$here"/*.hpp "$here/build.sh" -newer "$1" | head -n 1)" ]
}
[ $# -gt 0 ] || set -- $(cd "$here" && ls ./*.cpp | sed 's|^\./||; s|\.cpp$||')
for name in "$@"; do
  source=$here/$name.cpp
  case $name in
    waitprofile | sampler | progress_thread) target=$out/lib$(echo "$name" | tr -d _).so; kind="-shared -fPIC -fvisibility=hidden" ;;
    *) target=$out/$name; kind= ;;
  esac
  mpix=
  if [ "$name" = rma_patterns ] && pkg-config --exists mpix_overlap 2>/dev/null; then mpix="-DBENCH_MPIX $(pkg-config --cflags --libs mpix_overlap)"; fi
  up_to_date "$target" "$source" && continue
  echo "  mpicxx  $name"
  # shellcheck disable=SC2086  # the flags are lists
  "${MPICXX:-mpicxx}" $flags $kind -o "$target.new$$" "$source" -pthread $mpix
  mv "$target.new$$" "$target"
done
