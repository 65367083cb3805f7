"""The type of ``eagle.plan``: a module that can be called. For type checkers only."""

from __future__ import annotations

from typing import Any, Protocol

from eagle._kernel import Kernel
from eagle.plan import BoundPlan as _BoundPlan
from eagle.plan import Plan as _Plan


class PlanModule(Protocol):
    """What ``eagle.plan`` offers."""

    BoundPlan: type[_BoundPlan]
    Plan: type[_Plan]

    def __call__(self, kernel: Kernel, scalar_type: Any = None) -> _Plan:
        """A plan of the kernel."""
        ...
