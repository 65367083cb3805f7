"""What the trace-event format asks of a file (docs: "Trace Event Format", the JSON object form)."""

from collections import defaultdict
from typing import Any

FIELDS = {
    "X": {
        "ph": str,
        "cat": str,
        "name": str,
        "pid": int,
        "tid": int,
        "ts": (int, float),
        "dur": (int, float),
        "args": dict,
    },
    "b": {"ph": str, "cat": str, "name": str, "pid": int, "tid": int, "ts": (int, float), "id": str, "args": dict},
    "e": {"ph": str, "cat": str, "name": str, "pid": int, "tid": int, "ts": (int, float), "id": str, "args": dict},
    "M": {"ph": str, "cat": str, "name": str, "pid": int, "tid": int, "ts": (int, float), "args": dict},
}
METADATA = {"process_name", "thread_name"}


def check_trace(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """Asserts that the trace is one, and that its spans lie within each other. Returns its events but metadata."""
    assert set(trace) == {"displayTimeUnit", "traceEvents"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    for event in trace["traceEvents"]:
        fields = FIELDS[event["ph"]]
        assert set(event) == set(fields), event
        for field, kind in fields.items():
            assert isinstance(event[field], kind), (field, event)
        assert event["ts"] >= 0, event
        assert event.get("dur", 0) >= 0, event
        if event["ph"] == "M":
            assert event["name"] in METADATA
            assert isinstance(event["args"]["name"], str)
    check_slices([event for event in trace["traceEvents"] if event["ph"] == "X"])
    check_spans([event for event in trace["traceEvents"] if event["ph"] in "be"])
    return [event for event in trace["traceEvents"] if event["ph"] != "M"]


def check_slices(events: list[dict[str, Any]]) -> None:
    """Of one thread they lie within each other or apart."""
    by_thread = defaultdict(list)
    for event in events:
        by_thread[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in by_thread.values():
        open_until: list[float] = []
        for begin, end in sorted(slices, key=lambda one: (one[0], -one[1])):
            while open_until and open_until[-1] <= begin + 1e-3:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3, "slices of one thread overlap"
            open_until.append(end)


def check_spans(events: list[dict[str, Any]]) -> None:
    """Of one category and id they are closed in the opposite order, and times do not go back."""
    stacks: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    # Stable: events of one time stay in the order of the file, which is that of their nesting.
    for event in sorted(events, key=lambda one: one["ts"]):
        stack = stacks[event["cat"], event["id"]]
        if event["ph"] == "b":
            stack.append(event)
        else:
            assert stack, f"an end without a beginning: {event}"
            assert stack.pop()["name"] == event["name"], event
    assert not any(stacks.values()), "a span was not closed"
