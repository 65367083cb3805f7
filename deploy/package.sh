#!/usr/bin/env bash
# Makes packages of this tree.
#
#   deploy/package.sh wheel|tarball|deb... [--output FOLDER]
#
#   wheel     Python package with the daemon in it, for any Linux with glibc 2.36 or newer, and this Python
#   tarball   programs, C++ library and Python package, which may be unpacked anywhere; the same systems
#   deb       eagled, libeagle0.1, libeagle-dev and python3-eagle, for the Debian that they are made on
#   --output  where they go (build/packages)
#
# wheel and tarball come from the portable build (build/portable: all but glibc linked in), deb from the release
# build (libraries are Debian's).
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/steps.sh"

kinds=()
output=$root/build/packages
while [[ $# -gt 0 ]]; do
  case $1 in
    wheel | tarball | deb) kinds+=("$1") ;;
    --output)
      [[ $# -ge 2 ]] || fail "--output needs a folder"
      output=$(realpath --canonicalize-missing -- "$2")
      shift
      ;;
    *) fail "unknown argument '$1'; expected wheel, tarball, deb or --output FOLDER" ;;
  esac
  shift
done
[[ ${#kinds[@]} -gt 0 ]] || fail "expected one or more of wheel, tarball, deb"
wants() { [[ " ${kinds[*]} " == *" $1 "* ]]; }

# The wheel's tag is what auditwheel has proved: which glibc it needs, and that it needs nothing else.
make_wheel() {
  say "Making the wheel"
  local made=$root/build/portable/wheel
  rm -rf -- "$made"
  pip_wheel --config-settings=build-dir="$root/build/portable" --wheel-dir "$made" "$root/python_client"
  PATH=$venv/bin:$PATH "$python" -m auditwheel repair --plat "manylinux_2_36_$(uname -m)" \
    --wheel-dir "$output" "$made"/eagled-*.whl </dev/null
}
pip_wheel() {
  "$python" -m pip wheel --quiet --no-index --no-deps --no-build-isolation \
    --config-settings=cmake.define.EAGLE_PORTABLE=ON "$@" </dev/null
}

pack() {
  local generator=$1 preset=$2
  say "Packing ($generator)"
  rm -rf -- "$root/build/$preset/packages"
  (cd -- "$root/build/$preset" && cpack -G "$generator" >packages.log 2>&1 </dev/null) ||
    fail "cpack -G $generator: $(tail -n 20 -- "$root/build/$preset/packages.log")"
  find "$root/build/$preset/packages" -maxdepth 1 \( -name '*.deb' -o -name '*.tar.gz' \) -exec cp -- {} "$output" \;
}

install_packages --packages
make_venv "$root/deploy/package_requirements.txt"
mkdir -p -- "$output"
if wants wheel || wants tarball; then build portable "${product_targets[@]}" eagle_shared; fi
if wants wheel; then make_wheel; fi
if wants tarball; then pack TGZ portable; fi
if wants deb; then
  build release "${product_targets[@]}" eagle_shared
  pack DEB release
fi
