#!/usr/bin/env bash
# Installs the Debian packages that building and testing need, and that are not there yet. Nothing missing:
# no network, no privileges, under a second. docs/design/dependencies.md says why each is needed.
#
#   deploy/install_dependencies.sh [--sanitizers] [--operations] [--web] [--gradients] [--packages] [--deploy]
#                                  [--list]
#
#   --sanitizers   also what the asan and tsan presets need
#   --operations   also what the operations suite of the tests looks with
#   --web          also the browser that the web suite looks at the dashboard with
#   --gradients    also the torch that the gradients suite looks at its face with
#   --packages     also what deploy/package.sh needs
#   --deploy       also what the deploy suite of the tests needs
#   --list         print the package names and stop
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache mold
  llvm-19-dev
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libboost-dev libspdlog-dev libcli11-dev libseccomp-dev libssl-dev libtomlplusplus-dev nlohmann-json3-dev
  libgtest-dev libgmock-dev libbenchmark-dev libmpfr-dev libsleef-dev
  python3-venv python3-dev
  graphviz librsvg2-bin
)
sanitizer_packages=(clang-19 libclang-rt-19-dev libomp-19-dev)
operations_packages=(prometheus systemd systemd-container curl openssl)
web_packages=(chromium chromium-driver fonts-dejavu-core)
gradients_packages=(python3-torch)
package_packages=(dpkg-dev file libzstd-dev zlib1g-dev)
deploy_packages=(pkg-config bubblewrap buildah debootstrap systemd systemd-container openssl)

fail() {
  printf 'install_dependencies: %s\n' "$*" >&2
  exit 1
}

# Prints those of its arguments that are not installed.
missing() {
  local installed name
  # dpkg-query fails for names it has never heard of and still prints the others.
  installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    grep -qxF "installed $name" <<<"$installed" || printf '%s\n' "$name"
  done
}

# Runs a command as root.
as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "installing packages needs root: run this as root or install sudo. Missing: ${wanted[*]}"
  fi
}

check_system() {
  local id='' version='' pretty='an unknown system'
  if [[ -r /etc/os-release ]]; then
    id=$(. /etc/os-release && printf %s "${ID:-}")
    version=$(. /etc/os-release && printf %s "${VERSION_ID:-}")
    pretty=$(. /etc/os-release && printf %s "${PRETTY_NAME:-$ID}")
  fi
  [[ $id == debian && $version == 12 ]] || fail "this is $pretty; expected Debian 12 (bookworm)." \
    "Use a Debian 12 machine or container, or install by hand what docs/design/dependencies.md lists and build with CMake."
}

list=false
for argument in "$@"; do
  case $argument in
    --sanitizers) packages+=("${sanitizer_packages[@]}") ;;
    --operations) packages+=("${operations_packages[@]}") ;;
    --web) packages+=("${web_packages[@]}") ;;
    --gradients) packages+=("${gradients_packages[@]}") ;;
    --packages) packages+=("${package_packages[@]}") ;;
    --deploy) packages+=("${package_packages[@]}" "${deploy_packages[@]}") ;;
    --list) list=true ;;
    *) fail "unknown option '$argument'; known are --sanitizers, --operations, --web, --gradients," \
      "--packages, --deploy and --list" ;;
  esac
done
if $list; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

check_system
mapfile -t wanted < <(missing "${packages[@]}")
[[ ${#wanted[@]} -eq 0 ]] && exit 0

printf 'Installing %d Debian packages: %s\n' "${#wanted[@]}" "${wanted[*]}"
apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"
}
apt update </dev/null
apt install -y --no-install-recommends "${wanted[@]}" </dev/null >/dev/null
mapfile -t wanted < <(missing "${packages[@]}")
[[ ${#wanted[@]} -eq 0 ]] || fail "still missing after apt-get install: ${wanted[*]}"
