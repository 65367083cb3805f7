"""Rules of the house that are no compiler's business."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tree import ROOT, files, text, texts, with_suffix

COMMENT = re.compile(r"(//|#|/\*).*$")
README_LINES = 60
FILE_LINES = 700
# Folders that only spell out a package or include path, or hold pages: the README above speaks for them.
EXEMPT_FOLDERS = re.compile(r"^(client/include|proto/eagle|proto/grpc|python_client/eagle|docs/\w+|\.ci)(/|$)")


def folders() -> list[Path]:
    """Folders that hold files, down to the second level."""
    found = {parent for path in files() for parent in path.parents if parent != Path(".") and len(parent.parts) <= 2}
    return sorted(folder for folder in found if not EXEMPT_FOLDERS.match(str(folder)))


def test_every_folder_has_a_readme_of_a_screenful():
    wrong = []
    for folder in folders():
        readme = ROOT / folder / "README.md"
        if not readme.is_file():
            wrong.append(f"{folder} has no README.md")
        elif (lines := len(readme.read_text().splitlines())) > README_LINES:
            wrong.append(f"{folder}/README.md has {lines} lines; at most {README_LINES}")
    assert not wrong, "\n".join(wrong)


def test_nothing_loosens_floating_point():
    flags = ["f[f]ast-math", "O[f]ast", "fp-contract=(fas[t]|o[n])", "f[u]nsafe-math", "f[a]ssociative-math"]
    calls = ["set[A]llowContract", "set[A]llowReassoc", r"\bset[F]ast\(", "FPOpFusion::[F]ast"]
    pattern = re.compile("|".join(flags + calls))  # [x]: so that this file does not find itself
    loose = [
        f"{path}:{number}: {line.strip()}"
        for path in texts()
        if path.suffix not in (".md",)
        for number, line in enumerate(text(path).splitlines(), 1)
        if pattern.search(COMMENT.sub("", line))
    ]
    assert not loose, "\n".join(loose)


def test_contraction_is_off_for_every_target():
    assert "-ffp-contract=off" in text(Path("cmake/EagleCompile.cmake"))


def test_no_wait_follows_the_wall_clock():
    """A clock that jumps must end no lease and no deadline. gRPC's own deadlines are wall time and turned at once."""
    wall = re.compile(r"system_clock|CLOCK_REALTIME|gettimeofday\(|\btime\(nullptr|\btime\(NULL")
    grpc = re.compile(r"context\.(set_)?deadline|AsyncNext|->Shutdown\(|time_since_epoch")  # or a number, no wait
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in with_suffix(".h", ".cpp")
        if path.parts[0] in ("engine", "server", "client") and not path.stem.endswith("_test")
        for number, line in enumerate(text(path).splitlines(), 1)
        if wall.search(COMMENT.sub("", line)) and not grpc.search(line)
    ]
    assert not found, "\n".join(found)


def test_sources_use_nothing_that_clang_refuses():
    """libstdc++ 12 marks what its stable sort uses as deprecated, and the sanitizers build with clang."""
    refused = re.compile(r"stable_[s]ort|stable_[p]artition|inplace_[m]erge|get_temporary_[b]uffer")
    found = [str(path) for path in with_suffix(".h", ".cpp") if refused.search(text(path))]
    assert not found, f"sort by a key that has no ties instead: {found}"


def test_no_path_of_a_machine():
    pattern = re.compile("/[w]ork/|/[h]ome/[a-z]|/[f]arm/|/[U]sers/|/[r]oot/")  # [x]: not to find this file
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(text(path).splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)


def test_files_can_be_read_in_one_sitting():
    code = with_suffix(".h", ".cpp", ".c", ".py", ".sh", ".proto")
    long = [f"{path}: {lines} lines" for path in code if (lines := len(text(path).splitlines())) > FILE_LINES]
    assert not long, "\n".join(long)


def test_headers_are_included_once():
    assert [str(path) for path in with_suffix(".h") if "#pragma once" not in text(path)] == []


def shell_scripts() -> list[Path]:
    return [path for path in texts() if text(path).startswith("#!/usr/bin/env bash") or path.suffix == ".sh"]


def test_shell_scripts_parse():
    scripts = shell_scripts()
    assert {"deploy/quickstart.sh", "tests/run.sh", ".ci/run"} <= {str(path) for path in scripts}
    for path in scripts:
        result = subprocess.run(["bash", "-n", ROOT / path], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr


def test_cpp_test_names_are_unique():
    pattern = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)
    sources = [path for path in with_suffix(".cpp", ".h") if "TEST" in text(path)]
    names = Counter(".".join(name) for path in sources for name in pattern.findall(text(path)))
    assert len(names) > 50
    assert [name for name, count in names.items() if count > 1] == []


def test_python_test_modules_have_names_of_their_own():
    names = Counter(path.name for path in with_suffix(".py") if path.name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_cpp_test_is_built():
    """A test file that no CMakeLists.txt names never runs."""
    forgotten = []
    for path in with_suffix(".cpp"):
        if path.stem.endswith("_test"):
            lists = [ROOT / parent / "CMakeLists.txt" for parent in path.parents]
            nearest = next(file for file in lists if file.is_file())
            if path.name not in nearest.read_text():
                forgotten.append(f"{path} is not in {nearest.relative_to(ROOT)}")
    assert not forgotten, "\n".join(forgotten)


@pytest.mark.parametrize("arguments", [["check"], ["format", "--check", "--diff"]], ids=["lint", "format"])
def test_python_style(arguments):
    sources = [ROOT / path for path in with_suffix(".py", ".pyi")]
    command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", *sources]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
