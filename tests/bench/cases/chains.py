"""Chains of y = a x + b, of which lines 1 to 4 and 16 are made."""

from __future__ import annotations

from typing import Any

import eagle
import numpy as np
from cases.inputs import chain_links, chain_start
from eagle import Param, Scalar, kernel
from frame import LIMIT, TWIN, Bench, Form


@kernel
def affine(x: Scalar, a: Param, b: Param) -> Scalar:
    y = a * x + b
    return y  # noqa: RET504  # it names the plane


def planes_of(session: Any, n: int) -> list[np.ndarray]:
    return [session.asarray(chain_start(n)), *(session.zeros(n) for _ in chain_links())]


def add_chain(g: eagle.Graph, planes: list[Any]) -> None:
    for (a, b), x, y in zip(chain_links(), planes, planes[1:], strict=False):
        g.add(eagle.plan(affine).bind(x=x, y=y, a=float(a), b=float(b)))


def bound_chain(planes: list[Any]) -> list[Any]:
    links = zip(chain_links(), planes, planes[1:], strict=False)
    return [eagle.plan(affine).bind(x=x, y=y, a=float(a), b=float(b)) for (a, b), x, y in links]


def stored_form(name: str, session: Any, n: int, count: int) -> Form:
    """Every plane is an array that the user holds."""
    planes = planes_of(session, n)
    g = eagle.Graph(session)
    add_chain(g, planes)
    g.build()
    return Form(name, lambda: void(g.launch(count)), units=count, answer=lambda: planes[1:])


def scratch_form(name: str, session: Any, n: int, count: int) -> Form:
    """The planes between the first and the last are scratch."""
    g = eagle.Graph(session)
    planes = planes_of(session, n)
    first, last = planes[0], planes[-1]
    add_chain(g, [first, *(g.scratch(n) for _ in range(len(planes) - 2)), last])
    g.build()
    return Form(name, lambda: void(g.launch(count)), units=count, answer=lambda: [last])


def twin_forms(bench: Bench, n: int, count: int, scratch: bool) -> list[Form]:
    """Every plane stored: blocks that stay in the first-level cache, or values in registers; the faster one is the
    limit. Scratch: nothing stored but the last plane."""
    forms, links = [], chain_links()
    for form in ["scratch"] if scratch else ["blocked", "stored"]:
        planes = [chain_start(n), *(np.zeros(n) for _ in chain_links())]
        forms.append(
            Form(
                f"{TWIN}, {form}",
                lambda form=form, planes=planes, links=links: bench.twins.chain(form, planes, links, count),
                LIMIT,
                count,
                answer=lambda planes=planes: [planes[-1]] if scratch else planes[1:],
            )
        )
    return forms


def void(_: object) -> None:
    """What a form's ``run`` returns when it is timed from outside."""
