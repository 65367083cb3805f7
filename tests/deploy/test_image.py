"""The image: built from its Dockerfile over a Debian root, with no registry, and run as it says that it is to be run.

The program that runs it is bubblewrap, with the user, the read-only root, the volumes and the /tmp of compose.yaml:
container engines need cgroups that a machine for tests may not have. What the image says of itself comes from it.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import PATIENCE_S, ROOT, wait_until
from machine import MissingTool
from operators import lacks
from roots import UID, confined, end_confined, plain_root

pytestmark = pytest.mark.timeout(900)  # the first test builds the image

PAGE = ROOT / "docs/manual/containers.md"
IMAGE = "localhost/eagled-test"
CUDA_IMAGE = "localhost/eagled-test-cuda"
BASE = "localhost/eagled-test-debian"
ARCHIVE = "localhost/eagled-test-archive"
LONGEST_S = 900.0


class Storage:
    """Images of this test run alone."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "BUILDAH_ISOLATION": "chroot",
            "STORAGE_DRIVER": "vfs",
        }
        self.options = ["--root", str(folder / "storage"), "--runroot", str(folder / "run")]
        self.context = folder / "context"  # what the last stages copy of the sources
        shutil.copytree(ROOT / "deploy/docker", self.context / "deploy/docker")

    def buildah(self, *arguments: object) -> str:
        ran = subprocess.run(
            ["buildah", *self.options, *map(str, arguments)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        assert ran.returncode == 0, (
            f"buildah {' '.join(map(str, arguments))}:\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
        )
        return ran.stdout.strip()

    def build(self, dockerfile: str, tag: str, *arguments: str) -> None:
        """With what a registry would give taken from here."""
        given = [word for argument in arguments for word in ("--build-arg", argument)]
        self.buildah(
            "bud", "--quiet", "--format", "docker", "--pull-never", *given,
            "--file", ROOT / "deploy/docker" / dockerfile, "--tag", tag, self.context,
        )  # fmt: skip

    def config(self, image: str) -> dict[str, Any]:
        return json.loads(self.buildah("inspect", "--type", "image", image))["Docker"]["config"]


class Image:
    def __init__(self, storage: Storage) -> None:
        self.config = storage.config(IMAGE)
        self.root = Path(storage.buildah("mount", storage.buildah("from", IMAGE)))

    def command(self, run: Path, *arguments: str, cache: "Path | None" = None) -> list[str]:
        """What an engine would start: entrypoint and command, or other arguments, with the image's environment."""
        environment = [word for line in self.config["Env"] for word in ("--setenv", *line.split("=", 1))]
        options = ["--bind", str(run), "/run/eagled", *environment]
        if cache is not None:
            options += ["--bind", str(cache), "/var/cache/eagled"]
        return [*confined(self.root, *options), *self.config["Entrypoint"], *(arguments or self.config["Cmd"])]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    """With the images that others begin with: a Debian, and the archive."""
    try:
        root = plain_root()
    except MissingTool as why:
        lacks(str(why))
    if shutil.which("buildah") is None:
        lacks("no buildah: apt-get install buildah")
    folder = tmp_path_factory.mktemp("images")
    storage = Storage(folder)
    empty = storage.buildah("from", "scratch")
    storage.buildah("add", "--quiet", empty, root, "/")
    storage.buildah("commit", "--quiet", "--rm", empty, BASE)
    packages = Path(os.environ.get("EAGLE_PACKAGES_DIR", ROOT / "build/packages"))
    tarball = max(packages.glob("eagled-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    holds_it = storage.buildah("from", "scratch")
    storage.buildah("copy", "--quiet", holds_it, tarball, "/")  # `add` would unpack it
    storage.buildah("commit", "--quiet", "--rm", holds_it, ARCHIVE)
    yield storage
    storage.buildah("umount", "--all")
    storage.buildah("rm", "--all")
    storage.buildah("rmi", "--all", "--force")


@pytest.fixture(scope="module")
def image(storage: Storage) -> Image:
    # The page's own command, with what no registry has to give.
    built_from = re.search(r"^docker build -f deploy/docker/(\S+) -t eagled \.$", PAGE.read_text(), re.MULTILINE)
    assert built_from is not None
    storage.build(built_from[1], IMAGE, f"DEBIAN={BASE}", f"TARBALL={ARCHIVE}")
    return Image(storage)


@pytest.fixture
def volumes(short_path: Path) -> Path:
    for name in ("run", "cache"):
        (short_path / name).mkdir()
        os.chown(short_path / name, UID, UID)
    return short_path


@pytest.fixture
def container(image: Image, volumes: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (volumes / "log").open("wb") as log:
        started = subprocess.Popen(
            [*image.command(volumes / "run", cache=volumes / "cache")], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield started
    finally:
        end_confined(started)


def said(volumes: Path) -> str:
    return (volumes / "log").read_text(errors="replace")


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)


def serves(image: Image, volumes: Path, container: subprocess.Popen[bytes]) -> bool:
    assert container.poll() is None, said(volumes)
    kind, *health = image.config["Healthcheck"]["Test"]
    assert kind == "CMD"
    return run(image.command(volumes / "run", *health)).returncode == 0


def test_the_image_says_how_it_is_run(image: Image) -> None:
    assert image.config["User"] == f"{UID}:{UID}"
    assert image.config["Healthcheck"]["Test"] == ["CMD", "eagled", "health", "eagled.ready"]
    assert image.config["Entrypoint"][0].endswith("tini")
    assert image.config["Labels"]["org.opencontainers.image.title"] == "eagled"
    assert set(image.config["Volumes"]) == {"/run/eagled", "/var/cache/eagled"}


def test_the_image_for_gpus_differs_in_its_base_and_what_it_asks_of_the_driver(storage: Storage, image: Image) -> None:
    """Over Debian instead of NVIDIA's base image, which is in a registry: every other line of it is built."""
    storage.build("cuda.Dockerfile", CUDA_IMAGE, f"DEBIAN={BASE}", f"RUNTIME={BASE}", f"TARBALL={ARCHIVE}")
    config = storage.config(CUDA_IMAGE)
    asked = {"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}
    assert set(config["Env"]) - set(image.config["Env"]) == asked
    for name in ("User", "Volumes", "Healthcheck", "Entrypoint", "Cmd", "Labels", "ExposedPorts", "StopSignal"):
        assert config[name] == image.config[name], name


def test_the_image_holds_nothing_that_builds(image: Image) -> None:
    names = {path.name for folder in ("usr/bin", "usr/local/bin") for path in (image.root / folder).iterdir()}
    assert {"eagled", "eaglectl"} <= names
    assert not {"cc", "gcc", "g++", "c++", "clang", "cmake", "ninja", "make", "ld"} & names
    assert not (image.root / "usr/local/include/eagled").exists()


def test_a_client_beside_it_computes_in_shared_memory(
    image: Image, volumes: Path, container: subprocess.Popen[bytes]
) -> None:
    wait_until(lambda: serves(image, volumes, container), f"the container to be healthy\n{said(volumes)}")
    client = run(image.command(volumes / "run", "eaglectl", "bench", "--launches", "20"))
    assert client.returncode == 0, client.stdout + client.stderr + said(volumes)
    assert "ring" in client.stdout, "launches go through memory that both containers map"


def test_the_entrypoint_tells_what_it_found(image: Image, volumes: Path, container: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: serves(image, volumes, container), f"the container to be healthy\n{said(volumes)}")
    for finding in ("kernel.memfd", "limits.memlock", "memory.budget", "gpu.driver"):
        assert f"[{finding}]" in said(volumes)


def test_the_entrypoint_starts_no_daemon_that_cannot_work(image: Image, volumes: Path) -> None:
    command = image.command(volumes / "run", cache=volumes / "cache")
    place = command.index("setpriv")
    command[place:place] = ["--setenv", "EAGLE_COMPILE_HELPER", "/nowhere"]
    ran = run(command)
    assert ran.returncode == 1
    assert "compiler.helper" in ran.stderr
    assert "eagled is not started" in ran.stderr


def test_stopping_it_drains(image: Image, volumes: Path, container: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: serves(image, volumes, container), f"the container to be healthy\n{said(volumes)}")
    inside = dict(descendants(container.pid))
    tini = next(pid for pid, name in inside.items() if name == "tini")
    os.kill(tini, 15)  # STOPSIGNAL, as an engine sends it
    assert container.wait(PATIENCE_S) == 0, said(volumes)
    assert re.search(r"drained: 0 of 0 jobs", said(volumes))


def descendants(pid: int) -> list[tuple[int, str]]:
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found.append((int(child), Path(f"/proc/{child}/comm").read_text().strip()))
        found += descendants(int(child))
    return found
