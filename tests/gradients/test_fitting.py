"""The example of the manual finds what it looks for."""

from __future__ import annotations

from eagle.examples import fitting


def test_stiffness_and_damping_of_a_spring_are_found_in_under_200_steps(session):
    found = fitting.fit(session)
    assert len(found.misfits) < 200
    # The data have errors of 1e-3; the same descent in plain numpy ends at 4.00027663, 0.30016266.
    assert abs(found.stiffness - 4.00027663) < 1e-5
    assert abs(found.damping - 0.30016266) < 1e-5
    assert found.misfits[-1] < 1e-5 < found.misfits[0]
