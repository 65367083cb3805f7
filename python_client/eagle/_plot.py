"""Draws a graph with matplotlib, from coordinates that the engine lays out; nothing is decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from eagle.errors import refusal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PIXEL = 1 / 96  # inch: lengths are CSS pixels
_ADVANCE = 0.602  # of a character of DejaVu Sans Mono, in font sizes
_INK, _FAINT, _BOX, _LINE = "#1f2328", "#57606a", "#f6f8fa", "#57606a"


def plot(rows: Mapping[str, Any], ax: Axes | None, edge_labels: bool, show_schedule: bool) -> Figure:
    """A figure of its own, or the one of ``ax``; pyplot and its state are left alone."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise refusal(
            "MISSING_PACKAGE",
            'plot: this needs matplotlib, which is not installed; run: pip install "eagled[plot]"',
        ) from None
    _check_axes(ax)
    width, height, margin = rows["size"]
    left = 0.0 if show_schedule else margin - 2 * rows["character"][0]
    if ax is None:
        figure = Figure(figsize=(max(width - left, 1) * _PIXEL, height * _PIXEL))
        ax = figure.add_axes((0, 0, 1, 1))
    ax.set_xlim(left, width)
    ax.set_ylim(height, 0)  # y runs down
    ax.set_aspect("equal")
    ax.axis("off")
    _Drawing(rows, ax).draw(left, edge_labels, show_schedule)
    found = ax.get_figure()
    assert found is not None
    return found  # type: ignore[return-value]


def _check_axes(ax: Any) -> None:
    from matplotlib.axes import Axes

    if ax is None or (isinstance(ax, Axes) and ax.name == "rectilinear"):
        return
    found = f"{ax.name} axes" if isinstance(ax, Axes) else type(ax).__name__
    raise refusal("WRONG_TYPE", f"plot: ax: expected plain matplotlib axes (figure.subplots()), found {found}")


class _Drawing:
    def __init__(self, rows: Mapping[str, Any], ax: Axes) -> None:
        self._rows = rows
        self._ax = ax
        self._column, self._line = rows["character"]
        box = ax.get_window_extent()
        x0, x1 = ax.get_xlim()
        y1, y0 = ax.get_ylim()
        pixel = min(box.width / (x1 - x0), box.height / (y1 - y0)) * 72 / ax.get_figure().dpi  # type: ignore[union-attr]
        self._font = self._column * pixel / _ADVANCE
        self._pixel = pixel

    def draw(self, left: float, edge_labels: bool, show_schedule: bool) -> None:
        rows = self._rows
        self._text(left + 2 * self._column, self._line / 2, rows["title"], _INK)
        if show_schedule:
            for x, y, text in rows["stages"]:
                self._text(x, y, text, _FAINT, gid="stage")
        for kind, (colour, dashes) in rows["styles"].items():
            lines = [points for _, _, of, _, points in rows["edges"] if of == kind and points]
            self._edges(kind, lines, colour, [float(length) for length in dashes.split()])
        self._shapes("frames", [shape for shape in rows["shapes"] if shape[4]], "none", "solid", 8)
        boxes = [shape for shape in rows["shapes"] if not shape[4]]
        self._shapes("nodes", [shape for shape in boxes if not shape[5]], _BOX, "solid", 3)
        self._shapes("opaque nodes", [shape for shape in boxes if shape[5]], _BOX, (0, (4, 2.5)), 3)
        for shape in rows["shapes"]:
            self._label(*shape)
        if edge_labels:
            for x, y, text in rows["names"]:
                self._text(x, y, text, _INK, gid="names")
        below = rows["size"][1] - (len(rows["notes"]) + 0.5) * self._line
        for number, note in enumerate(rows["notes"]):
            self._text(left + 2 * self._column, below + number * self._line, note, _FAINT, gid="note")

    def _text(self, x: float, y: float, text: str, colour: str, **more: Any) -> None:
        # Names are no formulas: a dollar sign is one.
        self._ax.text(
            x,
            y,
            text,
            va=more.pop("va", "center_baseline"),
            color=colour,
            family="monospace",
            fontsize=self._font,
            parse_math=False,
            **more,
        )

    def _label(
        self, x: float, y: float, width: float, height: float, frame: bool, _dashed: bool, text: str, _parent: int
    ) -> None:
        if frame:  # its title stands on its border
            ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            self._text(x + self._rows["title_offset"], y, text, _INK, gid="title", zorder=3, bbox=ground)
        else:
            self._text(x + width / 2, y + height / 2, text, _INK, ha="center", gid="label", zorder=3)

    # Collections, because thousands of single artists take a quarter of a minute.

    def _shapes(self, gid: str, shapes: list[Any], face: str, style: Any, radius: float) -> None:
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import FancyBboxPatch

        rounded = f"round,pad=0,rounding_size={radius}"
        patches = [FancyBboxPatch((x, y), width, height, boxstyle=rounded) for x, y, width, height, *_ in shapes]
        self._ax.add_collection(
            PatchCollection(
                patches,
                facecolor=face,
                edgecolor=_LINE,
                linestyle=style,
                linewidth=self._pixel,
                zorder=1 if face == "none" else 2,
                gid=gid,
            ),
            autolim=False,
        )

    def _edges(self, kind: str, lines: list[list[tuple[float, float]]], colour: str, dashes: list[float]) -> None:
        from matplotlib.collections import LineCollection, PolyCollection

        style: Any = (0, tuple(0.7 * length for length in dashes)) if dashes else "solid"
        wide = 1.2 * self._pixel
        drawn = LineCollection(lines, colors=colour, linestyles=style, linewidths=wide, zorder=1.5, gid=f"{kind} edges")
        self._ax.add_collection(drawn, autolim=False)
        # Lines lead down, so all tips do.
        half, long = 0.4 * self._column, 0.8 * self._column
        ends = [line[-1] for line in lines]
        tips = [[(x, y), (x - half, y - long), (x + half, y - long)] for x, y in ends]
        self._ax.add_collection(
            PolyCollection(tips, facecolors=colour, edgecolors="none", zorder=1.5, gid=f"{kind} tips"), autolim=False
        )
