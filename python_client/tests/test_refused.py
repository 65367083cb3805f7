"""What the front end refuses: each construct by name, with its place and what to write instead."""

from __future__ import annotations

import ast
import sys

import pytest

import eagle
from eagle.frontend import refusals

ARGUMENTS = "x: Mutable[Scalar], y: Scalar, i: Index, p: Vector[3], a: Param, done: Terminated"

# (body, where the refused part begins, words of the message)
CONSTRUCTS = [
    ("for k in range(3):\n        x = x + 1", "for", ["`for` loop", "eagle.simulate"]),
    ("while x < 3:\n        x = x + 1", "while", ["`while` loop", "eagle.simulate"]),
    ("if x > 0:\n        break", "break", ["`break`"]),
    ("if x > 0:\n        continue", "continue", ["`continue`"]),
    ("try:\n        x = y\n    except ValueError:\n        x = a", "try", ["`try`", "cannot raise"]),
    ("with y:\n        x = y", "with", ["`with`"]),
    ("raise ValueError", "raise", ["`raise`"]),
    ("assert x > 0", "assert", ["`assert`"]),
    ("global y", "global", ["`global`"]),
    ("nonlocal z", "nonlocal", ["`nonlocal`"]),
    ("del x", "del", ["`del`"]),
    ("import math", "import", ["`import`", "outside"]),
    ("from math import pi", "from", ["`import`", "outside"]),
    ("def g(): pass", "def", ["nested function"]),
    ("async def g(): pass", "async", ["async function"]),
    ("class C: pass", "class", ["a class"]),
    ("x: float = y", "x", ["annotated assignment", "name = value"]),
    ("x = (lambda: 1)()", "lambda", ["calling"]),
    ("x = lambda: 1", "lambda", ["lambda"]),
    ("x = [k for k in y]", "[", ["list comprehension"]),
    ("x = {k for k in y}", "{", ["set comprehension"]),
    ("x = {k: k for k in y}", "{", ["dict comprehension"]),
    ("x = max(k for k in y)", "(k", ["generator expression"]),
    ("x = (k for k in y)", "(k", ["generator expression"]),
    ("x = [1, 2]", "[", ["a list"]),
    ("x = {1, 2}", "{", ["a set"]),
    ("x = {1: 2}", "{", ["a dict"]),
    ("x = 1, 2", "1,", ["a tuple"]),
    ("x = y if (y, 1) else a", "(y", ["a tuple"]),
    ("z, *w = 1, 2", "*w", ["starred"]),
    ("z, w = 1, *y", "*y", ["starred"]),
    ("(z, w), v = 1, 2", "(z", ["nested"]),
    ("z, w = y", "z", ["taking one value apart"]),
    ("z, w = 1, 2, 3", "z", ["2 names for 3 values"]),
    ("x = p[0]", "p[0]", ["subscript"]),
    ("p[0] = x", "p[0]", ["subscript"]),
    ("x = p[0:2]", "p[", ["subscript"]),
    ("p[0] += x", "p[0]", ["subscript"]),
    ("x = y.real", "y.real", ["attribute of 'y'"]),
    ("x = y.real()", "y.real", ["calling 'y.real'"]),
    ("y.z = x", "y.z", ["an attribute"]),
    ("x = (y.q + 1).z", "(y.q", ["attribute"]),
    ("x = (z := y)", "z :=", ["walrus"]),
    ("x = 'text'", "'text'", ["a string"]),
    ("x = b'text'", "b'text'", ["bytes"]),
    ("x = f'{y}'", "f'", ["f-string"]),
    ("x = None", "None", ["None"]),
    ("x = 2j", "2j", ["complex"]),
    ("x = ...", "...", ["Ellipsis"]),
    ("yield x", "yield", ["`yield`"]),
    ("x = yield", "yield", ["`yield`"]),
    ("yield from x", "yield", ["`yield from`"]),
    ("x + y", "x + y", ["expression on its own"]),
    ("x = y\n    '''second'''", "'''second", ["expression on its own"]),
    ("x = y ** 2", "y ** 2", ["`**`", "x * x"]),
    ("x = y // 2", "y // 2", ["`//`"]),
    ("x = y % 2", "y % 2", ["`%`"]),
    ("x = p @ p", "p @ p", ["`@`"]),
    ("x = i & 1", "i & 1", ["`&`", "`and`"]),
    ("x = i | 1", "i | 1", ["`|`", "`or`"]),
    ("x = i ^ 1", "i ^ 1", ["`^`"]),
    ("x = i << 1", "i << 1", ["`<<`"]),
    ("x = i >> 1", "i >> 1", ["`>>`"]),
    ("x //= 2", "x //= 2", ["`//`"]),
    ("x = ~i", "~i", ["`~`", "`not`"]),
    ("done = x is y", "x is y", ["`is`", "`==`"]),
    ("done = x is not y", "x is not y", ["`is not`"]),
    ("done = x in y", "x in y", ["`in`"]),
    ("done = x not in y", "x not in y", ["`not in`"]),
    ("x = print(y)", "print", ["'print'", "abs, min, max"]),
    ("x = round(y)", "round", ["'round'"]),
    ("x = math.sin(y)", "math.sin", ["'math.sin'", "math.sqrt"]),
    ("x = np.minimum(x, y)", "np.minimum", ["'np.minimum'"]),
    ("x = eagle.zeros(3)", "eagle.zeros", ["'eagle.zeros'"]),
    ("x = math", "math", ["module"]),
    ("x = abs", "abs", ["the function 'abs'"]),
    ("x = math.pi(y)", "math.pi", ["is a number, not a function"]),
    ("x = y(1)", "y", ["calling 'y'"]),
    ("x = min(y)", "min(y)", ["min takes 2 or more"]),
    ("x = abs(x, y)", "abs(x, y)", ["abs takes 1"]),
    ("x = abs(x=y)", "x=y", ["keywords"]),
    ("x = max(*y)", "*y", ["stars"]),
    ("x = unheard_of", "unheard_of", ["'unheard_of' is not defined"]),
    ("x = z\n    z = y", "z", ["'z' is read before it has a value"]),
    ("if x > 0:\n        z = y\n    x = z", "z\n", ["'z' has a value on one path only of the `if` in line 3"]),
    ("if x > 0:\n        pass\n    else:\n        z = 1\n    x = z", "z\n", ["'z'", "one path only"]),
    ("if x > 0:\n        if y > 0:\n            z = 1\n        x = z", "z\n", ["'z'", "in line 4"]),
    ("if x > 0:\n        z = 1\n    else:\n        z = y > 0", "if", ["'z' becomes a integer", "boolean"]),
    ("y = x", "y", ["'y' is a Scalar, which is only read", "Mutable[Scalar]"]),
    ("i += 1", "i", ["'i' is a Index, which is only read"]),
    ("a = 1.0", "a", ["'a' is a Param, which is only read"]),
    ("x = x > 0", "x", ["'x' is a Mutable[Scalar]", "float(condition)"]),
    ("x = p", "x", ["equal extents"]),
    ("x = p + 1", "p + 1", ["equal extents"]),
    ("x = 1 if p > p else 2", "p > p", ["compares a real[3]"]),
    ("done = x", "done", ["takes a condition", "comparison"]),
    ("x = y + (y > 0)", "y + (y > 0)", ["booleans are not numbers", "float(condition)"]),
    ("x = -(y > 0)", "-(y > 0)", ["booleans are not numbers"]),
    ("x = y if y else a", "y else", ["expected a condition", "x != 0"]),
    ("if y:\n        x = y", "y:", ["expected a condition"]),
    ("done = x and y > 0", "x and", ["expected a condition"]),
    ("done = not x", "x\n", ["expected a condition"]),
    ("done = (x > 0) == y", "(x > 0) == y", ["== of a boolean and a real"]),
    ("done = (x > 0) < (y > 0)", "(x > 0) < (y > 0)", ["booleans are not numbers"]),
    ("x = 1 / 0", "1 / 0", ["do not combine", "division by zero"]),
    ("x = i + 9223372036854775808", "i + 9", ["over the range of int64"]),
    ("x = math.sqrt(-1)", "math.sqrt(-1)", ["the square root of -1.0"]),
    ("x = int(1e400)", "int(1e400)", ["int(inf)"]),
    ("return\n    x = y", "return", ["before the end"]),
    ("if x > 0:\n        return", "return", ["before the end", "last statement"]),
    ("return x", "return", ["-> Scalar"]),
]
if sys.version_info >= (3, 10):
    CONSTRUCTS.append(("match x:\n        case 1:\n            x = y", "match", ["`match`", "if/elif/else"]))
