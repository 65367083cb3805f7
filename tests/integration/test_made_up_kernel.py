"""A kernel that nobody could have prepared for: made up here, compared with a C loop bit for bit, on both hosts."""

import ctypes
import importlib.util
import os
import random

import eagle
import numpy as np
import pytest
from harness import compile_c
from made_up import make_up

ROUNDS = 40 if os.environ.get("EAGLE_LONG") else 4
SAMPLES = 10_007  # a prime: no tile, block or vector width divides it
MAX_STEPS = 200


def import_kernel(folder, source):
    """A kernel is read from its source, so it needs a file."""
    file = folder / "made_up_kernel.py"
    file.write_text(source)
    specification = importlib.util.spec_from_file_location("made_up_kernel", file)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.made_up


def inputs(numbers: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "x": numbers.uniform(-1, 1, SAMPLES),
        "v": numbers.uniform(-1, 1, SAMPLES),
        "t": np.zeros(SAMPLES),
        "omega": numbers.uniform(0.5, 2, SAMPLES),
        "life": numbers.uniform(0, 0.09, SAMPLES),  # samples end at different steps, some after the first
        "done": numbers.random(SAMPLES) < 0.1,  # and some never start
    }


def plain_loop(folder, source: str, arrays: dict[str, np.ndarray], dt: float) -> int:
    """Runs the C loop over the arrays, in place; the number of the last step that any sample took."""
    steps = ctypes.c_long()
    pointers = {name: ctypes.c_void_p(array.ctypes.data) for name, array in arrays.items()}
    compile_c(folder, "made_up", source).made_up(
        ctypes.c_long(SAMPLES),
        *(pointers[name] for name in ("x", "v", "t", "omega", "life")),
        ctypes.c_double(dt),
        pointers["done"],
        ctypes.c_long(MAX_STEPS),
        ctypes.byref(steps),
    )
    return steps.value


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_made_up_kernel_gives_the_bits_of_a_c_loop(daemon, tmp_path, round_number):
    seed = int(os.environ.get("EAGLE_TEST_SEED", random.SystemRandom().getrandbits(48)))
    print(f"EAGLE_TEST_SEED={seed} makes this test do the same again")
    chance = random.Random(seed)
    made_up = make_up(chance)
    print(made_up.kernel)
    kernel = import_kernel(tmp_path, made_up.kernel)
    start = inputs(np.random.default_rng(seed))
    dt = chance.uniform(0.5e-3, 1.5e-3)

    expected = {name: array.copy() for name, array in start.items()}
    steps = plain_loop(tmp_path, made_up.loop, expected, dt)
    assert np.isfinite(expected["x"]).all()
    assert np.isfinite(expected["v"]).all()
    assert steps > 10

    for session in (eagle.connect(daemon.endpoint), eagle.local()):
        with session:
            arrays = {name: session.asarray(array) for name, array in start.items()}
            result = eagle.simulate(kernel, max_steps=MAX_STEPS, dt=dt, **arrays)
            assert str(result.status) == "finished"
            assert result.steps == steps
            assert result.report.finished == SAMPLES - np.count_nonzero(start["done"])
            for name, array in arrays.items():
                assert array.tobytes() == expected[name].tobytes(), f"{name} on {session.transport}"
