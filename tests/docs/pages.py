"""What runs the blocks of which page."""

from dataclasses import dataclass, field

MACHINE = "test_every_command_of_the_page_works_on_a_machine"

#: By page and language: the test of another suite that runs these blocks. It is looked up there.
ELSEWHERE = {
    # Root, systemd and a booted machine; every command in its order.
    ("docs/manual/operations.md", "sh"): f"tests/operations/test_pages.py::{MACHINE}",
    # The same, with the packages that are installed there.
    ("docs/manual/deploy.md", "sh"): f"tests/deploy/test_ways.py::{MACHINE}",
    # Buildah and bubblewrap in Docker's place: the page's Dockerfile, and the client beside the daemon.
    (
        "docs/manual/containers.md",
        "sh",
    ): "tests/deploy/test_image.py::test_a_client_beside_it_computes_in_shared_memory",
    # With a driver of CUDA that has no GPU.
    ("docs/manual/gpu.md", "python"): "tests/integration/test_gpu_planes.py::test_the_programs_of_the_page_run",
    # Dask and Ray, in an environment of their own.
    ("docs/manual/clusters.md", "python"): "tests/scale/test_page.py::test_the_programs_of_the_page_run",
    ("docs/manual/clusters.md", "sh"): "tests/scale/test_page.py::test_the_commands_of_the_page_work",
}

#: By page: the file that a block of text there shows, which a test of its own compares with what is drawn.
SHOWS = {"docs/design/pictures.md": "engine/view/golden/fork_and_join.txt"}

#: Single blocks that are a suite themselves, by their first words: what runs them.
THEMSELVES = {
    "bash deploy/quickstart.sh\n": "tests/integration/test_quickstart.py::test_quickstart_prints_the_main_job",
    "bash tests/run.sh\n": "tests/run.sh",
    "bash deploy/quickstart.sh          # once": "tests/run.sh",
    "bash deploy/install_dependencies.sh": "tests/integration/test_quickstart.py::test_quickstart_prints_the_main_job",
    "import jax\n": "tests/gradients/test_manual_page.py::test_the_page_runs_with_its_framework",
    "import torch\n": "tests/gradients/test_manual_page.py::test_the_page_runs_with_its_framework",
    # torch with CUDA, which a stand-in plays.
    "weights = torch.nn.Linear": "tests/integration/test_gpu_imports.py::test_a_table_of_weights_is_refreshed_in_place",
    ".venv/bin/python tests/bench/run.py": "tests/integration/test_bench_answers.py::test_",
}


@dataclass(frozen=True)
class Page:
    """How the blocks of a page are run, where that is not as usual."""

    #: Where the Python runs: "daemon", "local" or both.
    hosts: tuple[str, ...] = ("daemon",)
    #: Python that runs after the page's, with its names: what is to hold then.
    after: str = ""
    #: Every Python block is a program of its own, whose output is all of the next block of text.
    programs: bool = False
    #: What of the page stands for something else here; "{folder}", "{root}" and what `needs` gives are filled in.
    stand_ins: dict[str, str] = field(default_factory=dict)
    #: What must be there: "tls" (a daemon over TCP with certificates and a token).
    needs: tuple[str, ...] = ()
    #: Files of the folder in which it runs.
    files: dict[str, str] = field(default_factory=dict)
    #: Files that it makes, and which they are to be.
    pictures: dict[str, str] = field(default_factory=dict)


KERNELS = """
import eagle
kernels = [thing for thing in list(globals().values()) if isinstance(thing, eagle.Kernel)]
assert {k.name for k in kernels} >= set(NAMES), sorted(k.name for k in kernels)
assert all(k.translation("f32").kernel.hash for k in kernels)
"""

#: What is refused in the manual's example of a refusal.
REFUSED = """import eagle
from eagle import Mutable, Param, Scalar, kernel


@kernel
def step(x: Mutable[Scalar], dt: Param, limit: Param):
    # It grows until it is there.



    if dt > 0.0:
        while x < limit:
            x = x + dt
"""
SAY_REFUSED = """
import os, sys
sys.path.insert(0, os.getcwd())
try:
    import step
except eagle.KernelSyntaxError as error:
    print(str(error).replace(os.getcwd() + os.sep, ""))
"""

