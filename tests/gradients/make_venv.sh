#!/usr/bin/env bash
# Makes the environment of the gradients suite, or finds it made, and prints its Python. What cannot be installed is left
# out: the tests that need it are skipped and say so.
#
#   tests/gradients/make_venv.sh BUILD_FOLDER BASE_PYTHON
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
folder=$1/frameworks-venv base=$2
python=$folder/bin/python
wanted=$(sha256sum <"$here/requirements.txt")

if [[ ! -x $python || $(cat "$folder/installed" 2>/dev/null) != "$wanted" ]]; then
  rm -rf -- "$folder"
  "$base" -m venv "$folder" >&2
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  if "$python" -m pip install --quiet --requirement "$here/requirements.txt" >&2; then
    printf '%s\n' "$wanted" >"$folder/installed"
  fi
  # Behind its own packages: those of the tests, eagle among them, and Debian's torch.
  "$base" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/tests.pth"
  torch=$(/usr/bin/python3 -c 'import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")' \
    2>/dev/null || true)
  if [[ -n $torch ]]; then
    ln -s "$torch" "$site/torch"
    [[ ! -d ${torch%/torch}/torchgen ]] || ln -s "${torch%/torch}/torchgen" "$site/torchgen"
    "$python" -m pip install --quiet typing_extensions >&2 || true
  fi
fi
printf '%s\n' "$python"
