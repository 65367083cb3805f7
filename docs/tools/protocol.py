"""Writes docs/manual/protocol/: a page a service, from the comments of proto/eagle/v1 and the daemon's table of sizes.

Usage:
    python3 docs/tools/protocol.py           write them
    python3 docs/tools/protocol.py --check   exit status 1 if one is not what the protocol says

Above each `rpc` stand what it does, then `Errors:` and `Limits:`. Comments above a message are about all of it, those
behind a field about that field.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from made_pages import ROOT, write_or_check

FOLDER = ROOT / "docs/manual/protocol"
PROTO = ROOT / "proto/eagle/v1"
TAKEN = ROOT / "server/rpc/request.cpp"
#: What the daemon says to its own parts, and writes into files.
INSIDE = ("compile", "record", "state")
RPC = re.compile(r"rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);")
REASON = re.compile(r"\b[A-Z]{2,}(?:_[A-Z]+)*\b")
#: What comments say in short, and where it is said at length.
ELSEWHERE = {
    "refusals of a description": "index.md#descriptions",
    "those of descriptions": "index.md#descriptions",
}
#: What the daemon takes: the method, and the kind of its requests.
ROW = re.compile(r'Row\{"(\w+\.\w+)", Takes::(\w+)\}')
#: The limit of each kind.
SIZES = {
    "names": "request_bytes",
    "list": "list_bytes",
    "giving_back": "list_bytes",
    "description": "message_bytes",
    "data": "message_bytes",
}
FIELD = re.compile(r"(?:(repeated|optional) )?([\w.]+(?:<\w+, ?\w+>)?) (\w+) = \d+;(?:\s*//\s?(.*))?$")


@dataclass
class Message:
    """One of the protocol, with its fields as (label, type, name, comment)."""

    name: str
    comment: list[str]
    fields: list[tuple[str, str, str, list[str]]] = field(default_factory=list)


@dataclass
class Call:
    """An rpc."""

    name: str
    comment: list[str]
    request: tuple[bool, str]
    reply: tuple[bool, str]


class Reader:
    """Messages and services of all files."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self.services: dict[str, list[Call]] = {}
        for path in sorted(PROTO.glob("*.proto")):
            if path.stem not in INSIDE:
                self._read(path.read_text().splitlines())

    def _read(self, lines: list[str]) -> None:
        comment: list[str] = []
        open_messages: list[Message] = []
        service = ""
        depth = 0
        for raw in lines:
            line = raw.strip()
            if line.startswith("//"):
                comment = [] if line.startswith("// ----") else [*comment, line.removeprefix("//").strip()]
                continue
            if found := re.match(r"message (\w+) \{", line):
                message = Message(found[1], comment)
                self.messages[message.name] = message
                if not line.endswith("{}"):
                    open_messages.append(message)
                    depth += 1
            elif found := re.match(r"service (\w+) \{", line):
                service = found[1]
                self.services[service] = []
                depth += 1
            elif re.match(r"(oneof|enum) \w+ \{", line):
                depth += 1
                open_messages.append(open_messages[-1] if open_messages else Message("", []))
            elif line == "}":
                depth -= 1
                service = ""
                if open_messages:
                    open_messages.pop()
            elif service and (found := RPC.match(line)):
                call = Call(found[1], comment, (bool(found[2]), found[3]), (bool(found[4]), found[5]))
                self.services[service].append(call)
            elif open_messages and (found := FIELD.match(line)):
                said = [found[4]] if found[4] else comment
                open_messages[-1].fields.append((found[1] or "", found[2], found[3], said))
            comment = []


def joined(comment: list[str]) -> str:
    text = " ".join(comment).strip()
    return text[:1].upper() + text[1:] if text else ""


def sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?", ":")) else text + "."


def split(comment: list[str]) -> tuple[str, str, str]:
    """What it does, its errors, its limits."""
    found = re.fullmatch(r"(.*?) Errors: (.*?) Limits: (.*)", " ".join(comment))
    if found is None:
        raise SystemExit(f"expected a text, 'Errors:' and 'Limits:' above an rpc, found: {' '.join(comment)!r}")
    return found[1], found[2], found[3]


def anchor(service: str, call: str) -> str:
    return f"{service.lower()}.md#{service.lower()}{call.lower()}"


def linked(text: str) -> str:
    """With links to calls and to what is said elsewhere, and names of reasons as code."""
    for words, place in ELSEWHERE.items():
        text = text.replace(words, f"[{words}]({place})")
    text = re.sub(
        r"\bas ((\w+)\.(\w+))", lambda m: f"as [{m[1]}]({m[2].lower()}.md#{m[2].lower()}{m[3].lower()})", text
    )
    return REASON.sub(r"`\g<0>`", text)


def keys(limits: str) -> str:
    """The key of each limit as code."""
    return re.sub(r"(^|; )(?!none)([a-z_]+)(?= \(|[;.]|$)", r"\1`\2`", limits)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def sizes() -> dict[str, str]:
    """The key of the limit on a request's bytes, by method."""
    return {method: SIZES[kind] for method, kind in ROW.findall(TAKEN.read_text())}


def table(reader: Reader, title: str, streamed: bool, name: str, size: str = "") -> list[str]:
    message = reader.messages[name]
    lines = [f"**{title}** `{name}`{', a stream of them' if streamed else ''}{size and f', of at most `{size}`'}", ""]
    if message.comment:
        lines += [sentence(joined(message.comment)), ""]
    if not message.fields:
        return [*lines, "No fields.", ""]
    lines += ["| field | type | |", "| --- | --- | --- |"]
    for label, kind, field_name, said in message.fields:
        lines.append(f"| `{field_name}` | {label + ' ' if label else ''}`{kind}` | {cell(joined(said))} |")
    return [*lines, ""]


def page(reader: Reader, service: str, calls: list[Call]) -> str:
    lines = [f"# {service}", "", "Made by `docs/tools/protocol.py` from `proto/eagle/v1`. What holds for every call: "]
    lines[-1] += "[protocol](index.md)."
    size = sizes()
    for call in calls:
        what, errors, limits = split(call.comment)
        lines += ["", f"## {service}.{call.name}", "", sentence(what), ""]
        lines += table(reader, "Request", *call.request, size[f"{service}.{call.name}"])
        lines += table(reader, "Reply", *call.reply)
        lines += [f"**Errors** {linked(sentence(errors))}", "", f"**Limits** {linked(keys(sentence(limits)))}"]
    return "\n".join(lines) + "\n"


def types_page(reader: Reader) -> str:
    """Messages that are parts of others."""
    calls = [call for one in reader.services.values() for call in one]
    own = {name for call in calls for _, name in (call.request, call.reply)}
    lines = ["# Messages", "", "What requests and replies are made of, and what the side connection says. Made by "]
    lines[-1] += "`docs/tools/protocol.py`."
    for name, message in sorted(reader.messages.items()):
        if name in own or not message.fields:
            continue
        lines += ["", f"## {name}", "", *table(reader, "Message", False, name)[:-1]]
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    reader = Reader()
    services = reader.services.items()
    made = {FOLDER / f"{service.lower()}.md": page(reader, service, calls) for service, calls in services}
    return {**made, FOLDER / "messages.md": types_page(reader)}


def main() -> int:
    return write_or_check(pages(), "the protocol says", "protocol.py")


if __name__ == "__main__":
    sys.exit(main())
