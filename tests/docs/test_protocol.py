"""The pages of the protocol, call by call: each error is what the daemon says, each limit is in the code."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import pytest
from blocks import ROOT
from provocations import AFTER_A_DEATH, ELSEWHERE, PROVOKED, Orphan, Worlds, reason_of

sys.path.insert(0, str(ROOT / "docs/tools"))
from protocol import Reader, split

CALLS = {f"{service}.{call.name}": call for service, calls in Reader().services.items() for call in calls}
PAGE = (ROOT / "docs/manual/protocol/index.md").read_text()
ANOTHER = r"as (\w+\.\w+)"


def items(text: str) -> list[str]:
    """Of `A; B (why, and so on); as Other.Call`."""
    first = re.split(r"\.(?:\s|$)", text)[0]
    return [one for one in (part.strip() for part in first.split(";")) if one not in ("none", "none of its own")]


def errors_of(method: str) -> set[str]:
    """Reasons that the call's page names, those of another call that it is like among them."""
    found: set[str] = set()
    for one in items(split(CALLS[method].comment)[1]):
        if other := re.match(ANOTHER, one):
            found |= errors_of(other[1])
        elif reason := re.match(r"[A-Z_]{3,}(?= |$)", one):
            found.add(reason[0])
        else:
            assert one == "refusals of a description", f"{method}: {one}"
    return found


def limits_of(method: str) -> set[str]:
    found: set[str] = set()
    for one in items(split(CALLS[method].comment)[2]):
        if other := re.match(ANOTHER, one):
            found |= limits_of(other[1])
        elif one != "those of descriptions":
            key = re.match(r"[a-z_]+(?= |$)", one)
            assert key, f"{method}: {one}"
            found.add(key[0])
    return found


DOCUMENTED = sorted((method, reason) for method in CALLS for reason in errors_of(method))
#: Of calls that go the same way as another one, which is tried.
LIKE = {
    ("Graphs.ListKernel", "COMPILE_FAILED"),  # as Graphs.Build: one compiler for all
    ("Graphs.Restore", "COMPILE_FAILED"),
    ("Graphs.Restore", "PLANE_BUDGET"),
    ("Graphs.Rebind", "PLANE_BUDGET"),
    ("Runs.Simulate", "COMPILE_FAILED"),
    ("Runs.SimulateWithCalls", "GRAPH_STATE"),  # of Runs.Simulate alone
    ("Runs.SimulateWithCalls", "COMPILE_FAILED"),
    ("Graphs.LaunchWithCalls", "CANCELLED"),
    # These need a GPU: tests/integration/test_gpu_verify.py has one that is played; or as Launch and Build.
    ("Graphs.Verify", "UNKNOWN_PLANE"),
    ("Graphs.Verify", "GRAPH_STATE"),
    ("Graphs.Verify", "GRAPH_QUARANTINED"),
    ("Graphs.Verify", "COMPILE_FAILED"),
    ("Graphs.Verify", "PLANE_BUDGET"),
    ("Graphs.Verify", "OUT_OF_MEMORY"),
    ("Graphs.Verify", "CANCELLED"),
    ("Graphs.Verify", "DEADLINE"),
}


@pytest.fixture(scope="module")
def worlds() -> Iterator[Worlds]:
    from harness import Daemon

    with TemporaryDirectory(prefix="eagle-") as folder, ExitStack() as stack:
        daemon = Daemon(Path(folder), "--threads", "2", "--listen", "dns:127.0.0.1:0")
        stack.callback(daemon.stop)
        yield Worlds(daemon, stack)


@pytest.fixture(scope="module")
def orphan() -> Iterator[Orphan]:
    from harness import Daemon

    with TemporaryDirectory(prefix="eagle-") as folder, ExitStack() as stack:
        daemon = Daemon(Path(folder), "--threads", "2")
        stack.callback(daemon.stop)
        yield Orphan(daemon, stack)


def refused(work: Callable[[], Any]) -> str:
    """The reason of what this work ends with; a call whose client may send several messages has its reply later."""
    try:
        found = work()
        said = found.result() if hasattr(found, "result") else found
    except grpc.RpcError as error:
        return reason_of(error)
    return f"not refused: {said}"