#: A model for commands that take one.
MODEL = """
import eagle
from eagle import Mutable, Scalar, Terminated, kernel


@kernel
def count(x: Mutable[Scalar], done: Terminated):
    x = x + 1.0
    done = x > 3.0


with eagle.connect() as session:
    x, done = session.zeros(4), session.zeros(4, dtype=bool)
    print(eagle.simulate(count, max_steps=10, x=x, done=done).status)
"""

PAGES = {
    "README.md": Page(programs=True),
    "docs/manual/start.md": Page(pictures={"start.svg": "docs/manual/pictures/start.svg"}),
    "docs/manual/concepts.md": Page(
        pictures={f"{name}.svg": f"docs/manual/pictures/{name}.svg" for name in ("edges", "fork", "loop", "refused")}
    ),
    "docs/manual/stepping.md": Page(hosts=("daemon", "local"), after='assert result.status == "finished"'),
    "docs/manual/kernels.md": Page(
        hosts=("daemon", "local"),
        after='NAMES = ["oscillator", "weighted", "root", "orbit", "fall", "share"]\n' + KERNELS + SAY_REFUSED,
        files={"step.py": REFUSED},
    ),
    "docs/manual/accumulation.md": Page(
        hosts=("daemon", "local"), after='NAMES = ["energies", "histogram", "noisy"]\n' + KERNELS
    ),
    "docs/manual/execution.md": Page(hosts=("daemon", "local"), after="assert ran.groups"),
    "docs/manual/graph_model.md": Page(
        hosts=("daemon", "local"),
        after='assert broken.node_labels() == ["energy", "distance"]\nfrom eagle.examples import graph_model\n'
        "graph_model.build_and_look()\ngraph_model.break_it()\ngraph_model.repair_it()\ngraph_model.now_and_then()",
    ),
    "docs/manual/pictures.md": Page(
        hosts=("local",),
        after="print(g)\nprint(g.to_mermaid(), end='')\nprint(g.to_dot(), end='')\n"
        "from pathlib import Path\nassert Path('graph.png').stat().st_size > 1000",
        pictures={"graph.svg": "docs/manual/pictures/fork_and_join.svg"},
    ),
    "docs/manual/quickstart.md": Page(stand_ins={"/tmp/eagled.sock": "{folder}/own.sock"}),
    "docs/manual/eaglectl.md": Page(files={"model.py": MODEL}),
    "docs/manual/configuration.md": Page(
        needs=("tls",),
        stand_ins={
            "/var/cache/eagled": "{folder}/cache",
            "/run/eagled/eagled.sock": "{folder}/own.sock",
            "/etc/eagled/server.pem": "{certificate}",
            "/etc/eagled/server.key": "{key}",
            "/etc/eagled/clients.pem": "{ca}",
            "/etc/eagled/tokens": "{tokens}",
        },
    ),
    # kubectl is stand_ins/kubectl.
    "docs/manual/kubernetes.md": Page(
        needs=("tls",),
        stand_ins={
            "deploy/kubernetes": "{root}/deploy/kubernetes",
            "--from-file=tls.crt": "--from-file=tls.crt={certificate}",
            "--from-file=tls.key": "--from-file=tls.key={key}",
            "--from-file=ca.crt": "--from-file=ca.crt={ca}",
        },
    ),
    "docs/manual/tcp.md": Page(
        needs=("tls",),
        stand_ins={
            "host.example:7411": "localhost:{port}",
            '"ca.pem"': '"{ca}"',
            "auth=token": 'auth="{token}"',
            "dns:0.0.0.0:7411": "dns:0.0.0.0:0",
            "/run/eagled/eagled.sock": "{folder}/own.sock",
            "server.pem": "{certificate}",
            "server.key": "{key}",
            "/etc/eagled/tokens": "{tokens}",
        },
    ),
}


def of(page: str) -> Page:
    """How this page is run."""
    return PAGES.get(page, Page())


def elsewhere(page: str, language: str, code: str) -> str | None:
    """What runs this block, if that is not this suite."""
    if (page, language) in ELSEWHERE:
        return ELSEWHERE[page, language]
    return next((test for words, test in THEMSELVES.items() if code.startswith(words)), None)
