#!/usr/bin/env bash
# The README's path, as somebody walks it who has a fresh Debian 12 and nothing else: a root of debootstrap with git, sudo
# and a user, a clone of what is committed here, `bash deploy/quickstart.sh` as that user, the README's programs as it
# says to run them, and then what people get wrong. Prints how long the quickstart took, and every message.
#
#   tests/deploy/newcomer.sh [FOLDER]
#
#   FOLDER   where the root is made, a few GB; a temporary one, gone at the end, when not given
#
# Needs root and the network. Exit status: 0 when the quickstart worked and every program of the README printed what it says.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
project=$(git -C "$here" rev-parse --show-toplevel)

if [[ ${1:-} == --inside ]]; then  # in namespaces of its own, so that nothing of this is left
  root=$2
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/tmp"
  exec chroot "$root" /usr/bin/env -i HOME=/srv/newcomer PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    su newcomer -c 'cd ~/eagle && bash ~/walk.sh'
fi

root=${1:-}
if [[ -z $root ]]; then
  root=$(mktemp -d)
  trap 'rm -rf -- "$root"' EXIT
fi
if [[ ! -e $root/made ]]; then
  debootstrap --variant=minbase --include=git,sudo,ca-certificates bookworm "$root" >/dev/null
  chroot "$root" useradd --create-home --home-dir /srv/newcomer --shell /bin/bash newcomer
  echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/newcomer"
  touch "$root/made"
fi
# This machine's way out to the network: names, and whom it trusts.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"

home=$root/srv/newcomer
rm -rf -- "$home/eagle"
git clone --quiet --no-hardlinks "$project" "$home/eagle"
cat >"$home/walk.sh" <<'WALK'
set -euo pipefail
began=$SECONDS
bash deploy/quickstart.sh
printf '\n==> The quickstart took %d s\n' $((SECONDS - began))
python=$PWD/.venv/bin/python

printf '\n==> The programs of the README\n'
mkdir ~/programs
"$python" - <<'END'
"""Each Python block of the README as a file, and beside it what the README says that it prints."""
import pathlib
import re

blocks = re.findall(r"^```(python|text)\n(.*?)^```", pathlib.Path("README.md").read_text(), re.M | re.S)
folder = pathlib.Path.home() / "programs"
for number, ((kind, code), (shown, output)) in enumerate(zip(blocks[::2], blocks[1::2])):
    assert (kind, shown) == ("python", "text"), "in the README each program is followed by what it prints"
    (folder / f"{number}.py").write_text(code)
    (folder / f"{number}.txt").write_text(output)
END
for program in ~/programs/*.py; do
  "$python" "$program" | diff - "${program%.py}.txt"
  printf '%s prints what the README says\n' "$(basename -- "$program")"
done

# What goes wrong for people: each must fail, and say what to do.
wrong() {
  printf '\n--> %s\n' "$*"
  if "$@"; then
    printf 'newcomer: this should have failed\n'
    exit 1
  fi
}
wrong bash deploy/quickstart.sh --fast
wrong python3 ~/programs/0.py
wrong env EAGLE_ENDPOINT=unix:/tmp/nobody.sock "$python" ~/programs/1.py
wrong build/release/bin/eaglectl info
wrong build/release/bin/eagled --listen /tmp/eagled.sock
wrong build/release/bin/eagled --listen unix:/nowhere/eagled.sock
wrong "$python" -c 'import eagle; eagle.connect("localhost:7411")'
wrong "$python" -c 'import eagle, numpy; s = eagle.connect(); s.zeros(4)[7] = 1'
wrong "$python" - <<'END'
import eagle
from eagle import Scalar, kernel


@kernel
def shape(x: Scalar) -> Scalar:
    y = open(x)
    return y


shape(eagle.connect().zeros(3))
END
printf '\n==> Done\n'
WALK
chmod 755 "$home/walk.sh"
chroot "$root" chown -R newcomer: /srv/newcomer
unshare --mount --pid --fork --kill-child bash "$here/newcomer.sh" --inside "$root"