if sys.version_info >= (3, 11):
    CONSTRUCTS.append(("try:\n        x = y\n    except* ValueError:\n        x = a", "try", ["`try`"]))


@pytest.mark.parametrize(
    ("body", "begins", "words"), CONSTRUCTS, ids=[body.split("\n")[0] for body, _, _ in CONSTRUCTS]
)
def test_refused_with_name_place_and_cure(body, begins, words):
    text = f"def f({ARGUMENTS}):\n    '''doc'''\n    {body}\n"
    with pytest.raises(eagle.KernelSyntaxError) as caught:
        eagle.kernel(source=text)
    error = caught.value
    assert isinstance(error, eagle.EagleError)
    assert isinstance(error, TypeError)
    assert (error.reason, error.code) == ("UNSUPPORTED_SYNTAX", "INVALID_ARGUMENT")
    head, line, caret, cure = str(error).split("\n")
    source_line = text.split("\n")[error.lineno - 1]
    assert head.startswith(f"<kernel source>:{error.lineno}:{error.column}: kernel 'f': ")
    assert line == f"    {source_line}"
    assert caret == "    " + " " * (error.column - 1) + "^"
    assert (source_line + "\n")[error.column - 1 :].startswith(begins)
    assert len(cure) > 10
    for word in words:
        assert word in str(error)


