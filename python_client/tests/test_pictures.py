"""Pictures and explanations of graphs, on both hosts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import eagle
from eagle import _core
from eagle.graph import Edge, opaque

GOLDEN = Path(__file__).parents[2] / "engine" / "view" / "golden"
SVG = "{http://www.w3.org/2000/svg}"

HOSTILE = [
    'quotes "x"', "<b>&amp;</b>", "back\\slash \\N", "line\nbreak\ttab", "end", "`code` $x^2$ #35;", "{a|b} [c]",
    "%%{init: {}}%%", "名前 👩‍👩‍👧 🇯🇵", "\x1b[31m", "\ufffe\uffff", "x" * 10_000, "]]>", "--><!--", ";", "", "\u202ertl",
]  # fmt: skip


@eagle.kernel
def scaled(x: eagle.Scalar, a: eagle.Param) -> eagle.Scalar:
    y = a * x
    return y


def nothing():
    pass


def fork_and_join(session):
    x, left, right, z = (session.zeros(8) for _ in range(4))
    flag = session.zeros(1, dtype="int64")
    plan = eagle.plan(scaled)
    g = eagle.Graph(session, name="fork and join")
    g.add_node(opaque(nothing, writes={"x": x}), name="seed")
    g.add_group([plan.bind(x=x, a=2.0, y=left), plan.bind(x=x, a=3.0, y=right)], names=["left", "right"])
    combine = opaque(nothing, reads={"l": left, "r": right}, writes={"z": z})
    return g.add_node(eagle.skippable(combine, eagle.SkipGuard.nonzero(flag)), name="combine")


def racing(session):
    y = session.zeros(8)
    g = eagle.Graph(session)
    return g.add_group([opaque(nothing, writes={"p": y}), opaque(nothing, reads={"q": y})], names=["L", "R"])


def hostile(session, name):
    x = session.zeros(8)
    g = eagle.Graph(session)
    return (
        g.add_node(opaque(nothing, writes={name: x}), name=name)
        .add_node(opaque(nothing, reads={name: x}, writes={name: x}), name=name)
        .add_node(eagle.repeat_while(opaque(nothing, reads={"x": x}), eagle.SkipGuard(session.zeros(1, "int64")), 3))
    )


def dot(text: str) -> dict:
    """As Graphviz itself reads it."""
    done = subprocess.run(["dot", "-Tjson"], input=text.encode(), capture_output=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()
    return json.loads(done.stdout)


# ---- pictures


@pytest.mark.parametrize("format", ["text", "mermaid", "dot", "svg"])
def test_every_format_is_the_same_in_the_client_and_on_the_host(session, format):
    g = fork_and_join(session).build()
    assert _core.picture(g._core, format) == _core.host_picture(g._core, format)


def test_pictures_are_drawn_before_the_build_and_of_racing_and_empty_graphs(session):
    for g in (fork_and_join(session), racing(session), eagle.Graph(session), eagle.Graph()):
        assert "(not built)" in str(g)
        assert g.to_mermaid().startswith("flowchart TD\n")
        assert g.to_dot().startswith("digraph eagle {\n")
        assert g.to_svg().startswith("<svg ")
        assert g.plot() is not None


def test_show_prints_the_text_picture(session, capsys):
    g = fork_and_join(session)
    assert g.show() is None
    assert capsys.readouterr().out == str(g) + "\n"


def test_a_notebook_shows_the_svg(local):
    g = fork_and_join(local)
    assert g._repr_svg_() == g.to_svg()


def test_dot_says_the_same_to_graphviz_as_the_edges_say(local):
    g = fork_and_join(local)
    found = dot(g.to_dot())
    nodes = {o["_gvid"]: o["label"] for o in found["objects"] if o["name"].startswith("n")}
    assert sorted(nodes.values()) == ["combine", "left", "right", "seed"]
    assert [o["label"] for o in found["objects"] if o["name"].startswith("cluster")] == ["skip if guard"]
    edges = {(nodes[e["tail"]], nodes[e["head"]]) for e in found["edges"]}
    assert edges == {("seed", "left"), ("seed", "right"), ("left", "combine"), ("right", "combine")}


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.dot")), ids=lambda file: file.stem)
def test_graphviz_accepts_every_kind_of_picture(file):
    dot(file.read_text())


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.svg")), ids=lambda file: file.stem)
def test_every_kind_of_svg_is_xml_with_title_and_description(file):
    root = ElementTree.fromstring(file.read_text())
    assert root.get("role") == "img"
    assert {root.find(SVG + "title").get("id"), root.find(SVG + "desc").get("id")} == set(
        root.get("aria-labelledby").split()
    )
    assert all(group.find(SVG + "title").text for group in root.iter(SVG + "g"))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_mean_nothing_in_any_format(local, name):
    g = hostile(local, name)
    found = dot(g.to_dot())
    assert len([o for o in found["objects"] if o["name"].startswith("n")]) == 3
    assert len(found["edges"]) == 2
    root = ElementTree.fromstring(g.to_svg())
    assert len([e for e in root.iter(SVG + "g") if "edge" in e.get("class", "")]) == 2
    assert "\x1b" not in str(g)
    assert len(g.to_svg()) < 20_000
    edge = re.compile(r'  n\d+ (-->|-\.->)\|"[^"\[\]{}<>|`\n]*"\| n\d+')
    assert all(edge.fullmatch(line) for line in g.to_mermaid().splitlines() if "->" in line and "|" in line)
    g.plot().canvas.draw()


def test_an_svg_is_rendered_by_librsvg(local, tmp_path):
    image = tmp_path / "graph.png"
    subprocess.run(["rsvg-convert", "-o", image], input=fork_and_join(local).to_svg().encode(), check=True)
    assert image.read_bytes().startswith(b"\x89PNG")


# ---- plot


def lines(figure, kind="RAW"):
    (found,) = [c for c in figure.axes[0].collections if c.get_gid() == f"{kind} edges"]
    return found.get_segments()


def shapes(figure, gid):
    (found,) = [c for c in figure.axes[0].collections if c.get_gid() == gid]
    return found.get_paths()


def texts(figure, gid):
    return [t.get_text() for t in figure.axes[0].texts if t.get_gid() == gid]


def test_plot_draws_what_the_text_picture_shows(session):
    figure = fork_and_join(session).build().plot()
    assert sorted(texts(figure, "label")) == ["combine", "left", "right", "seed"]
    assert texts(figure, "title") == ["skip if guard"]
    assert texts(figure, "names") == ["x", "y", "y"]
    assert texts(figure, "stage") == ["stage 0 work_share", "stage 1 " + figure_schedule(session), "stage 2 work_share"]
    assert len(lines(figure)) == 4 and lines(figure, "WAR") == lines(figure, "WAW") == []
    assert [len(shapes(figure, gid)) for gid in ("nodes", "opaque nodes", "frames")] == [2, 2, 1]


def figure_schedule(session):
    return fork_and_join(session).build().schedule[1]


def test_plot_ends_each_line_at_the_node_that_waits(local):
    figure = fork_and_join(local).plot()
    rows = _core.figure(fork_and_join(local)._core)
    ends = {tuple(line[-1]) for line in lines(figure)}
    tops = {edge[1]: rows["shapes"][edge[1]][1] for edge in rows["edges"]}
    assert {y for _, y in ends} == set(tops.values())


def test_plot_draws_each_kind_in_its_own_style(local):
    x = local.zeros(8)
    g = eagle.Graph(local)
    g.add_node(opaque(nothing, writes={"x": x})).add_node(opaque(nothing, reads={"x": x}))
    g.add_node(opaque(nothing, writes={"x": x})).add_node(opaque(nothing, writes={"x": x}))
    figure = g.plot()
    assert [len(lines(figure, kind)) for kind in ("RAW", "WAR", "WAW")] == [1, 1, 1]
    drawn = [c for c in figure.axes[0].collections if (c.get_gid() or "").endswith("edges")]
    assert len({(tuple(c.get_color()[0]), str(c.get_linestyle())) for c in drawn}) == 3


def test_plot_leaves_out_what_it_is_told_to(local):
    figure = fork_and_join(local).plot(edge_labels=False, show_schedule=False)
    assert texts(figure, "names") == []
    assert texts(figure, "stage") == []
    assert len(lines(figure)) == 4


def test_plot_makes_a_plain_figure_that_pyplot_does_not_know(local, tmp_path):
    from matplotlib import figure as figures

    figure = fork_and_join(local).plot()
    assert type(figure) is figures.Figure
    figure.savefig(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").stat().st_size > 1000
    assert "matplotlib.pyplot" not in sys.modules


def test_plot_draws_into_axes_that_are_given(local):
    from matplotlib.figure import Figure

    mine = Figure(figsize=(4, 3))
    ax = mine.add_subplot()
    assert fork_and_join(local).plot(ax=ax) is mine
    assert mine.axes == [ax]
    assert len(lines(mine)) == 4


def test_plot_refuses_what_are_no_plain_axes(local):
    from matplotlib.figure import Figure

    figure = Figure()
    g = fork_and_join(local)
    for wrong in (figure, figure.subplots(1, 2), "axes", figure.add_subplot(projection="polar")):
        with pytest.raises(TypeError, match=r"plot: ax: expected plain matplotlib axes \(figure.subplots\(\)\), found"):
            g.plot(ax=wrong)


def test_plot_without_matplotlib_says_how_to_install_it(local):
    script = textwrap.dedent("""
        import sys
        sys.modules["matplotlib"] = None
        import eagle
        try:
            eagle.Graph(eagle.local()).plot()
        except ImportError as error:
            assert isinstance(error, eagle.MissingPackage) and error.reason == "MISSING_PACKAGE"
            assert 'pip install "eagled[plot]"' in str(error)
        else:
            raise SystemExit("no error")
    """)
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_hundred_in_place_nodes_are_one_chain_in_every_format(local):
    x = local.zeros(8)
    g = eagle.Graph(local)
    for _ in range(100):
        g.add_node(opaque(nothing, reads={"x": x}, writes={"x": x}))
    assert g.to_mermaid().count("-->") == 99
    assert len(dot(g.to_dot())["edges"]) == 99
    assert g.to_svg().count('class="edge raw"') == 99
    assert len(lines(g.plot())) == 99


# ---- edges


def test_edges_are_a_sequence(session):
    edges = fork_and_join(session).edges()
    rows = [(0, 1, "x", "RAW"), (0, 2, "x", "RAW"), (1, 3, "y", "RAW"), (2, 3, "y", "RAW")]
    assert len(edges) == 4
    assert edges == rows and edges == tuple(rows) and edges == fork_and_join(session).edges()
    assert edges != rows[:3] and edges != [*rows[:3], (9, 9, "y", "RAW")]
    assert edges != "text"
    assert edges[0] == Edge(0, 1, "x", "RAW") and edges[-1] == rows[3]
    assert edges[0].meaning == "data flows"
    assert edges[1:3] == rows[1:3] and edges[::-1] == rows[::-1] and edges[3:0:-2] == rows[3:0:-2]
    assert edges[2:1] == [] and edges[10:] == []
    assert list(edges) == rows and rows[2] in edges and edges.index(rows[2]) == 2 and edges.count(rows[0]) == 1
    assert repr(edges).startswith("[Edge(src=0, dst=1, plane='x', kind='RAW'), ")
    for outside in (4, -5):
        with pytest.raises(IndexError):
            edges[outside]
    with pytest.raises(TypeError):
        edges["left"]


def test_edges_are_those_of_the_graph_as_it_stood_when_asked(session):
    x = session.zeros(8)
    g = eagle.Graph(session).add_node(opaque(nothing, writes={"x": x}))
    before = g.edges()
    g.add_node(opaque(nothing, reads={"x": x}))
    assert before == [] and len(g.edges()) == 1
    assert eagle.Graph().edges() == ()


def test_many_edges_are_shown_in_part(local):
    x = local.zeros(8)
    g = eagle.Graph(local)
    for _ in range(60):
        g.add_node(opaque(nothing, reads={"x": x}, writes={"x": x}))
    edges = g.edges()
    assert len(edges) == len(list(edges)) == 60 * 59 // 2 * 3
    assert repr(edges).endswith(f"... {len(edges) - 20} more]")


# ---- explain


def test_a_pair_is_explained_by_index_or_label_in_either_order(session):
    g = fork_and_join(session)
    why = g.explain("seed", "left")
    assert why == g.explain(0, 1) == g.explain("left", 0) == g.explain(np.int64(1), "seed")
    assert (why.src, why.src_label, why.dst, why.dst_label, why.relation) == (0, "seed", 1, "left", "ordered")
    (meeting,) = why.meetings
    assert (meeting.kind, meeting.meaning, meeting.src_plane, meeting.dst_plane) == ("RAW", "data flows", "x", "x")
    assert (meeting.count, meeting.first_in_src, meeting.first_in_dst, meeting.exact) == (64, 0, 0, True)
    assert why.refusal.startswith("node 0 'seed' and node 1 'left' are in different branches")
    assert str(why).startswith("'seed' (0) → 'left' (1): the second waits for the first\n")
    assert repr(why) == str(why)


def test_shared_bytes_are_counted_from_each_view(session):
    x = session.zeros((6, 4))
    g = eagle.Graph(session)
    g.add_node(opaque(nothing, writes={"row": x[2]}), name="row")
    g.add_node(opaque(nothing, reads={"column": x[1:, 3]}), name="column")
    (meeting,) = g.explain("row", "column").meetings
    assert (meeting.count, meeting.first_in_src, meeting.first_in_dst) == (8, 24, 32)
    assert meeting.first % 64 % 32 == 24 or meeting.first >= (2 * 4 + 3) * 8


def test_a_race_is_explained_with_the_refusal_of_build(session):
    g = racing(session)
    why = g.explain("L", "R")
    assert why.relation == "racing"
    with pytest.raises(eagle.RacingSiblings) as refused:
        g.build()
    assert str(refused.value) == "build: " + why.refusal


def test_siblings_and_strangers_share_nothing(session):
    g = fork_and_join(session)
    assert g.explain("left", "right").relation == "siblings"
    x = session.zeros(8)
    g = eagle.Graph(session).add_node(opaque(nothing, reads={"x": x})).add_node(opaque(nothing, reads={"x": x}))
    why = g.explain(0, 1)
    assert (why.relation, why.meetings, why.refusal) == ("independent", (), "")


def test_a_node_is_explained_with_roles_bytes_schedule_and_edges(session):
    g = fork_and_join(session).build()
    why = g.explain("left")
    assert (why.index, why.label, why.stage) == (1, "left", 1)
    assert why.kind == "a launch of kernel 'scaled' over 8 samples"
    read, written = why.planes
    assert (read.name, read.read, read.written, read.bytes) == ("x", True, False, 64)
    assert (written.name, written.read, written.written, written.bytes) == ("y", False, True, 64)
    assert read.why.startswith("input: ") and written.why.startswith("output: ")
    assert why.schedule == g.schedule[1]
    assert "threads" in why.why or "1 thread" in why.why
    assert why.incoming == ((0, 1, "x", "RAW"),) and why.outgoing == ((1, 3, "y", "RAW"),)
    assert str(why) in _core.host_explanation(g._core, 1, None)


def test_a_node_is_explained_before_the_build(session):
    why = fork_and_join(session).explain("combine")
    assert why.schedule is None
    assert {p.name for p in why.planes} == {"guard", "l", "r", "z"}
    assert "not built" in str(why)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((4,), ValueError, "nodes 0 to 3"),
        ((-1,), ValueError, "there is no node -1"),
        ((2**40,), ValueError, "there is no node"),
        (("nobody",), ValueError, "no node 'nobody'"),
        ((0, 0), ValueError, "does not wait for itself"),
        ((True,), TypeError, "found bool"),
        ((1.5,), TypeError, "found float"),
        ((0, object()), TypeError, "dst: expected"),
    ],
)
def test_nodes_that_are_not_there_are_refused(session, arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        fork_and_join(session).explain(*arguments)
    assert isinstance(caught.value, eagle.EagleError)
    assert str(caught.value).startswith("explain: ")


def test_a_label_of_several_nodes_is_refused_with_their_indices(session):
    with pytest.raises(ValueError, match="by its index: 0, 1"):
        hostile(session, "same").explain("same")
    with pytest.raises(ValueError, match="empty"):
        eagle.Graph(session).explain(0)
