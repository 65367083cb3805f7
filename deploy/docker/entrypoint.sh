#!/bin/sh
# What this container may do, said before eagled starts: files without names and their seals, locked memory, the
# budget of its cgroup, a driver. A problem ends it here with its cure; EAGLED_UNCHECKED=1 starts all the same.
set -eu
case "${1:-}" in
  eagled) ;;
  -*) set -- eagled "$@" ;;
  *) exec "$@" ;;  # some other program, as `eaglectl info`
esac
if ! eaglectl doctor --no-daemon --all >&2; then
  [ "${EAGLED_UNCHECKED:-}" = 1 ] || {
    echo "entrypoint: eagled is not started: see the problems above; EAGLED_UNCHECKED=1 starts it all the same" >&2
    exit 1
  }
fi
exec "$@"
