"""Tables for people: as lines of text, and as HTML for notebooks."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

_MOST_ROWS = 60


def bytes_text(count: int) -> str:
    """A number of bytes.

    >>> bytes_text(512), bytes_text(1 << 20), bytes_text(1_600_000)
    ('512 B', '1.00 MiB', '1.53 MiB')
    """
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} B" if unit == "B" else f"{value:.2f} {unit}"
        value /= 1024
    return f"{value:.2f} TiB"


def seconds_text(seconds: float) -> str:
    """A time.

    >>> seconds_text(2.5e-6), seconds_text(0.0125), seconds_text(90.0)
    ('2.5 us', '12.5 ms', '90 s')
    """
    for scale, unit in ((1e-3, "us"), (1.0, "ms")):
        if 0 < seconds < scale:
            return f"{seconds / scale * 1e3:.3g} {unit}"
    return f"{seconds:.3g} s"


def put_right_rows(clamped: int, dropped: int, zero_divisions: int) -> dict[str, str]:
    """What kernels had put right, as far as there was any: rows of a report."""
    counts = {"indices clamped": clamped, "additions dropped": dropped, "divisions by zero": zero_divisions}
    return {name: f"{count:,}" for name, count in counts.items() if count}


def pairs_text(title: str, rows: Mapping[str, Any]) -> str:
    """A title, then a name and its value a line."""
    width = max(map(len, rows), default=0)
    return "\n".join([title, *(f"  {name:{width}}  {value}" for name, value in rows.items())])


def pairs_html(title: str, rows: Mapping[str, Any]) -> str:
    """The same for a notebook."""
    return rows_html(title, (), list(rows.items()))


def escape(text: str) -> str:
    """Text as HTML shows it."""
    from html import escape as escaped  # a table of all entities, which nobody needs before

    return escaped(text)


def rows_text(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A title, a line of heads and a line a row, in columns."""
    cells = [list(map(str, row)) for row in [heads, *rows[:_MOST_ROWS]]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    lines = ["  " + "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths)).rstrip() for row in cells]
    return "\n".join([title, *lines, *_more(rows)])


def rows_html(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The same for a notebook. Names are text there, whatever they hold."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(_row_html(row) for row in rows[:_MOST_ROWS])
    more = "".join(f"<p>{escape(line)}</p>" for line in _more(rows))
    return f"<table><caption>{escape(title)}</caption>{f'<tr>{head}</tr>' if head else ''}{body}</table>{more}"


def _row_html(row: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>"


def _more(rows: Sequence[Any]) -> list[str]:
    return [f"  and {len(rows) - _MOST_ROWS} more"] if len(rows) > _MOST_ROWS else []
