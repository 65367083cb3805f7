#!/usr/bin/env bash
# Makes the environment of the interop suite, or finds it made, and prints its Python. What cannot be installed is left
# out: the tests that need it are skipped and say so.
#
#   tests/interop/make_venv.sh BUILD_FOLDER BASE_PYTHON
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
folder=$1/interop-venv base=$2
python=$folder/bin/python
wanted=$(cat "$here/requirements.txt" "${BASH_SOURCE[0]}" | sha256sum)

if [[ ! -x $python || $(cat "$folder/installed" 2>/dev/null) != "$wanted" ]]; then
  rm -rf -- "$folder"
  "$base" -m venv "$folder" >&2
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  complete=true
  # One by one, so that one that cannot be had leaves the others.
  while read -r requirement; do
    [[ -n $requirement && $requirement != '#'* ]] || continue
    "$python" -m pip install --quiet "$requirement" >&2 || complete=false
  done <"$here/requirements.txt"
  # Behind its own packages: those of the tests, eagle among them, and Debian's torch.
  "$base" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/tests.pth"
  torch=$(/usr/bin/python3 -c 'import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")' \
    2>/dev/null || true)
  if [[ -n $torch ]]; then
    ln -s "$torch" "$site/torch"
    [[ ! -d ${torch%/torch}/torchgen ]] || ln -s "${torch%/torch}/torchgen" "$site/torchgen"
    "$python" -m pip install --quiet typing_extensions >&2 || true
  fi
  ! $complete || printf '%s\n' "$wanted" >"$folder/installed"
fi
printf '%s\n' "$python"