@pytest.mark.parametrize(("method", "reason"), sorted(PROVOKED), ids=map("-".join, sorted(PROVOKED)))
def test_a_call_is_refused_as_its_page_says(method: str, reason: str, worlds: Worlds) -> None:
    assert refused(lambda: PROVOKED[method, reason](worlds)) == reason


@pytest.mark.parametrize(("method", "reason"), list(AFTER_A_DEATH), ids=map("-".join, AFTER_A_DEATH))
def test_a_call_is_refused_after_a_workers_death_as_its_page_says(method: str, reason: str, orphan: Orphan) -> None:
    assert refused(lambda: AFTER_A_DEATH[method, reason](orphan)) == reason


def test_every_error_of_a_page_is_provoked() -> None:
    tried = {*PROVOKED, *AFTER_A_DEATH, *ELSEWHERE, *LIKE}
    assert [pair for pair in DOCUMENTED if pair not in tried] == []
    assert [pair for pair in sorted(tried) if pair not in DOCUMENTED] == [], "no page names these"
    for test in ELSEWHERE.values():
        path, _, name = test.partition("::")
        assert name in (ROOT / path).read_text(), test


# ---- limits


def constants(path: str, struct: str = "") -> dict[str, int]:
    """Numbers of a header by name, in bytes, counts or seconds."""
    text = (ROOT / path).read_text()
    text = text[text.index(f"struct {struct} {{") :] if struct else text
    found: dict[str, int] = {}
    field = r"(?P<kind>[\w:]+(?:<[\w:]+>)?) (?P<name>\w+)(?: = |\{)(?P<value>[^;{}]+)\}?;"
    for one in re.finditer(field, text[: text.index("\n};")] if struct else text):
        value = re.sub(r"(?<=\d)(?:u|ull)\b", "", one["value"].replace("'", "").replace("\n", " ").strip())
        if re.fullmatch(r"[\d\s*<]+", value):
            number = eval(value)
            found[one["name"]] = number // 1000 if "milliseconds" in one["kind"] else number
    return found


def documented_values() -> dict[str, int]:
    return {row[1]: int(row[2]) for row in re.finditer(r"^\| `(\w+)` \| (\d+) \|", PAGE, re.MULTILINE)}


def test_limits_that_are_no_settings_have_the_values_of_the_code() -> None:
    known = constants("server/limits.h", "Limits")
    known |= {f"graph_{name}": value for name, value in constants("engine/graph/graph.h", "Limits").items()}
    known |= {f"kernel_{name}": value for name, value in constants("engine/kernel/verify.h", "Limits").items()}
    known["graph_race_steps"] = constants("engine/graph/races.h")["race_work_limit"]
    known["graph_updates"] = constants("engine/graph/address.h")["most_updates"]
    listed = documented_values()
    assert len(listed) > 20
    assert {key: known.get(key) for key in listed} == listed


def test_every_limit_of_a_call_is_documented_with_its_value() -> None:
    settings = (ROOT / "docs/manual/configuration.md").read_text()
    for method in CALLS:
        for key in limits_of(method):
            tenant = key.removeprefix("tenant_")
            where = rf"^{tenant} = " if key != tenant else rf"^\| `{key}`|, `{key}`|^{key} = "
            found = re.search(where, settings, re.MULTILINE) or key in documented_values()
            assert found or f"`{key}`" in settings, f"{method}: {key}"


def test_every_limit_of_a_call_is_one_that_code_names() -> None:
    """A refusal says the key; what only bounds a size, or ends in another reason, is a field or an option."""
    sources = "".join(path.read_text() for folder in ("server", "engine") for path in (ROOT / folder).rglob("*.cpp"))
    fields = constants("server/limits.h", "Limits")
    for method in CALLS:
        for key in limits_of(method):
            named = re.search(rf"[(\"]{key}\b", sources) or key in fields
            assert named or f'"--{key.replace("_", "-")}"' in sources or f'"{key}"' in sources, f"{method}: {key}"
