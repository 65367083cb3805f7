"""Who may include whom: the arrows of the architecture, and which libraries stay out of headers."""

import re
from functools import cache
from pathlib import Path

import pytest
from tree import ROOT, files, folder_of, text, with_suffix

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+[<"]([^>"]+)[>"]', re.MULTILINE)
SOURCES = (".h", ".cpp", ".cc", ".c")

# What each part may include besides itself. Tests, benchmarks and examples of tests/ may include anything.
MESSAGES = "proto"
BASE = {"engine/base"}
KERNEL = BASE | {"engine/kernel", MESSAGES}
DESCRIBE = KERNEL | {"engine/plane"}  # what a client links to answer without a daemon
COMPILE = KERNEL | {"engine/codegen"}
RUN = DESCRIBE | COMPILE | {"engine/graph"}
ENGINE = RUN | {"engine", "engine/run", "engine/step", "engine/view", "engine/diff"}
ALLOWED = {
    "proto": BASE,
    "engine/base": set(),
    "engine/kernel": BASE | {MESSAGES},
    "engine/plane": KERNEL,
    "engine/graph": DESCRIBE,
    "engine/view": DESCRIBE | {"engine/graph"},
    "engine/diff": DESCRIBE | {"engine/graph"},
    "engine/codegen": KERNEL,
    "engine/run": RUN,
    "engine/step": RUN | {"engine/run"},
    "engine": ENGINE,
    "cli": BASE,
    "client": ENGINE | {"cli"},
    "server": ENGINE | {"cli"},
    "python_client": {"client"} | ENGINE,
    "cmake": set(),  # definitions of libraries that Debian has no static form of
}

# Library -> what its includes look like, and the parts whose files may include it.
LIBRARIES = {
    "LLVM": (r"llvm/|llvm-c/", {"engine/codegen"}),
    "OpenMP": (r"omp\.h$", {"engine/run", "engine/step", "engine", "client", "tests"}),
    "CUDA": (r"^(cuda|nvrtc|nvml)", {"tests"}),
    "gRPC": (r"grpc|eagle/v1/service\.(grpc\.)?pb\.h$", {"proto", "client", "server", "tests"}),
    "protobuf": (
        r"google/protobuf/|eagle/v1/\w+\.pb\.h$",
        {"proto", *ENGINE, "client", "server", "python_client", "tests"},
    ),
    "Boost": (r"boost/", {"client", "server", "tests"}),
    "spdlog": (r"spdlog/|fmt/", {"server", "tests", "cmake"}),
    "toml++": (r"toml\+\+/", {"server", "cmake"}),
    "CLI11": (r"CLI/", {"cli", "client", "server", "tests"}),
    "nlohmann_json": (r"nlohmann/", {"client", "tests"}),
    "nanobind": (r"nanobind/|Python\.h$", {"python_client"}),
}
# Headers that may include a library: private ones, each for a handful of .cpp files of its own folder. Headers of
# tests may too. (The Python module is nanobind throughout.)
PRIVATE_HEADERS: dict[str, set[str]] = {
    "protobuf": {"server/rpc/service.h"},
    "LLVM": {
        "engine/codegen/emit.h",
        "engine/codegen/shape.h",
        "engine/codegen/entry.h",
        "engine/codegen/image.h",
        "engine/codegen/lane_number.h",
        "engine/codegen/lanes.h",
        "engine/codegen/math_functions.h",
        "engine/codegen/target_machine.h",
    },
    "gRPC": {
        "client/attachment.h",
        "client/idle_queues.h",
        "client/remote_connection.h",
        "client/remote_link.h",
        "client/watched_call.h",
        "server/rpc/call.h",
        "server/rpc/conversation.h",
        "server/rpc/launch_call.h",
        "server/rpc/peer.h",
        "server/rpc/request.h",
        "server/rpc/run_call.h",
        "server/rpc/service.h",
        "server/rpc/transfer_call.h",
    },
    "Boost": {"server/sockets/grpc_connections.h"},
    "nlohmann_json": {"client/ctl/json.h"},
    "spdlog": {"server/log_format.h", "server/log_sink.h", "server/recent_log.h"},
}
MOST_USERS_OF_A_PRIVATE_HEADER = 8
TEST_ENDINGS = ("_test", "_benchmark", "_fuzz")


def includes(path: Path) -> list[str]:
    return INCLUDE.findall(text(path))


@cache
def resolve(include: str) -> Path | None:
    """Our file that an include names; None for the system's, a library's or a generated one."""
    for start in (ROOT, ROOT / "client/include"):
        if (start / include).is_file():
            return (start / include).relative_to(ROOT)
    return None


def part_of(include: str) -> str | None:
    if include.startswith("eagle/v1/"):
        return MESSAGES
    path = resolve(include)
    return folder_of(path) if path else None


def is_test(path: Path) -> bool:
    """Tests beside their unit, and what several of them share, may also use what the unit's users have."""
    return path.parts[0] == "tests" or path.stem.startswith("testing") or path.stem.endswith(TEST_ENDINGS)


def test_there_is_something_to_check():
    assert len(with_suffix(*SOURCES)) > 50
    assert len({folder_of(path) for path in with_suffix(".h")} & ALLOWED.keys()) >= 10


def test_arrows_point_one_way():
    wrong = []
    for path in with_suffix(*SOURCES):
        part = folder_of(path)
        if part not in ALLOWED or is_test(path):
            continue
        for include in includes(path):
            other = part_of(include)
            if other is not None and other != part and other not in ALLOWED[part]:
                wrong.append(f"{path} includes {include}: {part} may not use {other}")
    assert not wrong, "\n".join(wrong)


def test_every_folder_with_code_has_a_rule():
    unknown = {folder_of(path) for path in with_suffix(*SOURCES)} - ALLOWED.keys() - {"tests"}
    assert not unknown, f"say in ALLOWED what these may include: {sorted(unknown)}"


def test_engine_tests_need_no_server_and_no_client():
    wrong = [
        f"{path} includes {include}"
        for path in with_suffix(*SOURCES)
        if path.parts[0] == "engine"
        for include in includes(path)
        if part_of(include) in ("server", "client", "python_client")
    ]
    assert not wrong, "\n".join(wrong)


def test_our_includes_name_files_that_exist():
    prefixes = ("engine/", "client/", "server/", "python_client/", "eagle/client/", "eagle/util/")
    missing = [
        f"{path} includes {include}"
        for path in with_suffix(*SOURCES)
        for include in includes(path)
        if include.startswith(prefixes) and resolve(include) is None
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("library", LIBRARIES)
def test_library_stays_in_its_parts(library):
    pattern, parts = LIBRARIES[library]
    wrong = [
        f"{path} includes {include}"
        for path in with_suffix(*SOURCES)
        if folder_of(path) not in parts
        for include in includes(path)
        if re.match(pattern, include)
    ]
    assert not wrong, f"only {sorted(parts)} may use {library}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("library", [name for name in LIBRARIES if name not in ("OpenMP", "nanobind")])
def test_library_stays_out_of_headers(library):
    pattern, _ = LIBRARIES[library]
    private = PRIVATE_HEADERS.get(library, set())
    headers = [path for path in with_suffix(".h") if not is_test(path)]
    found = {str(path) for path in headers if any(re.match(pattern, include) for include in includes(path))}
    assert not found - private, f"{library} is included by headers: {sorted(found - private)}"
    assert not private - found, f"strike from PRIVATE_HEADERS, no {library} in them: {sorted(private - found)}"


@pytest.mark.parametrize("header", sorted(set().union(*PRIVATE_HEADERS.values())))
def test_private_header_stays_in_its_folder(header):
    users = [path for path in with_suffix(*SOURCES) if header in {str(resolve(name)) for name in includes(path)}]
    assert users, f"{header} has no user"
    strangers = [str(path) for path in users if Path(header).parent not in path.parents]
    assert not strangers, f"{header} is private to its folder, but included by {strangers}"
    assert len(users) <= MOST_USERS_OF_A_PRIVATE_HEADER, f"{header} is included by {len(users)} files"


@pytest.mark.parametrize("part", ["engine/plane", "engine/graph", "engine/view", "engine/diff"])
def test_description_parts_link_neither_llvm_nor_openmp(part):
    """A client links these to answer edges(), show() and refusals without a daemon."""
    lists = text(Path(part) / "CMakeLists.txt")
    for name in ("LLVM", "OpenMP", "CUDA", "eagle_codegen", "eagle_run", "eagle_step"):
        assert name not in lists, f"{part}/CMakeLists.txt names {name}"


def test_llvm_is_linked_in_one_place():
    """The compile helper alone maps LLVM; the integration tests look at the running processes."""
    linking = [str(path) for path in files() if path.name == "CMakeLists.txt" and re.search(r"\bLLVM\b", text(path))]
    assert linking == ["engine/codegen/CMakeLists.txt"]
