#!/usr/bin/env bash
# Makes the environment of the scale suite, or finds it made, and prints its Python. Each engine is installed by itself:
# tests of one that cannot be installed are skipped and say so.
#
#   tests/scale/make_venv.sh BUILD_FOLDER BASE_PYTHON
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
folder=$1/engines-venv base=$2
python=$folder/bin/python
wanted=$(sha256sum <"$here/requirements.txt")

if [[ ! -x $python || $(cat "$folder/installed" 2>/dev/null) != "$wanted" ]]; then
  rm -rf -- "$folder"
  "$base" -m venv "$folder" >&2
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  whole=true
  for pattern in dask\|distributed ray zarr; do
    mapfile -t packages < <(grep -E "^($pattern)" "$here/requirements.txt")
    "$python" -m pip install --quiet "${packages[@]}" >&2 || whole=false
  done
  # Behind its own packages: those of the tests, eagle among them.
  "$base" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/tests.pth"
  if $whole; then printf '%s\n' "$wanted" >"$folder/installed"; fi
fi
printf '%s\n' "$python"
