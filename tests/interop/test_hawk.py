"""Kernels of raptor-hawk: converted, and held against raptor-hawk's own run of them in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import eagle
import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("EAGLE_BUILD_DIR", HERE.parents[1] / "build" / "release"))
WANTED = ["raptor-hawk==0.7.1", "raptor-eagle==0.7.1"]

NAMES = [
    "scale",
    "energy",
    "running_apogee",
    "curve",
    "drag",
    "oscillator",
    "contact",
    "series",
    "gather",
    "gather_named",
    "attitude",
    "functions",
    "total",
    "quotient",
    "folded",
    "on_a_grid",
    "neighbours",
    "shifted",
    "over_columns",
    "over_rows",
    "bins",
    "bins_named",
    "bins_of_vectors",
    "total_of_vectors",
    "sums",
    "highest",
    "folds",
    "dispatched",
    "largest",
]


@pytest.fixture(scope="session")
def examples(hawk):
    import hawk_examples

    found = hawk_examples.examples()
    assert list(found) == NAMES
    return found


@pytest.fixture(scope="session")
def answers(tmp_path_factory):
    """What raptor-hawk computes, by "example.plane"; or a skip that says why not."""
    folder = BUILD / "hawk-venv"
    python, note = folder / "bin" / "python", folder / "installed"
    if not note.exists() or note.read_text() != str(WANTED):
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", *WANTED]
        installed = subprocess.run(install, capture_output=True, text=True, check=False)
        if installed.returncode != 0:
            pytest.skip(f"{' '.join(WANTED)} cannot be installed: {installed.stderr.strip()[-300:]}")
        note.write_text(str(WANTED))
    told = tmp_path_factory.mktemp("hawk") / "answers.npz"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [python, HERE / "hawk_answers.py", told], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return dict(np.load(told))


def ulps_between(found, expected):
    """The largest distance in units of the last place of the largest value that is expected; NaN equals NaN."""
    if found.dtype == bool or found.dtype.kind in "iu":
        return 0 if np.array_equal(found, expected) else np.inf
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    distance = np.where(same, 0.0, np.abs(found - expected) / np.spacing(np.nanmax(np.abs(expected))))
    return float(distance.max(initial=0.0))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_raptor_hawk(examples, answers, name):
    kernel, arguments, planes, most = examples[name]
    assert f"{name}!" not in answers, answers[f"{name}!"]
    ours = eagle.interop.hawk.kernel(kernel)
    with eagle.local(threads=2) as session:
        given = {
            key: session.asarray(value) if isinstance(value, np.ndarray) else value for key, value in arguments.items()
        }
        # An array that is read at other samples, too, is another argument, and the same array.
        given.update({name: given[name[: -len("_all")]] for name in ours.arguments if name.endswith("_all")})
        bound = eagle.plan(ours).bind(**given).launch()
        for plane in planes:
            expected = answers[f"{name}.{plane}"].reshape(bound.planes[plane].shape)
            assert ulps_between(np.asarray(bound.planes[plane]), expected) <= most, f"{plane}\n{ours.source()}"


def test_the_result_is_a_kernel_like_any_other(examples):
    ours = eagle.interop.hawk.kernel(examples["oscillator"][0])
    assert repr(ours).startswith("<eagle.kernel oscillator(x: Mutable[Scalar], v: Mutable[Scalar]")
    assert ours.source().startswith("def oscillator(")
    with eagle.local(threads=1) as session:
        state = {name: session.full(3, value) for name, value in (("x", 1.0), ("v", 0.0), ("t", 0.0), ("omega", 2.0))}
        done = session.zeros(3, dtype=bool)
        result = eagle.simulate(ours, max_steps=2000, dt=1e-3, t_end=1.0, terminated=done, **state)
    assert result.steps == 1000
    assert state["x"].tolist() == [-0.41697753175791447] * 3  # the acceptance value of this oscillator


def test_it_goes_through_a_file_to_a_daemon(examples, tmp_path):
    ours = eagle.interop.hawk.kernel(examples["scale"][0], name="mapped")
    with eagle.local(threads=1) as session:
        eagle.Graph(session).add(eagle.plan(ours).bind(x=session.zeros(3), a=2.0, b=1.0)).save(tmp_path / "g.eagle")
    with eagle.connect() as session:
        loaded = eagle.Graph.load(tmp_path / "g.eagle", {"x": session.asarray([1.0, 2.0, 3.0])}).build().launch()
        assert loaded.planes["out"].tolist() == [3.0, 5.0, 7.0]
        assert loaded.node_labels() == ["mapped"]


def test_what_has_no_counterpart_is_refused_by_name_with_the_cure(hawk):
    import hawk_refused

    for kernel, words in hawk_refused.cases():
        with pytest.raises(ValueError, match=words):
            eagle.interop.hawk.kernel(kernel)


def test_random_numbers_of_another_stream_are_taken_when_asked_for(hawk):
    import hawk_refused

    with pytest.raises(ValueError, match=r"operation 'random_uniform'.*another stream; say own_random=True"):
        eagle.interop.hawk.kernel(hawk_refused.noisy)
    ours = eagle.interop.hawk.kernel(hawk_refused.noisy, own_random=True)
    with eagle.local(threads=1) as session:
        y = session.zeros(1000)
        eagle.plan(ours).bind(x=session.zeros(1000), y=y).launch()
    assert y.min() > 0
    assert y.max() <= 1
    assert len(set(y.tolist())) > 990


def test_what_is_no_kernel_is_refused():
    with pytest.raises(TypeError, match="expected a kernel that hawk has traced"):
        eagle.interop.hawk.kernel(lambda x: x)
