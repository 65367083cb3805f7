"""The example of the manual finds what it looks for."""

from __future__ import annotations

import re
from pathlib import Path

import eagle
from eagle.examples import fitting

ROOT = Path(__file__).resolve().parents[2]


def test_stiffness_and_damping_of_a_spring_are_found_in_under_200_steps(session):
    found = fitting.fit(session)
    assert len(found.misfits) < 200
    # The data have errors of 1e-3; the same descent in plain numpy ends at 4.00027663, 0.30016266.
    assert abs(found.stiffness - 4.00027663) < 1e-5
    assert abs(found.damping - 0.30016266) < 1e-5
    assert found.misfits[-1] < 1e-5 < found.misfits[0]


def test_its_plot_says_what_that_of_the_manual_says(tmp_path):
    """Points differ from one matplotlib to the next, and texts do not."""
    with eagle.local(threads=2) as session:
        fitting.plot(fitting.fit(session), str(tmp_path / "made.svg"))
    made, shown = (
        re.findall("<!-- ([a-z].*?) -->", path.read_text())
        for path in (tmp_path / "made.svg", ROOT / "docs/manual/pictures/fitting.svg")
    )
    assert len(made) == 3, "two axes and a title"
    assert made == shown
