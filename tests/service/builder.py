"""A client that begins long builds and waits for them: builder.py SOCKET, says "building"."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from stubs import session_at
from test_abandoned_builds import BUILD_THREADS, KERNELS, begin_builds, many_kernels

with session_at(Path(sys.argv[1])) as service:
    calls = begin_builds(service, [many_kernels(service, KERNELS * (turn + 10)) for turn in range(BUILD_THREADS)])
    print("building", flush=True)
    for call in calls:
        call.result()
