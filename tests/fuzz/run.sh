#!/usr/bin/env bash
# Looks for inputs that break a fuzz target, and prints how much of the code they reach.
#
#   tests/fuzz/run.sh [--seconds N] [--keep] [--coverage] [TARGET]...
#
#   --seconds N   for each target; 60 when not given
#   --keep        adds the inputs that reach something new to tests/fuzz/corpus, as few and short as they can be
#   --coverage    runs nothing new: prints the lines that each target's corpus reaches, by folder
#   TARGET        kernel_fuzz, view_fuzz, ...; all of tests/fuzz/corpus when not given
#
# An input that breaks a target ends it and lies in build/fuzz/found; put it into the corpus with the cure.
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../../deploy/steps.sh"

seconds=60
keep=false
coverage=false
targets=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --seconds)
      [[ ${2:-} =~ ^[0-9]+$ ]] || fail "--seconds needs a number"
      seconds=$2
      shift
      ;;
    --keep) keep=true ;;
    --coverage) coverage=true ;;
    -*) fail "unknown option '$1'; the head of tests/fuzz/run.sh lists them" ;;
    *)
      [[ -d $root/tests/fuzz/corpus/$1 ]] || fail "no target '$1'; known are $(ls "$root/tests/fuzz/corpus" | xargs)"
      targets+=("$1")
      ;;
  esac
  shift
done
[[ ${#targets[@]} -gt 0 ]] || mapfile -t targets < <(ls "$root/tests/fuzz/corpus")

install_packages --sanitizers
made=$root/build/fuzz
build fuzz "${targets[@]}"
# Compiling is not what is looked at here, and an instrumented compiler is slow.
make_venv
build release eagle-compile
export EAGLE_COMPILE_HELPER=$root/build/release/bin/eagle-compile EAGLE_CACHE_DIR=
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
mkdir -p -- "$made/found" "$made/profiles"

# Lines that a target's corpus reaches, in the folders of the code under test.
report_coverage() {
  local target=$1 profile=$made/profiles/$1
  # One input at a time in its own process would take long; -runs=0 runs the corpus once.
  LLVM_PROFILE_FILE=$profile.profraw "$made/bin/$target" -runs=0 "$root/tests/fuzz/corpus/$target" >/dev/null 2>&1 ||
    fail "$target: its own corpus breaks it"
  llvm-profdata-19 merge -sparse "$profile.profraw" -o "$profile.profdata"
  llvm-cov-19 export --summary-only --instr-profile="$profile.profdata" "$made/bin/$target" |
    "$python" "$root/tests/fuzz/coverage.py" "$target" "$root"
}

fuzz() {
  local target=$1 corpus=$root/tests/fuzz/corpus/$1 found=$made/corpus/$1
  mkdir -p -- "$found"
  say "$target: $seconds s"
  LLVM_PROFILE_FILE=/dev/null "$made/bin/$target" -max_total_time="$seconds" -max_len=16384 -timeout=30 -rss_limit_mb=4096 \
    -artifact_prefix="$made/found/$target-" -print_final_stats=1 -verbosity=1 "$found" "$corpus" 2>&1 |
    grep -E '^(stat::|Done|==|SUMMARY|broken promise)|BINGO|ERROR|DONE' || true
  if $keep; then
    # Merging picks a smallest set that reaches the same; what is there already stays.
    LLVM_PROFILE_FILE=/dev/null "$made/bin/$target" -merge=1 "$corpus" "$found" >/dev/null 2>&1
  fi
}

before=$(find "$made/found" -type f | wc -l)
for target in "${targets[@]}"; do
  $coverage || fuzz "$target"
  report_coverage "$target"
done
broke=$(($(find "$made/found" -type f | wc -l) - before))
say "$broke inputs that break a target"
[[ $broke -eq 0 ]]
