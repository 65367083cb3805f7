"""What people see of results, reports, sessions and planes, in terminals and notebooks."""

from html.parser import HTMLParser

import pytest

import eagle
from eagle import Mutable, Param, Scalar, Terminated, kernel
from eagle._progress import Bar, RunProgress
from eagle._shown import bytes_text, rows_html, rows_text, seconds_text


@kernel
def grow(x: Mutable[Scalar], rate: Param, done: Terminated):
    x = x + rate * x
    done = x > 2.0


class Cells(HTMLParser):
    """The cells of a table, and every tag that there is."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.cells = [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "td":
            self.cells[-1] += data


@pytest.fixture
def result(session):
    x, done = session.full(10, 1.0), session.zeros(10, dtype=bool)
    return eagle.simulate(grow, max_steps=100, x=x, rate=0.5, done=done)


def test_a_result_prints_as_a_person_would_tell_it(result):
    text = str(result)
    assert text.splitlines()[0] == "result of a run"
    assert "finished" in text
    assert "10 of 10 finished" in text
    assert "float64 (10,)" in text
    assert repr(result).startswith("<eagle.SimResult finished: 2 steps, 10 of 10")  # 1.5, 2.25


def test_a_notebook_shows_a_table_of_the_result(result):
    cells = Cells(result._repr_html_()).cells
    shown = dict(zip(cells[::2], cells[1::2]))
    assert shown["status"] == "finished"
    assert shown["steps"] == "2"
    assert shown["x"] == "float64 (10,)"


def test_reports_print_line_by_line(session, result):
    lines = str(result.report).splitlines()
    assert lines[0] == "report of a run"
    assert any(line.split() == ["samples", "10", "of", "10", "finished"] for line in lines)
    assert not any("clamped" in line for line in lines), "there was nothing to put right"
    assert dict(zip(*[iter(Cells(result.report._repr_html_()).cells)] * 2))["mode"] == result.report.mode
    x = session.full(4, 1.0)

    @kernel
    def double(x: Mutable[Scalar]):
        x = 2.0 * x

    bound = eagle.plan(double).bind(x=x).launch()
    assert str(bound.report).startswith("report of a launch\n  launches  1\n")
    assert repr(bound.report).startswith("LaunchReport(host=")


def test_gradients_and_their_pass_are_shown(session):
    x, y = session.full(3, 2.0), session.zeros(3)

    @kernel
    def square(x: Scalar, a: Param) -> Scalar:
        y = a * x * x
        return y

    g = eagle.Graph(session, record=True).add(eagle.plan(square).bind(session=session, x=x, a=2.0, y=y)).build()
    back = eagle.diff.Reverse(g.launch().record, ["y"])
    found = back({"y": [1.0, 1.0, 1.0]})
    assert repr(found) == "<eagle.diff.Gradients of x, a>"
    rows = [line.split(maxsplit=1) for line in str(found).splitlines()]
    assert rows[:3] == [["gradients"], ["x", "float64 (3,)"], ["a", "12.0"]]
    assert [name for name, _ in rows[3:]] == ["time", "memory"]
    cells = Cells(found._repr_html_()).cells
    assert dict(zip(cells[::2], cells[1::2]))["a"] == "12.0"
    assert str(found.report).startswith("report of a reverse pass\n  time ")
    assert "record of 0 B" in found.report._repr_html_()
    assert back._repr_svg_() == back.to_svg()
    assert "reverse square" in back.to_svg()


def test_graphs_and_pipelines_say_what_they_are(session):
    x = session.zeros(3)
    g = eagle.Graph(session, name="here")
    assert repr(g) == "<eagle.Graph here 0 nodes, not built>"
    assert repr(g.add_node(eagle.copy(x, session.zeros(3))).build()) == "<eagle.Graph here 1 node, built>"
    pipe = eagle.GraphPipeline(session).add(lambda: None)
    assert repr(pipe) == "<eagle.GraphPipeline of 1 member, not built>"
    assert repr(pipe.build()) == "<eagle.GraphPipeline of 1 member, built>"


def test_a_run_goes_on_where_its_bar_cannot_be_drawn(session, monkeypatch):
    class Gone:
        """A terminal whose other end is closed."""

        def isatty(self):
            return True

        def write(self, text):
            raise OSError("closed")

        flush = isatty

    monkeypatch.setattr("sys.stderr", Gone())
    x, done = session.full(10, 1.0), session.zeros(10, dtype=bool)
    assert eagle.simulate(grow, max_steps=100, progress=True, x=x, rate=0.5, done=done).steps == 2


def test_a_session_and_its_planes_are_tables(session):
    kept = session.zeros(1000, name="speed")
    assert kept.nbytes == 8000
    planes = session.planes()
    assert isinstance(planes, list)
    assert str(planes).splitlines()[1].split() == ["id", "name", "size", "device", "transport", "for"]
    cells = Cells(planes._repr_html_()).cells
    assert len(cells) == 6 * len(planes)
    assert "eagle session" in str(session.info())
    assert "threads" in session._repr_html_()


def test_names_are_text_in_notebooks():
    parsed = Cells(rows_html("<b>title</b>", ("<i>",), [("<img src=x onerror=alert(1)>",)]))
    assert set(parsed.tags) == {"table", "caption", "tr", "th", "td"}
    assert parsed.cells == ["<img src=x onerror=alert(1)>"]


def test_long_tables_are_cut_and_say_so():
    rows = [(i,) for i in range(100)]
    assert rows_text("title", ("n",), rows).splitlines()[-1] == "  and 40 more"
    assert len(Cells(rows_html("title", ("n",), rows)).cells) == 60


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (5 << 40, "5.00 TiB")])
def test_bytes_have_units(count, text):
    assert bytes_text(count) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.0, "0 s"), (2e-6, "2 us"), (0.5, "500 ms"), (100.0, "100 s")])
def test_times_have_units(seconds, text):
    assert seconds_text(seconds) == text


def test_a_notebook_has_a_bar_that_fills():
    progress = RunProgress(25, 0, 100, 8)
    html = Bar.html(progress, Bar.line(progress, 1.0))
    assert html.startswith('<progress value="0.2500" max="1"')
    assert html.endswith(" 25 % step 25, 0 of 8 finished, 1.0 s")