# (signature, words of the message)
SIGNATURES = [
    ("(x)", ["'x' has no role", "Scalar"]),
    ("(x: float)", ["'float' is not the role of an argument"]),
    ("(x: Unheard)", ["'Unheard' of an annotation is not defined"]),
    ("(x: Vector)", ["'Vector' is not the role"]),
    ("(x: Vector[0])", ["Vector[0]: expected 1 whole number(s)"]),
    ("(x: Vector[2.5])", ["not a role"]),
    ("(x: Matrix[2])", ["Matrix[2]: expected 2 whole number(s)", "Matrix[R, C]"]),
    ("(x: Mutable[Param])", ["Mutable[Param]: expected Scalar"]),
    ("(x: Param[bool])", ["Param[<class 'bool'>]"]),
    ("(x: list[Scalar])", ["is not a role"]),
    ("(x: 'not a role')", ["does not parse"]),
    ("(x: Mutable[Scalar] = 1.0)", ["default values"]),
    ("(*x: Scalar)", ["'*x' is not accepted"]),
    ("(**x: Scalar)", ["'**x' is not accepted"]),
    ("(*, x: Scalar)", ["keyword-only"]),
    ("(x: Terminated, y: Terminated)", ["one Terminated"]),
    ("(session: Scalar)", ["'session' is a keyword"]),
    ("(x: Scalar) -> float", ["not what a kernel can return"]),
    ("(x: Scalar) -> Terminated", ["not what a kernel can return"]),
    ("(x: Scalar) -> Mutable[Scalar]", ["not what a kernel can return"]),
    ("(x: Scalar) -> list[Scalar]", ["is not a role"]),
    ("(x: Scalar) -> Scalar", ["nothing is returned"]),
    ("(x: Scalar)", ["the kernel stores nothing"]),
]


