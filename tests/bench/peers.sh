#!/usr/bin/env bash
# Makes build/peers, a virtual environment with the packages that tests/bench/run.py --peers measures beside ours, and with
# --gpu those that tests/bench/gpu/run.py --peers does.
#
#   tests/bench/peers.sh [--gpu]
#
# A package that cannot be installed is named and left out; the run then goes without it. They are measured, and
# nothing else of them is used: our own environment does not see them.
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/../../deploy/steps.sh"

peers=$root/build/peers
packages=(raptor-eagle raptor-hawk numba jax warp-lang)
# Warp brings its own compiler; raptor-eagle takes CuPy's arrays.
[[ ${1:-} != --gpu ]] || packages+=('jax[cuda12]' cupy-cuda12x)

[[ -x $peers/bin/python ]] || "${PYTHON:-/usr/bin/python3}" -m venv "$peers"
"$peers/bin/python" -m pip install --quiet numpy
for package in "${packages[@]}"; do
  if "$peers/bin/python" -m pip install --quiet "$package"; then
    say "$package $("$peers/bin/python" -c "import importlib.metadata as m; print(m.version('${package%%[*}'))")"
  else
    printf 'without %s: pip could not install it\n' "$package" >&2
  fi
done
