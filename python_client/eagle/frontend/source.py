"""Where a kernel's text comes from, and how a refusal points into it."""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
import linecache
import sys
import tokenize
import types
from typing import Any, Callable, NoReturn, Union

from eagle.errors import KernelSyntaxError, refusal

Place = Union[ast.expr, ast.stmt, ast.arg, ast.keyword, ast.alias, ast.excepthandler]


class Source:
    """The text of one function, its syntax tree, and where both stand in their file."""

    def __init__(self, filename: str, first_line: int, text: str) -> None:
        self.filename = filename
        self.first_line = first_line
        self.text = text
        self.lines = text.splitlines()
        # An indented def parses inside a block, so that columns stay those of the file; its tree is a line lower.
        self._above = int(text[:1].isspace())
        self.function = self._parse()
        self.title = f"kernel '{self.name}'"

    def titled(self, title: str) -> Source:
        """The same text under another title, with which its refusals begin."""
        other = copy.copy(self)
        other.title = title
        return other

    @property
    def name(self) -> str:
        return self.function.name

    def line_of(self, node: ast.AST) -> int:
        """The line in the file, from 1."""
        return self.first_line + self._index(node)

    def column_of(self, node: ast.AST) -> int:
        """The column in characters, from 1."""
        before = self._line(node).encode()[: int(getattr(node, "col_offset", 0))]
        return len(before.decode(errors="replace")) + 1

    def refuse(self, node: ast.AST, what: str, cure: str, kind: type[KernelSyntaxError] | None = None) -> NoReturn:
        """Raises KernelSyntaxError: where, what is wrong, the line with a caret, what to write instead."""
        line = self._line(node)
        column = self.column_of(node)
        caret = "".join("\t" if c == "\t" else " " for c in line[: column - 1]) + "^"
        self._raise(
            f"{self.filename}:{self.line_of(node)}:{column}: {self.title}: {what}\n    {line}\n    {caret}\n{cure}",
            self.line_of(node),
            column,
            kind,
        )

    def _line(self, node: ast.AST) -> str:
        index = self._index(node)
        return self.lines[index] if 0 <= index < len(self.lines) else ""

    def _index(self, node: ast.AST) -> int:
        """The line in the text, from 0."""
        lineno: int | None = getattr(node, "lineno", None)
        return 0 if lineno is None else lineno - 1 - self._above

    def _raise(self, message: str, line: int, column: int, kind: type[KernelSyntaxError] | None) -> NoReturn:
        error = refusal("UNSUPPORTED_SYNTAX", message)
        if kind is not None:
            error = _as(kind, error)
        error.filename, error.lineno, error.column = self.filename, line, column  # type: ignore[attr-defined]
        raise error

    def _parse(self) -> ast.FunctionDef:
        indented = bool(self._above)
        try:
            tree = ast.parse("if 1:\n" + self.text if indented else self.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            deep = isinstance(error, (RecursionError, MemoryError))
            why = "an expression is nested too deeply; give its parts names of their own" if deep else str(error)
            line = self.first_line + (getattr(error, "lineno", None) or 1) - (2 if indented else 1)
            self._raise(
                f"{self.filename}:{line}: a kernel's source does not parse: {why}\n"
                "A kernel is one function written with `def`.",
                line,
                getattr(error, "offset", None) or 1,
                None,
            )
        body: list[Any] = tree.body[0].body if indented else tree.body  # type: ignore[attr-defined]
        functions = [node for node in body if isinstance(node, ast.FunctionDef)]
        if len(functions) != 1 or len(body) != 1:
            what = type(body[0]).__name__ if body else "nothing"
            self._raise(
                f"{self.filename}:{self.first_line}: a kernel is one function written with `def`, found {what}\n"
                "Write `def name(x: Scalar, ...):` and nothing else; async functions and lambdas are not kernels.",
                self.first_line,
                1,
                None,
            )
        return functions[0]


def _as(kind: type[KernelSyntaxError], error: BaseException) -> Any:
    made = kind(str(error))
    made.reason, made.code = error.reason, error.code  # type: ignore[attr-defined]
    return made


def from_text(text: str, filename: str = "<kernel source>") -> Source:
    """The source of ``eagle.kernel(source=...)``."""
    lines = text.splitlines()
    skipped = 0
    while skipped < len(lines) and not lines[skipped].strip():
        skipped += 1
    return Source(filename, skipped + 1, "\n".join(lines[skipped:]) + "\n")


def from_function(function: Callable[..., Any]) -> Source:
    """The source of a decorated function, read from its file."""
    if not isinstance(function, types.FunctionType):
        raise refusal(
            "UNSUPPORTED_SYNTAX",
            f"eagle.kernel: expected a function written with `def`, found {type(function).__name__}; "
            "decorate a plain function, or give its text with eagle.kernel(source=...)",
        )
    code = function.__code__
    # As inspect.findsource, which looks through all modules for the function's own and compiles a pattern first.
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    if not lines:
        raise refusal(
            "UNSUPPORTED_SYNTAX",
            f"{code.co_filename}:{code.co_firstlineno}: kernel '{function.__name__}': there is no source to read "
            "(python -c, stdin and exec keep none)\n"
            "Give the text yourself: eagle.kernel(source='''def ...''').",
        )
    return Source(code.co_filename, code.co_firstlineno, "".join(block(lines, _lines_of(code))))


def _lines_of(code: types.CodeType) -> int:
    """How many lines the function has at least: as far as its own code goes."""
    if sys.version_info < (3, 10):
        return 1
    return 1 + max(line or 0 for _, _, line in code.co_lines()) - code.co_firstlineno


def block(lines: list[str], least: int = 1) -> list[str]:
    """The lines of the function that begins with the first one, its decorators included: as ``inspect.getblock``,
    whose tokenizer takes two milliseconds to make. Where the next statement may begin, the lines before it either
    parse and are the function, or are only a part of it. ``least`` lines are known to be its own.
    """
    most_attempts = 16
    indent = _indent(lines[0])

    def is_outside(line: str) -> bool:
        return _indent(line) <= indent or not line.strip()

    def is_code(line: str) -> bool:
        return bool(line.strip()) and not line.lstrip().startswith("#")

    starts = (i for i in range(least, len(lines)) if is_outside(lines[i]) and is_code(lines[i]))
    for end in itertools.islice(itertools.chain(starts, [len(lines)]), most_attempts):
        text = "".join(lines[:end])
        try:
            ast.parse("if 1:\n" + text if indent else text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        while is_outside(lines[end - 1]) and not is_code(lines[end - 1]):
            end -= 1
        return lines[:end]
    try:
        return list(inspect.getblock(lines))
    except (tokenize.TokenError, SyntaxError):  # the file is another one by now
        return lines


def _indent(line: str) -> int:
    line = line.expandtabs()
    return len(line) - len(line.lstrip())
