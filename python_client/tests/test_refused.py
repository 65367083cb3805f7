"""What the front end refuses: each construct by name, with its place and what to write instead."""

from __future__ import annotations

import ast
import sys

import pytest
from test_accepted import BODIES

import eagle
from eagle.frontend import refusals

ARGUMENTS = (
    "x: Mutable[Scalar], y: Scalar, i: Index, p: Vector[3], m: Matrix[2, 3], a: Param, done: Terminated, "
    't: Table[Scalar], u: Table["row":3, "column":4]'
)

# (body, where the refused part begins, words of the message)
CONSTRUCTS = [
    ("for k in y:\n        x = x + 1", "y:", ["over something that is no range", "range(n)"]),
    ("for k in p:\n        x = x + 1", "p:", ["over something that is no range", "v[0]"]),
    ("for k in [1, 2]:\n        x = x + 1", "[1", ["over something that is no range"]),
    (
        "for k in range(i):\n        x = x + 1",
        "range(i)",
        ["not known before the kernel runs", "eagle.bounded(range(n)"],
    ),
    ("for k in range(3):\n        x = x + 1\n    else:\n        x = y", "x = y", ["the `else` of a loop"]),
    ("for k, j in range(3):\n        x = x + 1", "k, j", ["a name"]),
    ("for k in range(y):\n        x = x + 1", "y)", ["range takes an integer", "int(...)"]),
    ("for k in range(3.0):\n        x = x + 1", "3.0", ["range takes an integer", "found a real"]),
    ("for k in range(True):\n        x = x + 1", "True", ["range takes an integer", "found a boolean"]),
    ("for k in range(0, 3, 0):\n        x = x + 1", "0):", ["step 0"]),
    ("for k in range():\n        x = x + 1", "range()", ["1 to 3 arguments"]),
    ("for k in range(2**62):\n        x = x + 1", "range(2**62)", ["more than 2^40", "eagle.bounded"]),
    ("for k in eagle.bounded(range(i)):\n        x = x + 1", "eagle", ["the largest number of trips"]),
    ("for k in eagle.bounded(range(i), i):\n        x = x + 1", "i):", ["a constant from 1 to 2^40", "integer"]),
    ("for k in eagle.bounded(range(i), 0):\n        x = x + 1", "0):", ["from 1 to 2^40", "the constant 0"]),
    ("for k in eagle.bounded(range(i), 2**41):\n        x = x + 1", "2**41", ["from 1 to 2^40"]),
    ("for a in range(3):\n        x = x + 1", "a in", ["'a' is a Param"]),
    (
        "for k in range(3):\n        x = x + 1\n    x = k",
        "k\n",
        ["'k' gets its first value inside the `for` loop in line 3"],
    ),
    ("for k in range(3):\n        z = y\n    x = z", "z\n", ["'z' gets its first value", "before that loop"]),
    ("for k in range(3):\n        x = x + z\n        z = y", "z\n", ["'z' is read before it has a value"]),
    ("z = 1\n    for k in range(3):\n        z = y > 0", "for", ["'z' is a integer before a trip", "boolean after"]),
    ("z = p\n    for k in range(3):\n        z = y", "for", ["'z' is a real[3] before a trip"]),
    ("for k in range(3):\n        t = y", "for", ["'t' is changed in a loop"]),
    ("while x < 3:\n        x = x + 1", "while", ["without a stated maximum", "while eagle.bounded(100) and"]),
    ("while True:\n        x = x + 1", "while", ["without a stated maximum"]),
    ("while x < 3 and eagle.bounded(5):\n        x = x + 1", "while", ["without a stated maximum"]),
    ("while eagle.bounded(5) or x < 3:\n        x = x + 1", "while", ["without a stated maximum"]),
    ("while eagle.bounded(5) and x:\n        x = x + 1", "x:", ["expected a condition"]),
    ("while eagle.bounded(n=5):\n        x = x + 1", "while", ["without a stated maximum"]),
    ("while eagle.bounded(2.5):\n        x = x + 1", "2.5", ["from 1 to 2^40", "the constant 2.5"]),
    (
        "while eagle.bounded(9) and x < 3:\n        x = x + 1\n    else:\n        x = y",
        "x = y",
        ["the `else` of a loop"],
    ),
    ("while eagle.bounded(9) and x < 3:\n        z = y\n    x = z", "z\n", ["'z' gets its first value", "`while`"]),
    ("x = y if eagle.bounded(3) else a", "eagle", ["in the head of a loop only"]),
    ("x = range(3)", "range", ["in the head of a loop only"]),
    ("async for k in range(3):\n        x = y", "async", ["`async for`"]),
    ("if x > 0:\n        break", "break", ["no loop around it"]),
    ("if x > 0:\n        continue", "continue", ["no loop around it"]),
    ("def g():\n        break\n    for k in range(3):\n        x = g()", "break", ["no loop around it"]),
    ("try:\n        x = y\n    except ValueError:\n        x = a", "try", ["`try`", "cannot raise"]),
    ("with y:\n        x = y", "with", ["`with`"]),
    ("raise ValueError", "raise", ["`raise`"]),
    ("assert x > 0", "assert", ["`assert`"]),
    ("global y", "global", ["`global`"]),
    ("nonlocal z", "nonlocal", ["`nonlocal`"]),
    ("del x", "del", ["`del`"]),
    ("import math", "import", ["`import`", "outside"]),
    ("from math import pi", "from", ["`import`", "outside"]),
    ("if x > 0:\n        def g(): return 1", "def", ["a local function inside an `if` or a loop"]),
    ("def x(): return 1", "def", ["'x' stands for something else already"]),
    ("def g(): return y\n    x = g", "g\n", ["the function 'g' is not a number", "g(...)"]),
    ("def g(): return y\n    x = g(1)", "g(1)", ["'g' takes 0 argument(s), found 1"]),
    ("def g(b): return b\n    x = g()", "g()", ["argument 'b' of 'g' is missing"]),
    ("def g(b): return b\n    x = g(y, b=1)", "b=1", ["'g' takes no 'b' here", "arguments are b"]),
    ("def g(b): return b\n    x = g(c=1)", "c=1", ["'g' takes no 'c' here"]),
    ("def g(b): return b\n    x = g(**p)", "**p", ["'g' takes no ** here"]),
    ("def g(b): return b\n    x = g(*p)", "*p", ["a starred argument"]),
    ("def g(*b): return 1\n    x = g()", "g()", ["any number of arguments (*b)"]),
    ("def g(b=1): return b\n    x = g()", "def", ["default values of the local function"]),
    ("def g(): return g()\n    x = g()", "g()\n", ["'g' calls itself (f -> g -> g)", "loop"]),
    ("def g(): pass\n    x = g()", "pass", ["ends without `return`"]),
    ("def g(): return\n    x = g()", "return", ["nothing is returned here"]),
    ("def g():\n        if x > 0: return 1\n    x = g()", "if", ["ends without `return`"]),
    (
        "def g():\n        if x > 0: return 1\n        return 1, 2\n    x = g()",
        "return 1, 2",
        ["gives 2 value(s)", "another one 1"],
    ),
    ("def g():\n        if x > 0: return 1\n        return y > 0\n    x = g()", "if", ["what is returned becomes"]),
    ("def g():\n        nonlocal z\n        return 1\n    x = g()", "nonlocal", ["`nonlocal`"]),
    ("def g(): return 1, 2\n    x = g()", "g()\n", ["2 values for one name"]),
    ("def g(): return 1, 2\n    x = 1 + g()", "g()\n", ["this call gives 2 values"]),
    ("def g(): return 1, 2\n    b, c, d = g()", "b, c", ["3 names for 2 values"]),
    ("@abs\n    def g(): return 1\n    x = g()", "def", ["has a decorator"]),
    ("x = eagle.dispatch(i)", "eagle", ["an integer and a list of functions"]),
    ("x = eagle.dispatch(i, y)", "eagle", ["an integer and a list of functions"]),
    ("x = eagle.dispatch(i, [])", "[]", ["0 branches", "1 to 64"]),
    ("x = eagle.dispatch(y, [lambda: 1])", "y, [", ["dispatch takes an integer", "int(...)"]),
    ("x = eagle.dispatch(i, [y])", "y]", ["a function without arguments"]),
    ("x = eagle.dispatch(i, [abs])", "abs]", ["a function without arguments"]),
    ("x = eagle.dispatch(i, [lambda b: b])", "lambda b", ["argument 'b' of 'lambda' is missing"]),
    ("x = eagle.dispatch(i, [lambda: 1, lambda: y > 0])", "lambda: y", ["gives a boolean, another one a integer"]),
    ("x = eagle.dispatch(i, [lambda: 1, lambda: (1, 2)])", "lambda: (1", ["gives 2 value(s), the first one 1"]),
    ("x = eagle.dispatch(i, [lambda: 1], policy='fast')", "'fast'", ["the policy 'fast'", "segmented"]),
    ("x = eagle.dispatch(i, [lambda: 1], name=i)", "i)", ["the name of a dispatch is a text"]),
    ("x = eagle.dispatch(i, [lambda: 1], kind=2)", "kind=2", ["takes no 'kind' here"]),
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
    ("x = y[0]", "y[0]", ["a subscript of a real", "Table"]),
    ("x = p[3]", "p[3]", ["component 3 of 3", "0 to 2"]),
    ("x = p[-4]", "p[-4]", ["component -4 of 3"]),
    ("x = p[i]", "p[i]", ["no constant integer", "eagle.dispatch"]),
    ("x = p[1.0]", "p[1.0]", ["no constant integer"]),
    ("x = p[True]", "p[True]", ["no constant integer"]),
    ("x = p[0, 1]", "p[0, 1]", ["takes one index"]),
    ("x = m[0]", "m[0]", ["takes row and column"]),
    ("x = m[2, 0]", "m[2, 0]", ["component 2 of 2"]),
    ("x = p[0:2]", "p[", ["a slice", "one by one"]),
    ("x = p.x", "p.x", ["attribute of 'p'", "v[0]"]),
    ("p[0] = x", "p[0]", ["'p' is a Vector[3], which is only read"]),
    ("p[0] += x", "p[0]", ["'p' is a Vector[3], which is only read"]),
    ("q = p\n    q[0] = y > 0", "q[0]", ["a component is a number"]),
    ("q = p\n    q[i] = y", "q[i]", ["no constant integer"]),
    ("(p + p)[0] = y", "(p", ["a component of an expression"]),
    ("math[0] = y", "math[0]", ["'math' is no vector of this kernel's"]),
    ("x = t", "t\n", ["'t' is a Table[Scalar], not a number", "t.at(i)"]),
    ("x = t[i]", "t[i]", ["a subscript of 't'", "t.at(i)"]),
    ("x = t.get(i)", "t.get", ["has no 'get'", "t.at(i)"]),
    ("x = t.at(y)", "y)", ["'t.at' takes an integer", "int(...)"]),
    ("x = t.at(y > 0)", "y > 0", ["'t.at' takes an integer"]),
    ("x = t.at()", "t.at()", ["is missing"]),
    ("x = t.at(i, i)", "t.at", ["takes 1 index"]),
    ("x = t.at(i=i)", "i=i", ["takes no 'i'"]),
    ("x = u.at(i)", "u.at", ["the index 'column' of 'u' is missing", "u.at(row, column)"]),
    ("x = u.at(i, row=i)", "row=i", ["takes no 'row' here"]),
    ("x = u.at(row=i, depth=i)", "depth=i", ["takes no 'depth' here"]),
    ("x = u.at(*p)", "u.at", ["takes 2 index"]),
    ("t = y", "t =", ["'t' is a Table[Scalar], which is only read"]),
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
    ("x = i ** 17", "i ** 17", ["`**` of integers", "the constant 17"]),
    ("x = i ** i", "i ** i", ["`**` of integers", "found a integer", "float(a) ** b"]),
    ("x = p ** 2", "p ** 2", ["`**`", "real[3]"]),
    ("done = (y > 0) ** 2", "(y > 0) ** 2", ["booleans are not numbers"]),
    ("x = 10 ** 400 * y", "10 ** 400", ["the power 10 ** 400"]),
    ("x = 10.0 ** 400 * y", "10.0 ** 400", ["do not combine"]),
    ("x = (-2.0) ** 0.5 * y", "(-2.0) ** 0.5", ["is complex"]),
    ("done = (y > 0) // 2", "(y > 0) // 2", ["`//` takes integers, found a boolean", "1 if condition else 0"]),
    ("x = y // (x > 0)", "y // (x > 0)", ["booleans are not numbers"]),
    ("x = p // y", "p // y", ["`//` of a real[3] and a real"]),
    ("x = 1 // 0", "1 // 0", ["do not combine"]),
    ("x = 1 << 5000", "1 << 5000", ["a shift by 5000"]),
    ("x = 1 << -1", "1 << -1", ["do not combine", "negative shift"]),
    ("x = p @ m", "p @ m", ["`@` takes vectors or matrices", "real[2, 3]"]),
    ("x = y @ p", "y @ p", ["`@` takes", "found a real and a real[3]"]),
    ("x = y & 1", "y & 1", ["`&` takes integers, found a real"]),
    ("done = (y > 0) & (x > 0)", "(y > 0)", ["`&` takes integers, found a boolean", "`and`"]),
    ("done = (y > 0) | (x > 0)", "(y > 0)", ["`|` takes integers", "`or`"]),
    ("done = (y > 0) ^ (x > 0)", "(y > 0)", ["`^` takes integers", "a != b"]),
    ("x = y << 1", "y << 1", ["`<<` takes integers"]),
    ("x = y >> 1", "y >> 1", ["`>>` takes integers"]),
    ("x = ~y", "~y", ["`~` takes an integer"]),
    ("done = ~(y > 0)", "~(y > 0)", ["`~` takes an integer, found a boolean", "`not`"]),
    ("done = x is y", "x is y", ["`is`", "`==`"]),
    ("done = x is not y", "x is not y", ["`is not`"]),
    ("done = x in y", "x in y", ["`in`"]),
    ("done = x not in y", "x not in y", ["`not in`"]),
    ("x = print(y)", "print", ["'print'", "output"]),
    ("x = len(p)", "len", ["'len'", "annotation"]),
    ("x = sum(p)", "sum", ["'sum'", "eagle.math.sum"]),
    ("x = sorted(p)", "sorted", ["'sorted'", "abs, min, max"]),
    ("x = math.remainder(y, 2.0)", "math.remainder", ["'math.remainder'", "IEEE"]),
    ("x = math.hypot(y, y, y)", "math.hypot(y, y, y)", ["math.hypot takes 2 argument(s), found 3"]),
    ("x = math.log(y, 2)", "math.log(y, 2)", ["math.log takes 1 argument(s), found 2"]),
    ("x = round(y, 2)", "round(y, 2)", ["round takes 1 argument(s), found 2"]),
    ("x = eagle.math.sin(y > 0)", "eagle.math.sin", ["sin", "booleans are not numbers"]),
    ("x = eagle.math.pow(p, y)", "eagle.math.pow", ["pow of a real[3] and a real"]),
    ("done = eagle.math.isnan(p)", "eagle.math.isnan", ["isnan of a real[3]", "one component"]),
    ("x = math.log(-1)", "math.log(-1)", ["log of -1.0 is no number"]),
    ("x = np.minimum(x, y)", "np.minimum", ["'np.minimum'", "eagle.math.minimum"]),
    ("x = np.where(x > 0, x, y)", "np.where", ["'np.where'", "eagle.select"]),
    ("x = np.dot(p, p)", "np.dot", ["'np.dot'", "eagle.math"]),
    ("x = eagle.zeros(3)", "eagle.zeros", ["'eagle.zeros'", "functions it can read"]),
    ("x = eagle.math.dot(p, y)", "eagle.math.dot", ["dot takes two vectors of one length", "a real[3] and a real"]),
    ("x = eagle.math.norm(m)", "eagle.math.norm", ["norm takes a vector"]),
    ("z = eagle.math.cross(p, p[0])", "eagle.math.cross", ["two vectors of 3 components"]),
    ("z = eagle.math.transpose(p)", "eagle.math.transpose", ["takes a matrix"]),
    ("z = eagle.math.quat_rotate(p, p)", "eagle.math.quat_rotate", ["a quaternion and a vector of 3"]),
    ("x = eagle.math.minimum(p, y)", "eagle.math.minimum", ["minimum of a real[3] and a real"]),
    ("z = eagle.vector(p, y)", "eagle.vector", ["a component is a number, found a real[3]"]),
    ("z = eagle.vector(y > 0, y)", "eagle.vector", ["found a boolean"]),
    ("z = eagle.vector()", "eagle.vector", ["vector takes 1 or more"]),
    ("z = eagle.quat(1, 0, 0)", "eagle.quat", ["quat takes 4"]),
    ("z = eagle.matrix([[1, 2], [3]])", "eagle.matrix", ["rows of equal length"]),
    ("z = eagle.matrix(y)", "eagle.matrix", ["rows of equal length"]),
    ("x = eagle.sample_index(1)", "eagle.sample_index", ["takes 0 argument(s)"]),
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
    ("return x if y > 0 else None", "return", ["-> Scalar"]),
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
    ("(x: Mutable[Table[Scalar]])", ["Mutable[Table[Scalar]]: expected Scalar"]),
    ("(x: Table)", ["'Table' is not the role"]),
    ("(x: Table[Param])", ["Table[Param]: expected the role of an element"]),
    ("(x: Table[3])", ["Table[3]: expected the role of an element"]),
    ("(x: Table['a':0])", ["expected the role of an element, named axes"]),
    ("(x: Table['a':2, 'a':3])", ["two axes have the same name"]),
    ("(x: Table['a':2.5])", ["is not a role"]),
    ("(x: Scalar) -> Table[Scalar]", ["not what a kernel can return"]),
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


PATHS = [
    ("Scalar", "if x > 0:\n        return x + 1", ["a path through the kernel ends without `return`"]),
    ("Scalar", "for k in range(3):\n        return x + 1", ["a path through the kernel ends without `return`"]),
    ("Scalar", "if x > 0:\n        return\n    return x + 1", ["nothing is returned here"]),
    (
        "dict[str, Scalar]",
        "if x > 0:\n        return {'a': x}\n    return {'b': x}",
        ["another `return` has the keys a"],
    ),
    ("Scalar", "if x > 0:\n        return x + 1\n    return x > 3", ["'out' is a Scalar"]),
]


@pytest.mark.parametrize(("annotation", "body", "words"), PATHS)
def test_every_path_returns_the_same_outputs(annotation, body, words):
    with pytest.raises(eagle.KernelSyntaxError) as caught:
        eagle.kernel(source=f"def f(x: Scalar) -> {annotation}:\n    {body}")
    for word in words:
        assert word in str(caught.value)


def body_as_module(body: str) -> str:
    return f"def f():\n    {body}"


def test_every_statement_and_expression_of_python_is_accepted_or_refused_by_name():
    accepted = {
        *("Assign", "AugAssign", "If", "For", "While", "Break", "Continue", "Return", "FunctionDef", "Expr", "Pass"),
        *("Constant", "Name", "Attribute", "BinOp", "UnaryOp", "Compare", "BoolOp", "IfExp", "Call", "Subscript"),
    }
    every = {c.__name__ for c in [*ast.stmt.__subclasses__(), *ast.expr.__subclasses__()]}
    assert every - accepted <= refusals.STATEMENTS.keys() | refusals.EXPRESSIONS.keys()
    # Every operator appears in a kernel of test_accepted.py.
    tested = {
        type(node.op)
        for body in BODIES.values()
        for node in ast.walk(ast.parse(body_as_module(body)))
        if hasattr(node, "op")
    }
    assert set(ast.operator.__subclasses__()) - tested == {ast.MatMult}  # test_vectors.py
    assert set(ast.unaryop.__subclasses__()) <= tested
    compared = {
        type(op)
        for body in BODIES.values()
        for node in ast.walk(ast.parse(body_as_module(body)))
        for op in getattr(node, "ops", [])
    }
    assert set(ast.cmpop.__subclasses__()) - compared == refusals.COMPARISONS.keys()


def test_a_very_deep_expression_is_refused_and_not_a_crash():
    deep = "(" * 60 + "x" + " + 1)" * 60
    assert eagle.kernel(source=f"def f(x: Mutable[Scalar]):\n    x = {deep}").hash
    with pytest.raises(eagle.KernelSyntaxError, match="nested too deeply"):
        eagle.kernel(source=f"def f(x: Mutable[Scalar]):\n    x = {'x + ' * 5000}1")


def test_the_caret_stands_under_the_character_whatever_comes_before_it():
    with pytest.raises(eagle.KernelSyntaxError) as caught:
        eagle.kernel(source="def f(größe: Mutable[Scalar]):\n\tgröße = größe << größe\n")
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
