"""Eight branches of sixteen nodes: the twin gives each branch to one thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import eagle
import numpy as np
from cases.chains import bound_chain, planes_of, void
from cases.inputs import chain_links, chain_start
from frame import DAEMON, IN_PROCESS, LIMIT, TWIN, Bench, Bound, Form, Row

LINE = 4
TITLE = "8 branches of 16 nodes, N = 1,024"
BRANCHES = 8


def form(name: str, session: Any, n: int, count: int) -> Form:
    chains = [planes_of(session, n) for _ in range(BRANCHES)]
    g = eagle.Graph(session)
    g.add_group([bound_chain(planes) for planes in chains])
    g.build()
    answer = [plane for planes in chains for plane in planes[1:]]
    return Form(name, lambda: void(g.launch(count)), units=count, answer=lambda: answer)


def twin(bench: Bench, n: int, count: int) -> Form:
    """A chain is one thread's from its first link to its last, with its values in registers."""
    chains = [[chain_start(n), *(np.zeros(n) for _ in chain_links())] for _ in range(BRANCHES)]
    links = chain_links()
    answer = [plane for planes in chains for plane in planes[1:]]
    return Form(TWIN, lambda: bench.twins.branches(chains, links, count), LIMIT, count, answer=lambda: answer)


def rows(bench: Bench) -> Iterator[Row]:
    n, count = bench.size(1024, 64), bench.size(100, 2)
    forms = [twin(bench, n, count), *(form(name, session, n, count) for name, session in bench.sessions())]
    forms += bench.peers("branches", 1e-12, ("raptor-eagle",), n=n, count=count, branches=BRANCHES)
    yield Row(f"{BRANCHES} x 16 x {n:,}", forms, [Bound(name, 1.0, LIMIT) for name in (IN_PROCESS, DAEMON)])
