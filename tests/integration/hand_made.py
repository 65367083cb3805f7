"""Kernels, graphs and runs as messages, made by hand: what a client of somebody else's might send.

Each takes the `Messages` that a daemon's reflection has described. Arrays are planes of float64 or bool, one dimension.
"""

from __future__ import annotations

from typing import Any

from messages import Messages

F64, BOOL = 1, 5  # ScalarType, and DType: the same numbers
READ, MUTABLE, PARAM, TERMINATED = 1, 2, 4, 5  # Role
ADD, GE = 10, 35  # Opcode
SIZE = {F64: 8, BOOL: 1}


def view(messages: Messages, plane: int, samples: int, dtype: int = F64, offset: int = 0) -> Any:
    return messages.message("View")(
        plane=plane, offset=offset, dtype=dtype, item_bytes=SIZE[dtype], shape=[samples], strides=[SIZE[dtype]]
    )


def declared(messages: Messages, ref: Any, bytes_: int, label: str = "") -> Any:
    return messages.message("PlaneDeclaration")(plane=ref, bytes=bytes_, label=label)


def add_kernel(messages: Messages, name: str = "add") -> Any:
    """x += by"""
    kernel = messages.message("Kernel")(name=name, real=F64)
    kernel.arguments.add(name="x", role=MUTABLE, type={"scalar": F64})
    kernel.arguments.add(name="by", role=PARAM, type={"scalar": F64})
    kernel.body.ops.add(code=ADD, operands=[0, 1])
    kernel.body.yields.append(2)
    return kernel


def add_launch(messages: Messages, samples: int, by: float, plane: int = 0) -> Any:
    launch = messages.message("KernelLaunch")(kernel=0)
    launch.bindings.add(argument="x", view=view(messages, plane, samples))
    launch.bindings.add(argument="by", param={"real": by})
    return launch


def adding_graph(
    messages: Messages, ref: Any, samples: int, name: str = "made by hand", host_call: bool = False
) -> Any:
    """Its one kernel adds 1 to the samples at the start of the plane; then, where asked for, a host node is called."""
    graph = messages.message("GraphDescription")(name=name)
    graph.kernels.append(add_kernel(messages))
    graph.planes.append(declared(messages, ref, 8 * samples, "x"))
    graph.stages.add(node={"kernel": add_launch(messages, samples, 1.0)})
    if host_call:
        node = graph.stages.add().node
        node.name = "host"
        node.host.call = 7
        node.host.tier = 3
        node.host.reads.add(name="x", view=view(messages, 0, samples))
    return graph


def counting_run(messages: Messages, ref: Any, mask: Any, samples: int, steps: int) -> Any:
    """x += 1, so many times: no sample finishes before."""
    kernel = add_kernel(messages, "count")
    kernel.arguments.add(name="limit", role=PARAM, type={"scalar": F64})
    kernel.arguments.add(name="done", role=TERMINATED, type={"scalar": BOOL})
    # Values 0 to 3 are the arguments, 4 the sum.
    del kernel.body.ops[:], kernel.body.yields[:]
    kernel.body.ops.add(code=ADD, operands=[0, 1])
    kernel.body.ops.add(code=GE, operands=[4, 2])
    kernel.body.yields.extend([4, 5])
    run = messages.message("RunDescription")(max_steps=steps)
    run.kernels.append(kernel)
    run.planes.append(declared(messages, ref, 8 * samples, "x"))
    run.planes.append(declared(messages, mask, samples, "done"))
    launch = add_launch(messages, samples, 1.0)
    launch.bindings.add(argument="limit", param={"real": 1e300})
    launch.bindings.add(argument="done", view=view(messages, 1, samples, BOOL))
    run.model.append(launch)
    return run


def kept_planes(messages: Messages, samples: int) -> list[Any]:
    """The planes of a counting run that may be fetched afterwards."""
    named = messages.message("NamedView")
    return [
        named(name="x", view=view(messages, 0, samples)),
        named(name="done", view=view(messages, 1, samples, BOOL)),
    ]
