"""What the job computes: oscillators that each start a little differently, and stop when they have lost their energy.

Any file with a function ``run(session, shard)`` does: samples [base, base + count) of a batch of n.
"""

import eagle
from eagle import Mutable, Param, Reduce, Scalar, Terminated, kernel

planes = ("x", "t")  # what is written


@kernel
def swing(
    x: Mutable[Scalar], v: Mutable[Scalar], t: Mutable[Scalar], spread: Param, dt: Param, done: Terminated
) -> Reduce("sum"):
    if eagle.step_index() == 0:
        x = 1.0 + spread * eagle.random.normal(seed=1, counter=0)
    v = v - dt * (x + 0.2 * v)
    x = x + dt * v
    t = t + dt
    done = x * x + v * v < 1e-4
    energy = x * x + v * v
    return energy


def run(session, shard):
    """The samples of one shard."""
    _, count, _ = shard
    x, v, t = (session.zeros(count) for _ in range(3))
    done = session.zeros(count, dtype=bool)
    return eagle.simulate(
        swing, max_steps=10_000, shard=shard, session=session, spread=0.25, dt=0.05, x=x, v=v, t=t, done=done
    )
