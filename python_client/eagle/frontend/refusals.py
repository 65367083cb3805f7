"""The constructs of Python that a kernel does not accept, each with what to write instead."""

from __future__ import annotations

import ast

_NO_LOOPS = "Write `for i in range(n):`."
_NO_CONTAINERS = "Use one name for each number: a, b = x, y. State belongs into arguments annotated Mutable[T]."
_NO_FUNCTIONS = (
    "Write the expression where it is used, or a function with `def` outside of the kernel; lambdas are branches of "
    "eagle.dispatch."
)
_NO_EFFECTS = (
    "A kernel only computes: assign to names, to Mutable arguments (state) and to a Terminated argument (the "
    "mask), and return outputs."
)
_NO_ERRORS = "A kernel cannot raise: compute a value for every sample, as in y = x if x > 0 else 0.0."
_NO_TEXT = "A kernel computes with numbers and booleans only."

# syntax node -> (what it is called, what to write instead)
STATEMENTS: dict[str, tuple[str, str]] = {
    "AsyncFor": ("an `async for` loop", _NO_LOOPS),
    "Try": ("`try`", _NO_ERRORS),
    "TryStar": ("`try`", _NO_ERRORS),
    "Raise": ("`raise`", _NO_ERRORS),
    "Assert": ("`assert`", _NO_ERRORS),
    "With": ("`with`", _NO_EFFECTS),
    "AsyncWith": ("`async with`", _NO_EFFECTS),
    "Match": ("`match`", "Write if/elif/else with comparisons."),
    "AsyncFunctionDef": ("an async function", _NO_FUNCTIONS),
    "ClassDef": ("a class", _NO_FUNCTIONS),
    "Import": ("`import`", "Import outside the kernel; math.sqrt and math.pi work inside."),
    "ImportFrom": ("`import`", "Import outside the kernel; math.sqrt and math.pi work inside."),
    "Global": ("`global`", _NO_EFFECTS),
    "Nonlocal": ("`nonlocal`", _NO_EFFECTS),
    "Delete": ("`del`", "Leave the name alone: names of a kernel cost nothing and end with it."),
    "AnnAssign": ("an annotated assignment", "Write `name = value`: types follow from the value."),
    "TypeAlias": ("a type alias", "Write it outside the kernel."),
}

EXPRESSIONS: dict[str, tuple[str, str]] = {
    "Lambda": ("a lambda", _NO_FUNCTIONS),
    "ListComp": ("a list comprehension", _NO_CONTAINERS),
    "SetComp": ("a set comprehension", _NO_CONTAINERS),
    "DictComp": ("a dict comprehension", _NO_CONTAINERS),
    "GeneratorExp": ("a generator expression", _NO_CONTAINERS),
    "List": ("a list", _NO_CONTAINERS),
    "Set": ("a set", _NO_CONTAINERS),
    "Dict": ("a dict (outside of `return`)", _NO_CONTAINERS),
    "Tuple": ("a tuple here", "Tuples stand on both sides of an assignment (a, b = x, y) or after `return`."),
    "Starred": ("a starred expression", _NO_CONTAINERS),
    "Slice": ("a slice", "Take components one by one, as in v[0]; a kernel sees one sample of every plane."),
    "NamedExpr": ("the walrus `:=`", "Assign on a line of its own first."),
    "JoinedStr": ("an f-string", _NO_TEXT),
    "TemplateStr": ("a template string", _NO_TEXT),
    "FormattedValue": ("an f-string", _NO_TEXT),
    "Await": ("`await`", _NO_EFFECTS),
    "Yield": ("`yield`", "Return outputs: `return y`, with `-> Scalar` in the signature."),
    "YieldFrom": ("`yield from`", "Return outputs: `return y`, with `-> Scalar` in the signature."),
}

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Is: ("`is`", "Write `==`."),
    ast.IsNot: ("`is not`", "Write `!=`."),
    ast.In: ("`in`", "Write the comparisons: x == 1 or x == 2."),
    ast.NotIn: ("`not in`", "Write the comparisons: x != 1 and x != 2."),
}


def of_node(node: ast.AST) -> tuple[str, str]:
    """What the construct is called, and its cure."""
    name = type(node).__name__
    for table in (STATEMENTS, EXPRESSIONS):
        if name in table:
            return table[name]
    return (f"`{name}`", "See the table of accepted constructs in the manual (kernels).")
