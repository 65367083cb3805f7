"""Random numbers: the same number for the same seed, counter and sample."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

import eagle
from eagle import Index, Matrix, Scalar, Vector, kernel

# The generator's definition, in Python's integers (Philox4x32-10).


def word(seed: int, counter: int, sample: int) -> int:
    block, low = divmod(counter, 4)
    x = [block % 2**32, block >> 32, sample % 2**32, sample >> 32]
    key = [seed % 2**32, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ key[0], b % 2**32, (a >> 32) ^ x[3] ^ key[1], a % 2**32]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return x[low]


@kernel
def drawn(c: Index) -> Scalar:
    return eagle.random.uniform(0, c)


GOLDEN = {
    0: 0x3FD989FA35800000,
    1: 0x3FEC2D38B1C00000,
    2: 0x3FE78AF589A00000,
    3: 0x3FE3601B7B200000,
    4: 0x3FEF1C9994A00000,
    7: 0x3FA2FDFED0000000,
    9: 0x3FD471CCA9C00000,
}


@pytest.mark.parametrize(("counter", "bits"), GOLDEN.items())
def test_uniform_has_the_documented_bits(session, counter, bits):
    assert struct.unpack("<Q", drawn(session.asarray([counter]), session=session).tobytes())[0] == bits


def test_the_largest_seed_is_a_seed(session):
    @kernel
    def with_seed(x: Scalar) -> Scalar:
        return x + eagle.random.uniform(2**64 - 1, 0)

    found = with_seed(session.zeros(1), session=session)
    assert struct.unpack("<Q", found.tobytes())[0] == 0x3FDCA91DC2800000


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 65, 1000])
def test_numbers_depend_on_the_sample_and_the_counter(session, n):
    counters = np.random.default_rng(n).integers(0, 2**40, n)
    found = drawn(session.asarray(counters), session=session)
    assert found.tolist() == [(word(0, int(c), i) + 1) / 2**32 for i, c in enumerate(counters)]


# To 1e-12, of sample 0 and seed 0: what the distribution's definition is checked against.
NORMAL = {
    0: -0.31039573600037634,
    1: -0.13595797896327272,
    2: 0.76338801926953026,
    3: -0.22271010206952083,
    4: 0.3292107012677683,
    7: 2.1735188577861648,
    9: -1.9252709937181016,
}


@kernel
def gaussian(c: Index) -> Scalar:
    return eagle.random.normal(0, c)


@pytest.mark.parametrize(("counter", "expected"), NORMAL.items())
def test_normal_has_the_documented_values(session, counter, expected):
    assert gaussian(session.asarray([counter]), session=session)[0] == pytest.approx(expected, abs=1e-12)


def test_normal_of_the_largest_seed(session):
    @kernel
    def with_seed(x: Scalar) -> Scalar:
        return x + eagle.random.normal(2**64 - 1, 0)

    assert with_seed(session.zeros(1), session=session)[0] == pytest.approx(1.6700178282651672, abs=1e-12)


def normal(seed: int, counter: int, sample: int) -> float:
    w = [word(seed, counter + k, sample) for k in range(4)]
    u = (w[0] ^ (w[1] << 21)) * 2.0**-53 + 2.0**-54
    v = (w[2] ^ (w[3] << 21)) * 2.0**-52 + 2.0**-53
    return math.sqrt(-2.0 * math.log(u)) * math.sin(math.pi * v)


def test_the_derived_distributions_come_from_the_same_numbers(session):
    @kernel
    def derived(c: Index) -> {"n": Scalar, "l": Scalar, "e": Scalar, "m": Scalar}:
        return {
            "n": eagle.random.normal(5, c, mean=10.0, sd=2.0),
            "l": eagle.random.lognormal(5, c, 0.5, 0.25),
            "e": eagle.random.exponential(5, c),
            "m": eagle.random.exponential(5, c, scale=3.0),
        }

    n = 1000
    found = derived(session.asarray(np.arange(n)), session=session)
    z = np.array([normal(5, i, i) for i in range(n)])
    u = np.array([(word(5, i, i) + 1) / 2**32 for i in range(n)])
    np.testing.assert_allclose(found["n"], 10 + 2 * z, rtol=1e-13)
    np.testing.assert_allclose(found["l"], np.exp(0.5 + 0.25 * z), rtol=1e-13)
    np.testing.assert_allclose(found["e"], -np.log(u), rtol=1e-13)
    np.testing.assert_allclose(found["m"], -3 * np.log(u), rtol=1e-13)


def test_moments_are_those_of_the_distributions(session):
    n = 200_000
    z = gaussian(session.asarray(np.zeros(n, int)), session=session)
    # Five standard errors.
    assert abs(z.mean()) < 5 / math.sqrt(n)
    assert abs(z.var() - 1) < 5 * math.sqrt(2 / n)


def test_multivariate_normal_is_mean_plus_factor_times_normals(session):
    @kernel
    def cloud(mean: Vector[3], factor: Matrix[3, 3]) -> Vector[3]:
        return eagle.random.multivariate_normal(9, 100, mean, factor)

    n = 50
    random = np.random.default_rng(6)
    mean, factor = random.normal(size=(3, n)), random.normal(size=(9, n))
    found = cloud(session.asarray(mean), session.asarray(factor), session=session)
    z = np.array([[normal(9, 100 + 4 * j, i) for i in range(n)] for j in range(3)])
    lower = factor.reshape(3, 3, n) * np.tril(np.ones((3, 3)))[:, :, None]
    np.testing.assert_allclose(found, mean + np.einsum("ijn,jn->in", lower, z), rtol=1e-12, atol=1e-13)


def test_normal_in_float32_is_the_rounded_number(session):
    c = session.asarray(np.arange(500))
    single = eagle.plan(gaussian, scalar_type="float32").bind(c=c).launch().returned()
    assert np.array_equal(single, gaussian(c, session=session).astype(np.float32))


def test_ranges_are_kept(session):
    @kernel
    def between(c: Index) -> {"a": Scalar, "b": Scalar, "k": Index, "none": Index, "wide": Index}:
        return {
            "a": eagle.random.uniform(7, c, low=-3.0, high=5.0),
            "b": eagle.random.uniform(7, c, 5.0, -3.0),
            "k": eagle.random.uniform_int(7, c, -2, 4),
            "none": eagle.random.uniform_int(7, c, 4, 4),
            "wide": eagle.random.uniform_int(7, c, -(2**62), 2**62 - 1),
        }

    n = 20_000
    found = between(session.asarray(np.arange(n)), session=session)
    words = np.array([word(7, c, c) for c in range(n)], dtype=object)
    assert found["a"].min() > -3.0
    assert found["a"].max() <= 5.0
    assert found["b"].min() >= -3.0
    assert found["a"].tolist() == [-3.0 + 8.0 * ((w + 1) / 2**32) for w in words]
    assert found["k"].tolist() == [-2 + (6 * w >> 32) for w in words]
    assert set(found["k"].tolist()) == {-2, -1, 0, 1, 2, 3}
    assert set(found["none"].tolist()) == {4}
    assert found["wide"].tolist() == [-(2**62) + ((2**63 - 1) * w >> 32) for w in words]


def test_bernoulli_is_never_and_always(session):
    @kernel
    def coins(c: Index, p: Scalar) -> Scalar:
        return 1.0 if eagle.random.bernoulli(3, c, p) else 0.0

    n = 4096
    c = session.asarray(np.arange(n))
    for p, expected in ((0.0, 0), (1.0, n), (float("nan"), 0)):
        assert coins(c, session.asarray(np.full(n, p)), session=session).sum() == expected
    half = coins(c, session.asarray(np.full(n, 0.5)), session=session)
    assert half.tolist() == [float((word(3, i, i) + 1) / 2**32 <= 0.5) for i in range(n)]


def test_float32_kernels_round_the_same_numbers(session):
    single = eagle.plan(drawn, scalar_type="float32").bind(c=session.asarray(np.arange(100))).launch().returned()
    double = drawn(session.asarray(np.arange(100)), session=session)
    assert single.dtype == np.float32
    assert np.array_equal(single, double.astype(np.float32))


def test_a_step_counter_gives_a_new_number_every_step(session):
    @kernel
    def walk(x: eagle.Mutable[Scalar], done: eagle.Terminated):
        x = x + eagle.random.uniform(1, eagle.step_index())
        done = eagle.step_index() >= 2

    x = session.zeros(2)
    eagle.simulate(walk, x=x, done=session.zeros(2, dtype=bool), max_steps=5)
    for sample in range(2):
        expected = 0.0
        for step in range(3):
            expected += (word(1, step, sample) + 1) / 2**32
        assert x[sample] == expected


def test_uniform_between_ends_is_the_documented_rounding(session):
    @kernel
    def between(c: Index, low: Scalar, high: Scalar) -> Scalar:
        return eagle.random.uniform(0, c, low, high)

    n = 500
    u = np.array([(word(0, i, i) + 1) / 2**32 for i in range(n)])
    c = session.asarray(np.arange(n))
    for low, high in ((-3.0, 5.0), (1e16, 1e16 + 2), (-1e308, 1e308), (5.0, -3.0), (2.0, 2.0)):
        found = between(c, session.full(n, low), session.full(n, high), session=session)
        with np.errstate(over="ignore"):
            plain = low + (np.float64(high) - low) * u
        expected = np.minimum(plain, high) if low <= high else np.maximum(plain, high)
        assert np.array_equal(found, expected)
        assert found.min() >= min(low, high) and found.max() <= max(low, high)
    assert set(between(c, session.full(n, 1e16), session.full(n, 1e16 + 2), session=session)) == {1e16, 1e16 + 2}
    assert set(between(c, session.full(n, -1e308), session.full(n, 1e308), session=session)) == {1e308}


@pytest.mark.parametrize(("words_a_step", "correlated"), [(4, False), (1, True)])
def test_normal_numbers_of_steps_are_independent_when_the_counter_counts_words(session, words_a_step, correlated):
    @kernel
    def lagged(
        before: eagle.Mutable[Scalar],
        last: eagle.Mutable[Scalar],
        product: eagle.Mutable[Scalar],
        words: eagle.Param[int],
        done: eagle.Terminated,
    ):
        z = eagle.random.normal(11, words * eagle.step_index())
        product = product + before * abs(z)
        before = last
        last = z
        done = eagle.step_index() == 101

    # With one word a step, the word that chooses the angle (and sign) of a number is the one that chooses the
    # radius two steps later: E[z |z'|] of those is not 0. The standard error of 400,000 products is 0.0016.
    n, steps = 4000, 102
    before, last, product = session.zeros(n), session.zeros(n), session.zeros(n)
    done = session.zeros(n, dtype=bool)
    eagle.simulate(lagged, before=before, last=last, product=product, words=words_a_step, done=done, max_steps=steps)
    assert (abs(product.sum() / (n * (steps - 2))) > 0.01) == correlated


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("eagle.random.uniform(0)", ["'counter' of random.uniform is missing"]),
        ("eagle.random.uniform(0.5, 0)", ["'seed' of random.uniform is an integer"]),
        ("eagle.random.uniform(0, 0, 0.0, 1.0, 2.0)", ["takes 4 arguments"]),
        ("eagle.random.uniform(0, 0, lo=1.0)", ["takes no 'lo'"]),
        ("eagle.random.uniform(0, 0, x > 0, 1.0)", ["'low' of random.uniform is a number"]),
        ("eagle.random.uniform(2**64, 0)", ["over the range"]),
    ],
)
def test_refusals_say_what_to_write(call, words):
    with pytest.raises(eagle.KernelSyntaxError) as refused:
        eagle.kernel(source=f"def f(x: Scalar) -> Scalar:\n    return x + {call}\n")
    for expected in words:
        assert expected in str(refused.value)


def test_outside_of_a_kernel_there_is_no_sample():
    with pytest.raises(TypeError, match="in a kernel only"):
        eagle.random.uniform(0, 0)
