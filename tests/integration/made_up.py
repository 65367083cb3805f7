"""Kernels that are made up at run time: the same expressions as Python for eagle and as C for the plain loop."""

import random
from dataclasses import dataclass

INPUTS = ("x", "v", "t", "omega", "dt")

KERNEL = """\
from eagle import Mutable, Param, Scalar, Terminated, kernel


@kernel
def made_up(x: Mutable[Scalar], v: Mutable[Scalar], t: Mutable[Scalar], omega: Scalar, life: Scalar, dt: Param,
            done: Terminated):
    {first} = {first_value}
    if {low} < {high}:
        force = {then}
    else:
        force = {otherwise}
    x, v = x + dt * ({velocity}), v + dt * force
    t = t + dt
    done = t >= life
"""

LOOP = """\
void made_up(long n, double *x_, double *v_, double *t_, const double *omega_, const double *life_, double dt,
             unsigned char *done, long max_steps, long *steps) {{
  *steps = 0;
  for (long i = 0; i < n; ++i) {{
    double x = x_[i], v = v_[i], t = t_[i];
    const double omega = omega_[i], life = life_[i];
    for (long step = 1; step <= max_steps && !done[i]; ++step) {{
      const double {first} = {first_value};
      double force;
      if ({low} < {high}) force = {then};
      else force = {otherwise};
      const double x_next = x + dt * ({velocity}), v_next = v + dt * force;
      x = x_next; v = v_next;
      t = t + dt;
      done[i] = t >= life;
      if (step > *steps) *steps = step;
    }}
    x_[i] = x; v_[i] = v; t_[i] = t;
  }}
}}
"""


@dataclass(frozen=True)
class MadeUp:
    kernel: str  # Python source
    loop: str  # C source


def make_up(chance: random.Random) -> MadeUp:
    """Shape and constants by chance. Denominators stay at 1 or above and steps are short, so no value overflows:
    the bits of a NaN are the processor's business."""
    parts = {
        "first": "between",
        "first_value": expression(chance, INPUTS, 3),
        "low": expression(chance, (*INPUTS, "between"), 1),
        "high": expression(chance, (*INPUTS, "between"), 1),
        "then": expression(chance, (*INPUTS, "between"), 3),
        "otherwise": expression(chance, (*INPUTS, "between"), 3),
        "velocity": expression(chance, ("v", "omega", "between"), 2),
    }
    return MadeUp(KERNEL.format(**parts), LOOP.format(**parts))


def expression(chance: random.Random, names: tuple[str, ...], depth: int) -> str:
    """An expression that reads the same in Python and C, with its order of operations spelled out."""
    if depth == 0 or chance.random() < 0.15:
        return chance.choice(names) if chance.random() < 0.6 else repr(chance.uniform(0.1, 0.9))
    left, right = expression(chance, names, depth - 1), expression(chance, names, depth - 1)
    match chance.choice("+-*/n"):
        case "/":
            return f"({left} / (1.0 + ({right}) * ({right})))"
        case "n":
            return f"(-({left}))"
        case operator:
            return f"({left} {operator} {right})"
