"""What the parts of the front end share while they read one function."""

from __future__ import annotations

import ast
from typing import Any, Callable, Optional, Union

from eagle._data_classes import data_class, field
from eagle.frontend.arithmetic import Arithmetic
from eagle.frontend.names import Names
from eagle.frontend.scope import Scope
from eagle.frontend.source import Source
from eagle.frontend.tape import Operand, Tape, Type
from eagle.frontend.vectors import Vectors

# One result, or as many as a `return a, b` gives.
Results = Union[Operand, list[Operand]]
# The types in which a loop carries names; None for a result that no trip has given yet.
Carried = dict[str, Optional[Type]]
# Where something stands: the calls that led there, each by its line and column.
Path = tuple[tuple[int, int], ...]


@data_class
class Context:
    """One translation."""

    real: Type
    read: Callable[[Frame, list[ast.stmt]], Results]  # a called function's statements
    tape: Tape = field(default_factory=Tape)
    calls: int = 0  # of functions that were read in
    groups: dict[Path, str] = field(default_factory=dict)  # names of dispatch groups
    # How a loop turned out when it was read last: where a loop around it is read again, a good first guess.
    guesses: dict[Path, Carried] = field(default_factory=dict)


class Frame:
    """One function being read: the kernel, or one that is read into it."""

    def __init__(
        self, context: Context, scope: Scope, names: Names, path: Path = (), chain: tuple[Any, ...] = ()
    ) -> None:
        self.context = context
        self.scope = scope
        self.names = names
        self.path = path
        self.chain = chain  # the functions that are being read, outermost first
        self.arithmetic = Arithmetic(scope.source, context.real, context.tape)
        self.vectors = Vectors(self.arithmetic)

    def path_to(self, node: ast.expr | ast.stmt) -> Path:
        return (*self.path, (node.lineno, node.col_offset))

    @property
    def source(self) -> Source:
        return self.scope.source

    @property
    def tape(self) -> Tape:
        return self.context.tape
