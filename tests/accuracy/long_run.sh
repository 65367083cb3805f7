#!/usr/bin/env bash
# The long form of the tests of accuracy, each in a process of its own, one after the other.
#
#   tests/accuracy/long_run.sh DIRECTORY [FILTER]
#
# What a test found is kept in DIRECTORY under its name, so a second call goes on where the first one stopped. A directory
# belongs to one build: another one's results are refused. FILTER is a pattern of test names. Run it under `nice`; it
# takes about twenty minutes of a core that has nothing else to do.
#
#   python3 docs/tools/numbers.py DIRECTORY     # makes the manual's table of it
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${EAGLE_ACCURACY_BIN:-$root/build/release/bin}
if [[ $# -lt 1 || $# -gt 2 ]]; then
  sed -n '2,/^set/{/^set/!p}' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
directory=$1
filter=${2:-*}
mkdir -p "$directory"

build=$(cat "$bin/accuracy_test" "$bin/eagle-compile" | sha256sum | cut -d' ' -f1)
[[ -e $directory/build ]] || echo "$build" >"$directory/build"
if [[ $(<"$directory/build") != "$build" ]]; then
  echo "long_run.sh: $directory holds results of another build; give an empty directory" >&2
  exit 1
fi

export EAGLE_LONG=1 EAGLE_COMPILE_HELPER=$bin/eagle-compile
suite=
failed=0
while read -r line; do
  name=${line%%  *}
  if [[ $line != *'#'* ]]; then
    suite=$line
    continue
  fi
  test=$suite$name
  # shellcheck disable=SC2053 # a pattern is meant
  [[ $test == $filter ]] || continue
  kept=$directory/$(tr / - <<<"$test").txt
  [[ -e $kept ]] && continue
  rm -f "$kept.part"
  if EAGLE_ACCURACY_OUT=$kept.part "$bin/accuracy_test" --gtest_filter="$test" --gtest_brief=1; then
    touch "$kept.part" # functions that are exact report nothing
    mv "$kept.part" "$kept"
  else
    failed=1
  fi
done < <("$bin/accuracy_test" --gtest_list_tests)
exit $failed
