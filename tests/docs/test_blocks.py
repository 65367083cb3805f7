"""Every code block of every page runs."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from blocks import OUTPUTS, PROGRAMS, ROOT, Block, blocks_of, pages
from cpp import build_program
from harness import BUILD, PATIENCE_S
from operators import run_eagled
from pages import PAGES, SHOWS, Page, elsewhere, of

RUN_PAGE = Path(__file__).with_name("run_page.py")
STAND_INS = Path(__file__).with_name("stand_ins")
#: What a page leaves running ends with it, and must have begun before the next command: people type slowly.
PRELUDE = """set -euo pipefail
trap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT
up() {
  for _ in $(seq 600); do
    [[ ! -S $1 ]] || return 0
    kill -0 $! || exit 8
    sleep 0.1
  done
  exit 8
}
"""


def here(page: str, language: str) -> list[Block]:
    """The blocks of this language that this suite runs."""
    return [
        block
        for block in blocks_of(page)
        if block.language == language and elsewhere(page, language, block.code) is None
    ]


def with_blocks(language: str) -> list[str]:
    return [page for page in pages() if here(page, language)]


def environment(endpoint: str, folder: Path) -> dict[str, str]:
    paths = (STAND_INS, BUILD / "bin", Path(sys.executable).parent, os.environ["PATH"])
    return {
        **os.environ,
        "PATH": ":".join(map(str, paths)),
        "EAGLE_ENDPOINT": endpoint,
        "EAGLE_CACHE_DIR": "",
        "HOME": os.environ.get("HOME", str(folder)),
    }


def run(command: list[str], folder: Path, endpoint: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd or folder,
        env=environment(endpoint, folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # as on a terminal
        text=True,
        timeout=5 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}"
    return done.stdout


@pytest.fixture
def prepared(request: pytest.FixtureRequest, short_path: Path) -> Callable[[str, str], str]:
    """Code as it runs here, of a page."""

    def made(page: str, code: str) -> str:
        how = of(page)
        known = {"folder": str(short_path), "root": str(ROOT)}
        if "tls" in how.needs:
            known.update(request.getfixturevalue("tls"))
        for name, text in how.files.items():
            (short_path / name).write_text(text)
        # All at once: what one puts in place is nothing for another.
        words = re.compile("|".join(map(re.escape, sorted(how.stand_ins, key=len, reverse=True))) or r"(?!)")
        return words.sub(lambda found: how.stand_ins[found[0]].format(**known), code)

    return made


def as_module(page: str, blocks: list[Block], how: Page) -> str:
    """The Python of a page, each line at its place there, so that a traceback names it."""
    lines: list[str] = []
    for block in blocks:
        lines += [""] * (block.line - 1 - len(lines)) + block.code.splitlines()
    return "\n".join(lines) + f"\n\n# After the page.\n{how.after}\n"


def check_outputs(page: str, said: str) -> None:
    """Every block that shows what programs print shows what one of this page has printed."""
    missing = [block for block in blocks_of(page) if block.language in OUTPUTS and block.code.rstrip() not in said]
    assert not missing, f"{page}:{missing[0].line} shows\n{missing[0].code}\nand printed was\n{said}"


def check_pictures(how: Page, folder: Path) -> None:
    for made, place in how.pictures.items():
        if os.environ.get("EAGLE_WRITE_PICTURES"):
            (ROOT / place).write_bytes((folder / made).read_bytes())
        assert (folder / made).read_text() == (ROOT / place).read_text(), f"{place}: EAGLE_WRITE_PICTURES=1"


@pytest.mark.parametrize(
    ("page", "host"),
    [(page, host) for page in with_blocks("python") if not of(page).programs for host in of(page).hosts],
)
def test_the_python_of_a_page_runs(
    page: str, host: str, short_path: Path, endpoint: str, prepared: Callable[[str, str], str]
) -> None:
    module = short_path / f"{Path(page).stem}_page.py"
    module.write_text(prepared(page, as_module(page, here(page, "python"), of(page))))
    said = run([sys.executable, str(RUN_PAGE), str(module), host], short_path, endpoint)
    if not here(page, "sh") and not here(page, "cpp"):
        check_outputs(page, said)
    check_pictures(of(page), short_path)


def programs() -> list[tuple[str, int]]:
    return [
        (page, number) for page, how in PAGES.items() if how.programs for number in range(len(here(page, "python")))
    ]


@pytest.mark.parametrize(("page", "number"), programs())
def test_a_program_prints_what_the_page_says(page: str, number: int, tmp_path: Path, endpoint: str) -> None:
    every = blocks_of(page)
    program = here(page, "python")[number]
    output = every[every.index(program) + 1]
    assert output.language == "text"
    path = tmp_path / "program.py"
    path.write_text(program.code)
    assert run([sys.executable, str(path)], tmp_path, endpoint) == output.code


@pytest.mark.parametrize("page", with_blocks("sh"))
def test_the_commands_of_a_page_work(
    page: str, short_path: Path, endpoint: str, prepared: Callable[[str, str], str]
) -> None:
    script = prepared(page, "\n".join(block.code for block in here(page, "sh")))
    script = re.sub(r" &$", f" &\nup {short_path}/own.sock", script, flags=re.MULTILINE)
    from_root = "build/release/" in script  # a checkout's commands
    path = short_path / "commands.sh"
    path.write_text(PRELUDE + script)
    check_outputs_of_commands(page, run(["bash", str(path)], short_path, endpoint, ROOT if from_root else None))


def check_outputs_of_commands(page: str, said: str) -> None:
    if not here(page, "python") and not here(page, "cpp"):
        check_outputs(page, said)


@pytest.mark.parametrize(
    "block",
    [block for page in with_blocks("cpp") for block in here(page, "cpp")],
    ids=lambda one: f"{one.page}:{one.line}",
)
def test_cpp_compiles_and_prints_what_the_page_says(block: Block, short_path: Path, endpoint: str) -> None:
    source = short_path / "program.cpp"
    source.write_text(f'#line {block.line} "{block.page}"\n{block.code}')
    (short_path / "eagle-compile").symlink_to(BUILD / "bin/eagle-compile")  # beside the program, as the page says
    said = run([str(build_program(source))], short_path, endpoint)
    every = blocks_of(block.page)
    after = every[every.index(block) + 1 :]
    if after and after[0].language in OUTPUTS:
        assert said == after[0].code


@pytest.mark.parametrize("page", with_blocks("toml"))
def test_a_configuration_is_good(page: str, short_path: Path, prepared: Callable[[str, str], str]) -> None:
    for number, block in enumerate(here(page, "toml")):
        path = short_path / f"eagled-{number}.toml"
        path.write_text(prepared(page, block.code))
        # What is a part of a file goes into one that says where to listen.
        listen = () if "[[listen]]" in block.code else ("--listen", f"unix:{short_path}/own.sock")
        checked = run_eagled("--config", str(path), *listen, "--check-config")
        assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("page", with_blocks("yaml"))
def test_a_piece_of_a_pod_is_good(page: str) -> None:
    """Put into a pod, each passes Kubernetes' schema."""
    for block in here(page, "yaml"):
        piece = yaml.safe_load(block.code)
        container = {"name": "client", "image": "client:1"}
        container |= {key: piece.pop(key) for key in ("env", "volumeMounts") if key in piece}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "client"}}
        kubernetes_validate.validate(
            {**pod, "spec": {**piece, "containers": [container]}}, kubernetes_validate.latest_version(), strict=True
        )
        mounted = {mount["name"] for mount in container.get("volumeMounts", ())}
        assert mounted == {volume["name"] for volume in piece.get("volumes", ())}