@pytest.mark.parametrize(("signature", "words"), SIGNATURES, ids=[signature for signature, _ in SIGNATURES])
def test_signatures_are_refused_by_name(signature, words):
    with pytest.raises(eagle.KernelSyntaxError) as caught:
        eagle.kernel(source=f"def f{signature}:\n    pass")
    for word in words:
        assert word in str(caught.value)


RETURNS = [
    ("Scalar", "x, x", ["a tuple"]),
    ("Scalar", "x", ["the output 'x' has the name of an argument"]),
    ("Scalar", "x > 0", ["'out' is a Scalar"]),
    ("Index", "x + 1", ["int(...)"]),
    ("Vector[3]", "x + 1", ["equal extents"]),
    ("tuple[Scalar, Scalar]", "x + 1", ["a tuple of 2 outputs"]),
    ("tuple[Scalar, Scalar]", "x + 1, x + 2, x + 3", ["a tuple of 2 outputs"]),
    ("dict[str, Scalar]", "x + 1", ["a dict of outputs"]),
    ("dict[str, Scalar]", "{1: x + 1}", ["a key that is not a text"]),
    ("dict[str, Scalar]", "{'a': x + 1, 'a': x}", ["'a' is returned twice"]),
    ("{'a': Scalar, 'b': Scalar}", "{'a': x + 1}", ["the outputs a, b"]),
]


@pytest.mark.parametrize(("annotation", "returned", "words"), RETURNS)
def test_returns_are_refused_by_name(annotation, returned, words):
    with pytest.raises(eagle.KernelSyntaxError) as caught:
        eagle.kernel(source=f"def f(x: Scalar) -> {annotation}:\n    return {returned}")
    for word in words:
        assert word in str(caught.value)


def test_every_statement_and_expression_of_python_is_accepted_or_refused_by_name():
    accepted = {
        *("Assign", "AugAssign", "If", "Return", "Expr", "Pass"),
        *("Constant", "Name", "Attribute", "BinOp", "UnaryOp", "Compare", "BoolOp", "IfExp", "Call"),
    }
    every = {c.__name__ for c in [*ast.stmt.__subclasses__(), *ast.expr.__subclasses__()]}
    assert every - accepted <= refusals.STATEMENTS.keys() | refusals.EXPRESSIONS.keys()
    operators = set(ast.operator.__subclasses__()) - {ast.Add, ast.Sub, ast.Mult, ast.Div}
    assert operators == refusals.BINARY.keys()


def test_a_very_deep_expression_is_refused_and_not_a_crash():
    deep = "(" * 60 + "x" + " + 1)" * 60
    assert eagle.kernel(source=f"def f(x: Mutable[Scalar]):\n    x = {deep}").hash
    with pytest.raises(eagle.KernelSyntaxError, match="nested too deeply"):
        eagle.kernel(source=f"def f(x: Mutable[Scalar]):\n    x = {'x + ' * 5000}1")


def test_the_caret_stands_under_the_character_whatever_comes_before_it():
    with pytest.raises(eagle.KernelSyntaxError) as caught:
        eagle.kernel(source="def f(größe: Mutable[Scalar]):\n\tgröße = größe ** 2\n")
    assert caught.value.column == 10
    assert str(caught.value).split("\n")[2] == "    \t        ^"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(x: Scalar:\n    pass", "does not parse"),
        ("x = 1", "one function written with `def`"),
        ("", "one function"),
        ("async def f(x: Scalar): pass", "async functions and lambdas are not kernels"),
        ("def f(x: Mutable[Scalar]):\n    x = 1\ndef g(): pass", "one function"),
    ],
)
def test_a_text_that_is_no_function_is_refused(text, words):
    with pytest.raises(eagle.KernelSyntaxError) as caught:
        eagle.kernel(source=text)
    assert words in str(caught.value)


def test_a_kernel_over_the_limit_of_operations_is_refused_by_its_key():
    body = "\n    ".join(["x = x + 1"] * 9000)
    with pytest.raises(eagle.LimitExceeded, match="kernel_ops") as caught:
        eagle.kernel(source=f"def f(x: Mutable[Scalar]):\n    {body}")
    assert isinstance(caught.value, ValueError)
