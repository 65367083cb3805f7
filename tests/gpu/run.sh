#!/usr/bin/env bash
# Everything that only hardware can show: run on a host with an NVIDIA GPU, it builds, checks bits on that GPU, measures, and
# writes what it found to docs/measurements/gpu_NAME.md, with the GPU's name, driver and date. Nothing of it is quoted anywhere
# unless it ran. Exit status: 0 when every check passed.
#
#   tests/gpu/run.sh [OUTPUT.md]
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../../deploy/steps.sh"

library=${EAGLE_CUDA_DRIVER:-libcuda.so.1}
install_packages
make_venv "$root/tests/requirements.txt"
build release
install_package
bin=$root/build/release/bin
export EAGLE_CACHE_DIR= EAGLE_CUDA_DRIVER=$library EAGLE_COMPILE_HELPER=$bin/eagle-compile
unset EAGLE_FAKE_CUDA

gpu=$("$bin/eaglectl" doctor --all | grep -m1 -o 'cuda:0 is .*' || true)
[[ -n $gpu ]] || fail "no NVIDIA GPU here: $("$bin/eaglectl" doctor --all | grep gpu || echo 'eaglectl doctor says nothing of one')"
name=$(sed 's/^cuda:0 is \([^(]*\) (.*/\1/; s/[^A-Za-z0-9]\+/_/g' <<<"$gpu")
output=${1:-$root/docs/measurements/gpu_$name.md}

export EAGLE_REAL_GPU=1  # tests of what the fake driver alone can play leave themselves out (engine/run/cuda/pretend.h)
status=0
section() { printf '\n## %s\n\n```text\n' "$1"; shift; "$@" 2>&1 || { status=1; echo "exit status: failed"; }; printf '```\n'; }
{
  printf '# %s\n\nWritten by `tests/gpu/run.sh` on %s, commit %s.\n\n%s\n' \
    "$name" "$(date -u +%F)" "$(git -C "$root" rev-parse --short HEAD)" "$gpu"
  section "Bits: eaglectl verify" "$bin/eaglectl" verify
  section "Bits: graphs" "$bin/device_graph_test" --gtest_brief=1
  section "Bits: graphs that are put over other arrays" "$bin/device_rebind_test" --gtest_brief=1
  section "Bits: captured work in graphs" "$bin/captured_graph_test" --gtest_brief=1
  section "Bits: runs" "$bin/device_run_test" --gtest_brief=1
  section "Bits: captured parts of steps" "$bin/captured_parts_test" --gtest_brief=1
  section "Memory that two processes have" "$bin/gpu_sharing_test" --gtest_brief=1 --gtest_filter='*WhatOneProcessMakes*/ByDescriptor'
  section "Bits: the conformance suite with its arrays on the GPU" env EAGLE_CONFORMANCE_GPU=1 EAGLED="$bin/eagled" \
    EAGLECTL="$bin/eaglectl" "$bin/conformance_test" --gtest_brief=1 --gtest_filter='*_gpu'
  section "Times, beside other packages where they are installed (tests/bench/peers.sh --gpu)" \
    env EAGLE_BUILD_DIR="$root/build/release" "$python" "$root/tests/bench/gpu/run.py" --peers
} >"$output"
cat -- "$output"
exit "$status"
