"""C++ programs, compiled and linked as the example of the client library is in the build."""

import re
import shlex
import subprocess
from pathlib import Path

from harness import BUILD, PATIENCE_S

EXAMPLE = "bin/eagle_example_ensemble"


def _commands() -> tuple[list[str], list[str]]:
    listed = subprocess.run(
        ["ninja", "-C", BUILD, "-t", "commands", EXAMPLE], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    # Of its one source, or of the file that stands for all of a target's.
    compile_command = next(line for line in listed if re.search(rf"/{Path(EXAMPLE).name}\.dir/\S+\.o -c \S+$", line))
    # CMake puts ": &&" around links.
    return shlex.split(compile_command), shlex.split(listed[-1].removeprefix(": && ").removesuffix(" && :"))


def build_program(source: Path) -> Path:
    """The program next to its source. Fails with what the compiler says."""
    compiling, linking = _commands()
    object_file, program = source.with_suffix(".o"), source.with_suffix("")
    old_object = compiling[compiling.index("-o") + 1]
    for flag, at in (("-o", 1), ("-MF", 1)):
        compiling[compiling.index(flag) + at] = str(object_file if flag == "-o" else source.with_suffix(".d"))
    compiling[-1] = str(source)
    # Examples are read for their own sake: unused results and names are no mistakes there, all else is.
    compiling = [word for word in compiling if word != "-O3"] + ["-O1"]
    linking = [str(object_file) if word == old_object else word for word in linking]
    linking[linking.index("-o") + 1] = str(program)
    for command in (compiling, linking):
        done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, timeout=5 * PATIENCE_S, check=False)
        assert done.returncode == 0, f"{source.name}:\n{done.stderr}"
    return program
