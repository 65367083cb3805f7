"""Finds the branches of a C++ file, and writes the file with all their breaks in it, each behind a switch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

PREAMBLE = """\
#define _GLIBCXX_ASSERTIONS  // what is outside of its container is noticed
#include <cstdlib>
#include <string_view>
#include "engine/base/status.h"
namespace {{
const int eagle_break = [] {{
  const char* const file = std::getenv("EAGLE_BREAK_FILE");
  const char* const number = std::getenv("EAGLE_BREAK_NUMBER");
  return file && number && std::string_view(file) == "{file}" ? std::atoi(number) : -1;
}}();
// The condition is looked at in any case, for what it does besides.
[[maybe_unused]] inline bool eagle_forced(bool to_true, bool to_false, bool value) {{
  return to_true || (value && !to_false);
}}
[[maybe_unused]] inline eagle::Status eagle_ignored(bool broken, eagle::Status status) {{
  return broken ? eagle::Status() : status;
}}
}}
#line 1 "{file}"
"""
TRUE, FALSE, IGNORED = "true", "false", "ignored"


@dataclass(frozen=True)
class Break:
    """One branch of a file taken always, or never."""

    file: str
    number: int  # of this file's
    line: int
    condition: str  # as written; " #2" behind it where the file has the same text a second time
    value: str  # "true", "false", or "ignored" for a refusal that is looked at and not returned

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.condition} | {self.value}"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.condition, self.value


@dataclass
class Branch:
    """A condition, or the expression of an EAGLE_RETURN_IF_ERROR, at [begin, end)."""

    begin: int
    end: int
    values: set[str] = field(default_factory=set)
    name: str = ""  # of the variable, where the condition declares one


def plain(text: str) -> str:
    """The text without comments and contents of literals; every other character stays where it is."""

    def blank(found: re.Match[str]) -> str:
        token = found.group()
        return " " * len(token) if token.startswith("/") else token[0] + "_" * (len(token) - 2) + token[-1]

    return re.sub(r"//[^\n]*|\"(?:\\.|[^\"\\])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\])+'", blank, text)


def closing(text: str, begin: int) -> int:
    """Where the parenthesis closes that opened before `begin`."""
    depth = 1
    for at in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError("a parenthesis that does not close")


def parts_of(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    """What semicolons separate, those inside of brackets excepted."""
    parts, depth = [], 0
    for at in range(begin, end):
        depth += 1 if text[at] in "([{" else -1 if text[at] in ")]}" else 0
        if text[at] == ";" and depth == 0:
            parts.append((begin, at))
            begin = at + 1
    return [*parts, (begin, end)]


STOPS = re.compile(r"[,;?]|(?<!:):(?!:)|(?<![=<>!])=(?!=)|\breturn\b")


def operand(text: str, at: int, step: int, stop_at: tuple[str, ...]) -> int:
    """How far the operand reaches that ends before `at` (step -1) or begins at it (step 1)."""
    opening, ending = ("([{", ")]}") if step > 0 else (")]}", "([{")
    depth = 0
    while 0 <= at < len(text):
        if text[at] in opening:
            depth += 1
        elif text[at] in ending:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0:
            if (step > 0 and text.startswith(stop_at, at)) or (step < 0 and text.endswith(stop_at, 0, at + 1)):
                break
            if found := STOPS.match(text, at):
                return at if step > 0 else found.end()
            if step < 0 and re.match(r"\breturn\b", text[max(0, at - 5) : at + 1]):
                break
        at += step
    return at if step > 0 else at + 1


def branches(text: str) -> list[Branch]:
    """All branches of a file, in order; `text` is plain."""
    found: dict[tuple[int, int], Branch] = {}

    def add(begin: int, end: int, *values: str, name: str = "") -> None:
        while begin < end and text[begin].isspace():
            begin += 1
        while end > begin and text[end - 1].isspace():
            end -= 1
        if begin < end:
            branch = found.setdefault((begin, end), Branch(begin, end, name=name))
            branch.values.update(values)

    for start in re.finditer(r"\bif \(", text):
        begin, end = parts_of(text, start.end(), closing(text, start.end()))[-1]
        if declared := re.match(r"\s*(?:const )?[\w:<>*& ]+[ *&](\w+) = ", text[begin:end]):
            add(begin, end, FALSE, name=declared.group(1))
        else:
            add(begin, end, TRUE, FALSE)
    for start in re.finditer(r"\b(?:while|for) \(", text):
        parts = parts_of(text, start.end(), closing(text, start.end()))
        if len(parts) == (1 if start.group().startswith("while") else 3):  # otherwise over a range
            add(*parts[len(parts) // 2], FALSE)
    for start in re.finditer(r"\bEAGLE_RETURN_IF_ERROR\(", text):
        add(start.end(), closing(text, start.end()), IGNORED)
    for sign in re.finditer(r"\s(&&|\|\|)\s", text):
        both = sign.group(1) == "&&"
        stop_at = ("&&", "||") if both else ("||",)
        left = operand(text, sign.start(), -1, stop_at)
        right = operand(text, sign.end(), 1, stop_at)
        add(left, sign.start(), TRUE if both else FALSE)
        add(sign.end(), right, TRUE if both else FALSE)
    for sign in re.finditer(r"\s\?\s", text):
        add(operand(text, sign.start(), -1, ()), sign.start(), TRUE, FALSE)
    return sorted(found.values(), key=lambda one: (one.begin, -one.end))


def breaks_in(file: str, text: str) -> Iterator[tuple[Break, Branch]]:
    seen: Counter[str] = Counter()
    number = 0
    for branch in branches(plain(text)):
        condition = " ".join(text[branch.begin : branch.end].split())
        seen[condition] += 1
        if seen[condition] > 1:
            condition += f" #{seen[condition]}"
        line = text.count("\n", 0, branch.begin) + 1
        for value in sorted(branch.values):
            yield Break(file, number, line, condition, value), branch
            number += 1


def with_switches(file: str, text: str) -> str:
    """The file with every break in it: EAGLE_BREAK_FILE and EAGLE_BREAK_NUMBER say which one is on."""
    numbers: dict[tuple[int, int], dict[str, int]] = {}
    names: dict[tuple[int, int], str] = {}
    for found, branch in breaks_in(file, text):
        numbers.setdefault((branch.begin, branch.end), {})[found.value] = found.number
        names[branch.begin, branch.end] = branch.name
    before: dict[int, str] = {}
    after: dict[int, str] = {}
    for begin, end in sorted(numbers, key=lambda at: (at[0], -at[1])):  # the outer one first
        values = numbers[begin, end]
        if name := names[begin, end]:
            head, tail = "", f"; eagle_break != {values[FALSE]} && static_cast<bool>({name})"
        elif IGNORED in values:
            head, tail = f"eagle_ignored(eagle_break == {values[IGNORED]}, ", ")"
        else:
            forced = ", ".join(f"eagle_break == {values[v]}" if v in values else "false" for v in (TRUE, FALSE))
            head, tail = f"eagle_forced({forced}, static_cast<bool>(", "))"
        before[begin] = before.get(begin, "") + head
        after[end] = tail + after.get(end, "")
    out, last = [], 0
    for at in sorted({*before, *after}):
        out += [text[last:at], after.get(at, ""), before.get(at, "")]
        last = at
    body = re.sub(r"(?m)^constexpr (?=[\w:]+ \w+\()", "inline ", "".join([*out, text[last:]]))
    return PREAMBLE.format(file=file) + body