def test_no_block_is_skipped() -> None:
    """Each has a language that is run, or shows what is printed on a page that has programs."""
    left = []
    for page in pages():
        every = blocks_of(page)
        has_programs = any(block.language in PROGRAMS for block in every)
        for block in every:
            shown = block.language in OUTPUTS and (has_programs or page in SHOWS)
            if block.language not in PROGRAMS and not shown:
                left.append(f"{page}:{block.line}: '{block.language}'")
    assert left == [], "blocks that nothing runs"


def test_what_runs_blocks_elsewhere_is_there() -> None:
    named = {
        test for page in pages() for block in blocks_of(page) if (test := elsewhere(page, block.language, block.code))
    }
    assert len(named) >= 3
    for test in named:
        path, _, name = test.partition("::")
        assert (ROOT / path).is_file(), test
        assert f"def {name}" in (ROOT / path).read_text() or not name, test


@pytest.mark.parametrize("page", SHOWS)
def test_a_picture_is_that_of_its_file(page: str) -> None:
    shown = [block.code for block in blocks_of(page) if block.language in OUTPUTS]
    assert shown == [(ROOT / SHOWS[page]).read_text()]


def test_every_entry_is_of_a_page() -> None:
    assert [page for page in PAGES if not (ROOT / page).is_file()] == []


def test_commands_of_the_readme_exist() -> None:
    commands = re.findall(r"^bash (\S+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {"deploy/quickstart.sh", "tests/run.sh"} <= set(commands)
    assert [command for command in commands if not (ROOT / command).is_file()] == []
