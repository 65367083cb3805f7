#!/usr/bin/env bash
# From a checkout on Debian 12 to a running example: installs what is missing, builds, makes .venv with the Python
# package, starts an eagled of its own, runs the ensemble example through it, and says what to try next.
# Run it again at any time: steps whose inputs did not change take no time.
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/steps.sh"
[[ $# -eq 0 ]] || fail "takes no arguments"

install_packages
make_venv
build release "${product_targets[@]}"
install_package

# The daemon of this run: on a socket in a folder of its own, gone when the script ends.
folder=$(mktemp -d)
daemon=''
clean_up() {
  if [[ -n $daemon ]]; then
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
  fi
  rm -rf -- "$folder"
}
trap clean_up EXIT

bin=$root/build/release/bin
export EAGLE_ENDPOINT=unix:$folder/eagled.sock
say "Starting eagled on $EAGLE_ENDPOINT"
"$bin/eagled" --listen "$EAGLE_ENDPOINT" </dev/null >"$folder/eagled.log" 2>&1 &
daemon=$!
started=$SECONDS
until "$bin/eaglectl" info >/dev/null 2>&1; do
  [[ $SECONDS -lt $((started + 60)) ]] || fail "eagled did not answer within 60 s: $(<"$folder/eagled.log")"
  if ! kill -0 "$daemon" 2>/dev/null; then
    cat -- "$folder/eagled.log" >&2
    fail "eagled ended before it answered; its log is above"
  fi
  sleep 0.05
done

say "The ensemble example, run by process $daemon"
"$python" -m eagle.examples.ensemble </dev/null

cat <<END

==> Where things are
  .venv/bin/python                       has the package: .venv/bin/python -m eagle.examples.ensemble --local
  build/release/bin/eagled               the daemon: eagled --listen unix:PATH, then export EAGLE_ENDPOINT=unix:PATH
  build/release/bin/eaglectl             what a daemon holds and does: eaglectl info
  README.md, docs/manual/quickstart.md   the first programs, line by line
  bash tests/run.sh                      every test
END
