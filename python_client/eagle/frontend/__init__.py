"""The front end: a Python function's syntax tree becomes a kernel.

It denies by default: what no rule accepts is refused with file, line, column and what to write instead.

- ``source.py``       where the text of a kernel comes from, and how a refusal points into it
- ``names.py``        names of the surroundings: constants, accepted functions, functions to read
- ``signature.py``    annotations to arguments and outputs
- ``tape.py``         typed operations as they are recorded, and ``emit.py`` their way into the C++ builder
- ``scope.py``        what the names of one function stand for, and ``frame.py`` all that its readers share
- ``reals.py``        which functions of reals there are, by the names of ``math``, ``numpy`` and ``eagle.math``
- ``arithmetic.py``   operands of unlike types: what is converted, folded or refused; ``vectors.py``
- ``expressions.py``  an operand for every expression, with ``calls.py`` and ``functions.py``
- ``statements.py``   assignments, branches, leaving early; ``loops.py``; ``returns.py``
- ``translate.py``    a kernel's statements, roles and outputs: start here
- ``refusals.py``     the constructs that are not accepted, each with its cure
"""

from __future__ import annotations

from eagle.frontend.names import Names, UnresolvedName
from eagle.frontend.signature import Outputs, Signature, read_signature
from eagle.frontend.source import Source, from_function, from_text
from eagle.frontend.translate import Translation, translate

__all__ = [
    "Names",
    "Outputs",
    "Signature",
    "Source",
    "Translation",
    "UnresolvedName",
    "from_function",
    "from_text",
    "read_signature",
    "translate",
]
