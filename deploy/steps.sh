# The steps that deploy/quickstart.sh and tests/run.sh share; sourced by both. A step whose inputs did not
# change since it last succeeded does nothing.
#
# shellcheck shell=bash
# Sets: root (the repository), venv, python (the interpreter in it), product_targets (what users get).

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
python=$venv/bin/python
product_targets=(eagled eagle-compile eaglectl _core)
# An environment in use elsewhere must not leak into ours.
unset PYTHONHOME PYTHONPATH VIRTUAL_ENV
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
# The release and portable builds compile the same objects: ccache gives one those of the other.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=1

say() { printf '\n==> %s\n' "$*"; }
fail() {
  printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2
  exit 1
}

# once NAME FINGERPRINT COMMAND...: runs the command unless it succeeded before with this fingerprint.
# What it made lies in .venv or build/, and so does the note that it succeeded: removing them starts afresh.
once() {
  local note=$1 fingerprint=$2
  shift 2
  [[ -f $note && $(<"$note") == "$fingerprint" ]] && return
  rm -f -- "$note"
  "$@"
  mkdir -p -- "$(dirname -- "$note")"
  printf '%s\n' "$fingerprint" >"$note"
}

# One hash of the names and contents of all files under the given paths.
hash_of() {
  find "$@" -type f -not -path '*/__pycache__/*' -not -path '*.egg-info/*' -print0 | sort -z |
    xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
}

install_packages() { bash "$root/deploy/install_dependencies.sh" "$@"; }

# The virtual environment, with what the package needs to build and run, and the tests' tools.
# make_venv [REQUIREMENTS_FILE]...
make_venv() {
  local base=${PYTHON:-/usr/bin/python3}
  "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$base is $("$base" --version 2>&1); expected Python 3.11 or newer. Set PYTHON to one that has its headers."
  once "$venv/.made-with" "$("$base" -c 'import sys; print(sys.executable, sys.version)')" create_venv "$base"
  local needs
  needs=$("$python" "$root/deploy/build_requirements.py" "$root/python_client/pyproject.toml")
  once "$venv/.build-requirements" "$needs" pip_install_lines "$needs"
  local file
  for file in "$@"; do
    once "$venv/.requirements-$(basename -- "$file")" "$(hash_of "$file")" pip_install -r "$file"
  done
}
create_venv() {
  say "Making a virtual environment in .venv"
  rm -rf -- "$venv"
  "$1" -m venv "$venv"
}
pip_install() {
  "$python" -m pip install --quiet --no-warn-script-location "$@" </dev/null
}
pip_install_lines() {
  local lines
  mapfile -t lines <<<"$1"
  pip_install "${lines[@]}"
}

# build PRESET [TARGET]...: configures once and builds into build/PRESET. The release and portable builds hold the Python
# module; sanitizer builds do not, because the interpreter is not instrumented.
build() {
  local preset=$1 options=(-DEAGLE_PYTHON=OFF)
  shift
  if [[ $preset == release || $preset == portable ]]; then options=(-DEAGLE_PYTHON=ON "-DPython_EXECUTABLE=$python"); fi
  once "$root/build/$preset/.configured-with" "${options[*]} $(c++ --version | head -n 1)" \
    configure "$preset" "${options[@]}"
  say "Building (preset $preset)"
  cmake --build "$root/build/$preset" ${1:+--target "$@"} </dev/null
}
configure() {
  local preset=$1
  shift
  say "Configuring (preset $preset)"
  # CMake keeps the paths and compilers it found once; a change of either starts afresh.
  (cd -- "$root" && cmake --fresh --preset "$preset" --log-level=WARNING "$@") </dev/null
}

# The package, installed into the environment as users get it: pip takes the programs and the module from the
# release build, which is the same build that it would make, so nothing compiles twice.
install_package() {
  local made=$root/build/release package=$root/python_client
  local inputs=("$package/pyproject.toml" "$package/README.md" "$package/eagle")
  inputs+=("$made/bin/eagled" "$made/bin/eagle-compile" "$made/bin/eaglectl" "$made"/python/eagle/_core*.so)
  once "$venv/.package" "$(hash_of "${inputs[@]}")" pip_install_package
}
pip_install_package() {
  say "Installing the Python package into .venv"
  "$python" -m pip uninstall --quiet --yes eagle </dev/null  # its name was another once
  pip_install --no-index --no-deps --no-build-isolation --force-reinstall \
    --config-settings=build-dir="$root/build/release" \
    --config-settings=cmake.define.EAGLE_TESTS=ON --config-settings=cmake.define.EAGLE_BENCHMARKS=ON \
    "$root/python_client"
}
