"""raptor-eagle, which has a folder `eagle` too, in the same environment: the real one, put there in either order."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import EAGLECTL, PATIENCE_S

OTHER = "raptor-eagle==0.7.1"  # as tests/differential


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    pip("download", "--no-deps", "--dest", folder, OTHER)
    return folder


def pip(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "pip", *map(str, arguments), "--quiet"], check=True, timeout=3 * PATIENCE_S)


def install(site: Path, *wheels: Path) -> None:
    """One after the other, each over what is there."""
    for wheel in wheels:
        fresh = site.with_name("fresh")
        pip("install", "--no-deps", "--no-index", "--target", fresh, wheel)
        shutil.copytree(fresh, site, dirs_exist_ok=True)
        shutil.rmtree(fresh)


def python(site: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def doctor(site: Path) -> list[dict[str, str]]:
    ran = subprocess.run(
        [EAGLECTL, "--json", "doctor", "--no-daemon", "--python", sys.executable],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    found = json.loads(ran.stdout)
    findings = found["findings"] if isinstance(found, dict) else found
    return [one for one in findings if one["id"] == "python.package"]


def test_import_warns_of_raptor_eagle_and_says_what_to_do(tmp_path: Path, wheels: Path, one) -> None:
    site = tmp_path / "site"
    install(site, next(wheels.glob("*.whl")), one("eagled-*.whl"))
    ran = python(site, "import eagle; print(eagle.connect)")
    assert ran.returncode == 0, ran.stderr
    assert "RuntimeWarning: import eagle: raptor-eagle 0.7.1 is installed in" in ran.stderr
    assert "pip uninstall raptor-eagle" in ran.stderr


def test_a_core_that_was_written_over_is_refused_with_the_cure(tmp_path: Path, wheels: Path, one) -> None:
    site = tmp_path / "site"
    install(site, next(wheels.glob("*.whl")), one("eagled-*.whl"))
    theirs = tmp_path / "theirs"
    install(theirs, next(wheels.glob("*.whl")))
    (core,) = (theirs / "eagle").glob("_core*.so")
    shutil.copy(core, site / "eagle" / core.name)
    ran = python(site, "import eagle")
    assert ran.returncode != 0
    assert "is not the module of this package" in ran.stderr
    assert "pip install --force-reinstall eagled" in ran.stderr


def test_without_neighbours_nothing_is_said(tmp_path: Path, one) -> None:
    site = tmp_path / "site"
    install(site, one("eagled-*.whl"))
    ran = python(site, "import eagle; print(eagle.__file__)")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert str(site) in ran.stdout


@pytest.mark.parametrize("last", ["ours", "theirs"])
def test_doctor_names_both_whichever_came_last(tmp_path: Path, wheels: Path, one, last: str) -> None:
    site = tmp_path / "site"
    both = [next(wheels.glob("*.whl")), one("eagled-*.whl")]
    install(site, *(both if last == "ours" else reversed(both)))
    problems = [finding for finding in doctor(site) if finding["severity"] == "problem"]
    assert any("raptor-eagle 0.7.1" in finding["what"] for finding in problems), problems
    assert any("uninstall raptor-eagle" in finding["cure"] for finding in problems), problems
