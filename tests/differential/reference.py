"""Answers for raptor-eagle, in a process and virtual environment of its own: one graph a line, one reply a line."""

import importlib.metadata
import json
import sys

import eagle
import graphs


def main() -> None:
    replies = sys.stdout
    sys.stdout = sys.stderr  # what the package prints is no reply
    print(json.dumps({"version": importlib.metadata.version("raptor-eagle")}), file=replies, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = graphs.build(eagle, request)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


main()
