"""The package itself: documentation that runs, light imports, exceptions made from the one table, types."""

from __future__ import annotations

import ctypes
import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import eagle
from eagle import _core

# Examples with packages of others run where those are: tests/gradients, tests/interop, tests/scale.
ELSEWHERE = ("eagle.frameworks.torch", "eagle.frameworks.jax", "eagle.interop.xarray", "eagle.dask", "eagle.ray")
MODULES = ["eagle"] + [
    info.name
    for info in pkgutil.walk_packages(eagle.__path__, "eagle.")
    if not info.name.endswith("_core") and info.name not in ELSEWHERE
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_documentation_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def public_things():
    for name in eagle.__all__:
        thing = getattr(eagle, name)
        if inspect.isclass(thing) or inspect.isfunction(thing) or inspect.ismodule(thing):
            yield name, thing
        if inspect.isclass(thing) and thing.__module__.startswith("eagle"):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    yield f"{name}.{member}", value


@pytest.mark.parametrize("name", [name for name, _ in public_things()])
def test_everything_public_is_documented(name):
    thing = dict(public_things())[name]
    assert inspect.getdoc(thing)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="this Python does not list its standard library")
def test_importing_takes_numpy_and_the_core_only():
    program = "import sys; import numpy; before = set(sys.modules); import eagle; print(*(set(sys.modules) - before))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in ran.stdout.split()}
    assert loaded - set(sys.stdlib_module_names) <= {"eagle", "numpy"}
    assert "numpy.ma" not in ran.stdout.split(), "it takes a third as long as all of eagle"


def test_what_few_programs_need_is_imported_when_it_is_asked_for():
    later = ["eagle.graph", "eagle._graph_files", "eagle._pipeline", "eagle.diff", "eagle.interop"]
    program = (
        "import sys, eagle\n"
        f"print([name for name in {later} if name in sys.modules])\n"
        "assert {*eagle.__all__, 'interop'} <= {*dir(eagle)}\n"
        "from eagle import *\n"
        "assert (Graph, GraphFile, graph) == (eagle.graph.Graph, eagle._graph_files.GraphFile, eagle.graph)\n"
        "assert eagle.interop.import_buffer and 'interop' in vars(eagle)\n"
        "assert diff is eagle.diff and GraphPipeline is eagle.GraphPipeline\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")


def test_a_name_that_the_package_does_not_have_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'eagle' has no attribute 'grpah'"):
        _ = eagle.grpah


def test_the_module_shows_nothing_but_itself():
    assert ctypes.PyDLL(_core.__file__).PyInit__core
    shown = subprocess.run(["nm", "-D", "--defined-only", _core.__file__], capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in shown.stdout.splitlines()] == ["PyInit__core"]


def test_the_compiler_is_not_mapped_into_the_client(local):
    k = eagle.kernel(source="def f(x: Scalar) -> Scalar:\n    return x + 1")
    k(local.zeros(3))
    assert "LLVM" not in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("row", _core.reasons(), ids=lambda row: row[0])
def test_every_reason_has_an_exception_of_its_class_and_of_the_builtin(row):
    reason, code, raised, meaning = row
    error = _core.error(reason, "what happened")
    assert type(error) is raised
    assert (error.reason, error.code, str(error)) == (reason, code, "what happened")
    assert isinstance(error, eagle.EagleError)
    builtins = [c for c in raised.__mro__ if c.__module__ == "builtins" and c not in (Exception, BaseException, object)]
    assert builtins
    assert meaning


def test_named_exceptions_are_the_builtins_that_users_expect():
    expected = {
        "Busy": RuntimeError,
        "RacingSiblings": ValueError,
        "CopyBoundPlane": ValueError,
        "GraphState": RuntimeError,
        "KernelSyntaxError": TypeError,
        "DaemonUnavailable": ConnectionError,
        "DeadlineExceeded": TimeoutError,
        "SessionClosed": RuntimeError,
        "WorkerRestarted": RuntimeError,
        "PrivateArray": ValueError,
        "MissingPackage": ImportError,
    }
    for name, builtin in expected.items():
        assert issubclass(getattr(eagle, name), (eagle.EagleError, builtin))
        assert issubclass(getattr(eagle, name), builtin)
    assert isinstance(_core.error("PLANE_BUDGET", ""), (eagle.LimitExceeded, MemoryError))
    assert isinstance(_core.error("PLANE_BUDGET", ""), MemoryError)


def test_select_works_outside_of_kernels_too():
    assert eagle.select([True, False], 1, 2).tolist() == [1, 2]


@pytest.mark.parametrize("arguments", [["--local"], []])
def test_the_example_prints_result_schedule_picture_and_what_is_next(arguments, endpoint, monkeypatch):
    monkeypatch.setenv("EAGLE_ENDPOINT", endpoint)
    command = [sys.executable, "-m", "eagle.examples.ensemble", "--samples", "100000", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=150, check=True)
    for words in (
        "1,000 steps, 100,000 finished, status finished",
        "x[:3] = 0.5405728050653854,",
        "work_share, work_share",
        "╎ double ",
        "What to try next",
    ):
        assert words in ran.stdout


def test_the_example_refuses_a_bad_size():
    command = [sys.executable, "-m", "eagle.examples.ensemble", "--samples", "0"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert "at least 1" in ran.stderr


@pytest.mark.parametrize("tool", [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]], ids=" ".join)
def test_the_sources_pass_the_linters(tool):
    folder = Path(__file__).parents[1]
    pytest.importorskip(tool[0])
    ran = subprocess.run(
        [sys.executable, "-m", *tool, *([] if tool == ["mypy"] else ["."])],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
