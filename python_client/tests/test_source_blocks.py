"""The lines of a function are found without a tokenizer, and are those that ``inspect`` finds."""

from __future__ import annotations

import argparse
import ast
import inspect
import tempfile
import textwrap
import types
import typing

import pytest

import eagle
from eagle.frontend.source import Source, block, from_function


@pytest.mark.parametrize("module", [argparse, inspect, tempfile, textwrap, typing], ids=lambda m: m.__name__)
def test_the_lines_of_every_function_of_a_module_are_those_of_inspect(module: types.ModuleType) -> None:
    text = inspect.getsource(module)
    lines = text.splitlines(keepends=True)
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    assert functions
    for function in functions:
        first = min([function.lineno, *(d.lineno for d in function.decorator_list)]) - 1
        found, expected = block(lines[first:]), inspect.getblock(lines[first:])
        assert "".join(found).rstrip() == "".join(expected).rstrip(), function.name


@pytest.mark.parametrize(
    ("text", "ends_with"),
    [
        ("@d\ndef f(x): return x\ny = 1\n", "return x\n"),
        ("@d(\n  1,\n)\ndef f(\n    x,\n):\n    return x\n)\n", "    return x\n"),
        ("    def f(x):\n        return x\n    # of the class\n    y = 1\n", "        return x\n"),
        ("def f(x):\n# in it\n    return x\n\n\ny = 1\n", "    return x\n"),
        ('def f(x):\n    y = """\nat the edge\n"""\n    return y\n', "    return y\n"),
        ("def f(x):\n    return x + \\\n1\ny = 2\n", "1\n"),
        ("if a:\n    pass\n", "    pass\n"),
        ("\tdef f(x):\n\t\treturn x\n\ty = 1\n", "\t\treturn x\n"),
        ("def f(x):\n    return x", "    return x"),
    ],
)
def test_what_ends_a_function(text: str, ends_with: str) -> None:
    assert "".join(block(text.splitlines(keepends=True))).endswith(ends_with)


def test_a_long_text_at_the_edge_within_a_function_ends_nothing() -> None:
    lines = ["def f(x):\n", '    """\n', *(f"line {i}\n" for i in range(200)), '    """\n', "    return x\n", "y = 1\n"]
    assert block(lines) == lines[:-1]


def test_a_file_that_was_changed_since_and_does_not_parse_is_refused_by_its_place() -> None:
    lines = ["def f(x):\n", "    return (\n", "y = 1\n"]
    with pytest.raises(eagle.KernelSyntaxError, match=r"k\.py:7: a kernel's source does not parse"):
        Source("k.py", 6, "".join(block(lines)))


def test_lines_that_are_known_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["    def f(\n", "        x,\n", "    ):\n", "        return x\n", "    y = 1\n"]
    tried: list[str] = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda text: (tried.append(text), parse(text))[1])
    assert block(lines, 4) == lines[:4]
    assert tried == ["if 1:\n" + "".join(lines[:4])]


def test_a_file_that_is_shorter_by_now_is_read_to_its_end() -> None:
    assert block(["def f(x):\n", "    return x\n"], 9) == ["def f(x):\n", "    return x\n"]


def test_a_decorated_function_is_read_to_the_last_line_of_its_own_code() -> None:
    if True:

        def outer(
            x: float,
        ) -> list[float]:
            def inner() -> float:
                return x

            return [
                inner(),
                x,
            ]

        y = 1.0
    assert y and from_function(outer).lines[-1].strip() == "]"
    place = from_function(outer).function.body[0]
    assert from_function(outer).line_of(place) == outer.__code__.co_firstlineno + 3
    assert from_function(outer).column_of(place) == 13
