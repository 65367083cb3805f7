"""A client that is killed while it does one thing over and over.

victim.py WHAT      prints "doing" once it is at it
"""

from __future__ import annotations

import itertools
import os
import sys
import time

import eagle
from eagle import Mutable, Param, Scalar, kernel
from eagle.graph import opaque


@kernel
def bump(x: Mutable[Scalar], a: Param):
    x = x + a


def tell_once(told: list[bool]) -> None:
    if not told:
        told.append(True)
        print("doing", flush=True)


def create(session: eagle.Session, told: list[bool]) -> None:
    kept = []
    for number in itertools.count():
        kept.append(session.zeros(100_000 + number))
        del kept[:-20]
        tell_once(told)


def build(session: eagle.Session, told: list[bool]) -> None:
    x = session.zeros(1000)
    kept = []
    for number in itertools.count():
        graph = eagle.Graph(session)
        for _ in range(50):
            graph.add(eagle.plan(bump).bind(x=x, a=float(number)))
        kept.append(graph.build())
        del kept[:-20]
        tell_once(told)


def launch(session: eagle.Session, told: list[bool]) -> None:
    graph = eagle.Graph(session)
    graph.add(eagle.plan(bump).bind(x=session.zeros(1_000_000), a=1.0))
    graph.build()
    while True:
        graph.launch(5)
        tell_once(told)


def call(session: eagle.Session, told: list[bool]) -> None:
    """Is killed inside of its own callable."""
    x = session.zeros(1000)

    def stay() -> None:
        tell_once(told)
        time.sleep(600)

    graph = eagle.Graph(session)
    graph.add(eagle.plan(bump).bind(x=x, a=1.0))
    graph.add_node(opaque(stay, reads={"x": x}), name="stay")
    graph.build().launch()


def leave(session: eagle.Session, told: list[bool]) -> None:
    """Ends its own process inside of its callable."""
    x = session.zeros(1000)

    def end() -> None:
        tell_once(told)
        os._exit(3)

    graph = eagle.Graph(session)
    graph.add_node(opaque(end, writes={"x": x}), name="end")
    graph.build().launch()


def simulate(session: eagle.Session, told: list[bool]) -> None:
    x, done = session.zeros(1_000_000), session.zeros(1_000_000, dtype=bool)
    tell_once(told)
    eagle.simulate(bump, max_steps=2**40, x=x, a=1.0, until=lambda: False, every=10)


def connect(session: eagle.Session, told: list[bool]) -> None:
    while True:
        with eagle.connect() as another:
            another.zeros(10)
        tell_once(told)


if __name__ == "__main__":
    globals()[sys.argv[1]](eagle.connect(), [])
