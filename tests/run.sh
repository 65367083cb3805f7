#!/usr/bin/env bash
# Installs what is missing, builds, runs the tests and ends with one line `N passed, N failed, N skipped`.
#
#   tests/run.sh [--suite NAME[,NAME]]... [--asan | --tsan] [--long] [--list]
#
#   --suite   structure, unit, conformance, python, integration, service, operations, gpu, gradients, interop, scale, docs or
#             web; all of these when not given. Only by name: deploy, which makes packages and images and installs them in
#             systems of their own, and differential, which compares with raptor-eagle in a virtual environment of its own
#   --asan    unit and conformance suites under AddressSanitizer and UndefinedBehaviorSanitizer
#   --tsan    unit and conformance suites under ThreadSanitizer
#   --long    more rounds of the tests that make up their input
#   --list    print the names of the tests and run none
#
# Exit status: 0 when at least one test ran and none failed. Logs and results lie in build/PRESET/results.
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../deploy/steps.sh"

all_suites=(structure unit conformance python integration service operations gpu gradients interop scale docs web)
extra_suites=(differential deploy)
suites=()
preset=release
list=false

parse() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      --suite)
        [[ $# -ge 2 ]] || fail "--suite needs a name: ${all_suites[*]} ${extra_suites[*]}"
        local name
        for name in ${2//,/ }; do
          [[ " ${all_suites[*]} ${extra_suites[*]} " == *" $name "* ]] ||
            fail "no suite '$name'; known are ${all_suites[*]} ${extra_suites[*]}"
          suites+=("$name")
        done
        shift
        ;;
      --asan | --tsan)
        [[ $preset == release ]] || fail "one sanitizer at a time: --asan or --tsan"
        preset=${1#--}
        ;;
      --long) export EAGLE_LONG=1 ;;
      --list) list=true ;;
      *) fail "unknown option '$1'; the head of tests/run.sh lists them" ;;
    esac
    shift
  done
  if [[ $preset != release ]]; then
    all_suites=(unit conformance)
    local name
    for name in "${suites[@]}"; do
      [[ " ${all_suites[*]} " == *" $name "* ]] || fail "suite '$name' does not run under --$preset; ${all_suites[*]} do"
    done
  fi
  [[ ${#suites[@]} -gt 0 ]] || suites=("${all_suites[@]}")
}

wants() { [[ " ${suites[*]} " == *" $1 "* ]]; }

prepare() {
  if [[ $preset != release ]]; then
    install_packages --sanitizers
    build "$preset"
    return
  fi
  local tools=()
  if wants operations || wants docs; then tools+=(--operations); fi
  if wants web; then tools+=(--web); fi
  if wants gradients; then tools+=(--gradients); fi
  if wants deploy; then tools+=(--deploy); fi
  install_packages "${tools[@]}"
  if [[ ${#tools[@]} -gt 0 ]]; then export EAGLE_TOOLS_INSTALLED=1; fi  # from here on a tool that is missing is a failure
  make_venv "$root/tests/requirements.txt"
  local name needs_build=false
  for name in "${suites[@]}"; do [[ $name == structure ]] || needs_build=true; done
  if $needs_build; then build release; fi
  for name in python integration service operations gpu gradients interop scale docs web differential; do
    if wants "$name"; then install_package; fi
  done
  if wants gpu; then find_ptxas; fi
  if wants deploy && ! $list; then
    bash "$root/deploy/package.sh" wheel tarball deb --output "$root/build/packages"
    export EAGLE_PACKAGES_DIR=$root/build/packages
  fi
}

# NVIDIA's assembler, which judges what is made for GPUs: the CUDA toolkit's, else PyPI's.
find_ptxas() {
  EAGLE_PTXAS=$(command -v ptxas) || {
    make_venv "$root/tests/gpu/requirements.txt"
    EAGLE_PTXAS=$("$python" -c 'import nvidia.cuda_nvcc as p; print(list(p.__path__)[0] + "/bin/ptxas")')
  }
  export EAGLE_PTXAS
}

sanitizer_options() {
  local dir=$root/tests/sanitizers
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1
  export LSAN_OPTIONS="suppressions='$dir/lsan.supp':print_suppressions=0"
  export UBSAN_OPTIONS=print_stacktrace=1
  export TSAN_OPTIONS="suppressions='$dir/tsan.supp':ignore_noninstrumented_modules=1:second_deadlock_stack=1"
  # libomp tells ThreadSanitizer about its barriers through this tool.
  [[ $preset != tsan ]] || export OMP_TOOL_LIBRARIES=/usr/lib/llvm-19/lib/libarcher.so
}

run_ctest() {
  ctest --test-dir "$root/build/$preset" --label-regex "^$1\$" --parallel 2 --timeout 300 \
    --output-on-failure --test-output-size-failed 100000 --no-tests=error --output-junit "$results/$1.xml"
}
run_pytest() {
  local suite=$1 folder=$root/tests/$1 settings=$root/tests/pytest.ini python=$python
  shift
  if [[ $suite == python ]]; then
    folder=$root/python_client/tests settings=$root/python_client/pyproject.toml
  elif [[ $suite == gradients || $suite == interop || $suite == scale ]]; then
    python=$("$root/tests/$suite/make_venv.sh" "$root/build/$preset" "$python")
  fi
  # pytest-timeout ends the run with every thread's stack, native calls included; `timeout` is for the rest.
  timeout --kill-after=10 1200 "$python" -m pytest -c "$settings" -p no:cacheprovider -o junit_logging=all \
    --timeout=180 --timeout-method=thread --tb=short "$@" "$folder"
}
run_suite() {
  case $1 in
    unit | conformance | gpu) run_ctest "$1" ;;
    *) run_pytest "$1" --junitxml="$results/$1.xml" ;;
  esac
}
list_suite() {
  printf '%s:\n' "$1"
  case $1 in
    unit | conformance | gpu)
      ctest --test-dir "$root/build/$preset" --label-regex "^$1\$" --show-only | sed -n 's/^ *Test *#[0-9]*: /  /p'
      ;;
    *) run_pytest "$1" --collect-only -q | sed -n 's/^\(.*::.*\)/  \1/p' ;;
  esac
}

tally() { /usr/bin/python3 "$root/tests/tally.py" "$@"; }

parse "$@"
prepare
export EAGLE_BUILD_DIR=$root/build/$preset
# Tests start their own daemon; one that happens to run on this machine must not answer for it.
unset EAGLE_ENDPOINT
# Nor may code that another build compiled and kept.
export EAGLE_CACHE_DIR=
sanitizer_options

if $list; then
  for suite in "${suites[@]}"; do list_suite "$suite"; done
  exit 0
fi

results=$root/build/$preset/results
rm -rf -- "$results"
mkdir -p -- "$results"
outcomes=()
for suite in "${suites[@]}"; do
  say "Testing: $suite"
  status=0
  run_suite "$suite" </dev/null >"$results/$suite.log" 2>&1 || status=$?
  outcomes+=("$suite=$status")
  table=$root/tests/$suite/print_table.py
  [[ ! -f $table ]] || /usr/bin/python3 "$table" "$results/$suite.xml"
  tally --suite "$results" "$suite=$status"
done
tally "$results" "${outcomes[@]}"
