#!/usr/bin/env bash
# Makes the environment of the gradients suite, or finds it made, and prints its Python. What cannot be installed is left
# out: the tests that need it are skipped and say so.
#
#   tests/gradients/make_venv.sh BUILD_FOLDER BASE_PYTHON
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
folder=$1/frameworks-venv base=$2
python=$folder/bin/python
# Debian's torch: the version of Python that it is for, and its folder, where it is installed.
torch=$(/usr/bin/python3 - <<'END'
import importlib.util
import sys

spec = importlib.util.find_spec("torch")
print(*sys.version_info[:2], *(spec.submodule_search_locations if spec else ()))
END
)
wanted="$(sha256sum <"$here/requirements.txt") $torch"

if [[ ! -x $python || $(cat "$folder/installed" 2>/dev/null) != "$wanted" ]]; then
  rm -rf -- "$folder"
  "$base" -m venv "$folder" >&2
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  if "$python" -m pip install --quiet --requirement "$here/requirements.txt" >&2; then
    printf '%s\n' "$wanted" >"$folder/installed"
  fi
  # Behind its own packages: those of the tests, eagle among them, and Debian's torch where it is of this Python.
  "$base" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/tests.pth"
  read -r major minor place <<<"$torch"
  if [[ -n $place ]] && "$python" -c "import sys; sys.exit(sys.version_info[:2] != ($major, $minor))"; then
    for package in torch torchgen; do
      [[ ! -d ${place%/torch}/$package ]] || ln -s "${place%/torch}/$package" "$site/$package"
    done
  fi
fi
printf '%s\n' "$python"
