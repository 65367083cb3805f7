"""The mutation run breaks every branch there is, and nothing else."""

import re
import sys

from tree import ROOT

sys.path.insert(0, str(ROOT / "tests/mutation"))
from breaks import breaks_in, with_switches

CODE = """\
// if (this) is a comment && says "nothing"
Status f(const char* a, int b) {
  if (const auto* const p = find(a); p != nullptr && b > 0) return {};
  if (const auto* q = find("if (x) && y")) return other(q);
  EAGLE_RETURN_IF_ERROR(check(a, {b, 1}));
  for (int i = 0; i < b; ++i) total += i == 0 || a[i] != a[i - 1] ? 1 : 0;
  for (const int x : {1, 2}) use(x);
  while (b > 0) --b;
  return b == 0 && a == nullptr;
}
"""
BREAKS = [
    "3: p != nullptr && b > 0 | false",
    "3: p != nullptr && b > 0 | true",
    "3: p != nullptr | true",
    "3: b > 0 | true",
    '4: const auto* q = find("if (x) && y") | false',
    "5: check(a, {b, 1}) | ignored",
    "6: i < b | false",
    "6: i == 0 || a[i] != a[i - 1] | false",
    "6: i == 0 || a[i] != a[i - 1] | true",
    "6: i == 0 | false",
    "6: a[i] != a[i - 1] | false",
    "8: b > 0 #2 | false",
    "9: b == 0 | true",
    "9: a == nullptr | true",
]


def test_breaks_are_those_of_conditions_operands_choices_loops_and_refusals() -> None:
    assert [str(found).removeprefix("x.cpp:") for found, _ in breaks_in("x.cpp", CODE)] == BREAKS


def test_every_break_has_a_switch_and_the_rest_stays_as_it_was() -> None:
    code = with_switches("x.cpp", CODE).split('#line 1 "x.cpp"\n')[1]
    for number in range(len(BREAKS)):
        assert len(re.findall(rf"eagle_break (?:==|!=) {number}\b", code)) == 1
    for line, switched in zip(CODE.splitlines(), code.splitlines(), strict=True):
        broken = any(text.startswith(f"{number_of(line)}:") for text in BREAKS)
        assert (line != switched) == broken


def number_of(line: str) -> int:
    return CODE.splitlines().index(line) + 1
