"""JAX functions as nodes of graphs, and kernels and recorded graphs as JAX functions."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import numpy as np

from eagle import _core
from eagle._gpu_calls import on_gpu
from eagle._gpu_streams import current_stream
from eagle._nodes import Node, Planes, _named, opaque
from eagle._reverse import VjpFunction
from eagle.errors import refusal
from eagle.frameworks._functions import GraphFunction, function_of
from eagle.planes import Plane

try:
    import jax
    import jax.numpy as jnp
except ImportError as missing:
    raise refusal("MISSING_PACKAGE", "eagle.frameworks.jax: jax is not installed; pip install eagled[jax]") from missing


def node(fn: Callable[..., Any], reads: Planes, writes: Planes, *, jit: bool = True, name: str | None = None) -> Node:
    """A node that calls a JAX function: ``fn`` is given the arrays of ``reads`` by name and returns those of
    ``writes``, as a dict by name, as a tuple in their order, or alone where there is one.

    The arrays reach JAX without a copy, and results are stored once, to the arrays of ``writes``; those on another
    machine are fetched before and sent after. On a GPU it is a node with JAX's own stream (``stream=`` of
    :func:`eagle.graph.opaque`): nothing is copied but the results, in the order of that stream, and they are kept until
    the launch is over. ``fn`` is compiled by ``jax.jit`` unless ``jit=False``. Where the graph is recorded,
    ``jax.vjp(fn)`` is the node's derivative without further words; ``vjps=`` of :func:`eagle.diff.reverse` overrides
    it. float64 needs ``jax.config.update("jax_enable_x64", True)``; without it such arrays are refused (TypeError).
    """
    if not callable(fn):
        raise refusal("WRONG_TYPE", f"jax.node: expected a function of arrays by name, found {type(fn).__name__}")
    read, written = _named("jax.node: reads", reads, "in"), _named("jax.node: writes", writes, "out")
    for plane, array in {**read, **written}.items():
        if not isinstance(array, (np.ndarray, Plane)):
            raise refusal(
                "WRONG_TYPE", f"jax.node: plane '{plane}': expected an array of a session, found {type(array).__name__}"
            )
        _check_width(f"jax.node: plane '{plane}'", array.dtype)
    compiled = jax.jit(lambda planes: fn(**planes)) if jit else lambda planes: fn(**planes)

    def results(given: Any) -> dict[str, Any]:
        return _by_name(compiled(given), tuple(written))

    def refuse_unlike(plane: str, value: Any, array: Any) -> None:
        if value.shape != array.shape:
            raise refusal(
                "WRONG_SHAPE",
                f"jax.node: plane '{plane}': expected shape {array.shape}, the function returned {value.shape}",
            )
        if not np.can_cast(value.dtype, array.dtype, "same_kind"):
            raise refusal(
                "WRONG_DTYPE",
                f"jax.node: plane '{plane}': expected {array.dtype}, the function returned {value.dtype}",
            )

    def call(**given: Any) -> None:  # arrays that are on another machine; the others are here
        found = results({plane: _jax(given.get(plane, array)) for plane, array in read.items()})
        for plane, declared in written.items():
            array = given.get(plane, declared)
            value = np.asarray(found[plane])
            refuse_unlike(plane, value, array)
            array[...] = value

    def enqueue(**given: Any) -> list[Any]:
        found = results({plane: jnp.from_dlpack(given[plane]) for plane in read})
        kept = []
        for plane in written:
            array, value = given[plane], found[plane]
            refuse_unlike(plane, value, array)
            value = value if value.dtype == array.dtype else value.astype(array.dtype)
            # With the capsule JAX has its stream wait for the value.
            kept.extend([value, value.__dlpack__(stream=current_stream())])
            _copy_on_stream(plane, value, array)
        return kept

    real = [plane for plane, array in read.items() if array.dtype.kind == "f"]

    @jax.jit
    def taken_back(primals: Any, cotangents: Any) -> Any:
        rest = {plane: value for plane, value in primals.items() if plane not in real}
        outputs, back = jax.vjp(
            lambda planes: _by_name(fn(**planes, **rest), tuple(written)), {plane: primals[plane] for plane in real}
        )
        return back({plane: _cotangent(value, cotangents.get(plane)) for plane, value in outputs.items()})[0]

    def vjp(primals: Mapping[str, Any], cotangents: Mapping[str, Any]) -> dict[str, Any]:
        given = {plane: _jax(array) for plane, array in primals.items()}
        bars = {plane: _jax(array) for plane, array in cotangents.items()}
        found = taken_back(given, bars)
        return {plane: np.asarray(found[plane]) if plane in found else None for plane in primals}

    there = [array for array in (*read.values(), *written.values()) if on_gpu(array)]
    if there:
        for plane, array in {**read, **written}.items():
            if not on_gpu(array):
                raise refusal(
                    "MIXED_DEVICES",
                    f"jax.node: plane '{plane}' is in memory of the host, and {there[0]!r} on a GPU; make both with "
                    "the same device=",
                )
        made = opaque(enqueue, reads=read, writes=written, stream=_stream_of(there[0]), name=name)
    else:
        made = opaque(call, reads=read, writes=written, name=name)
    made._vjp = vjp
    return made


def function(
    of: Any,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    vjps: Mapping[str, VjpFunction] | None = None,
    checkpoint: int | None = None,
) -> Callable[..., Any]:
    """A JAX function that runs a kernel or a recorded graph, with a derivative (``jax.custom_vjp``).

    It works under ``jax.jit`` and ``jax.grad``: the call leaves the compiled program (``jax.pure_callback``), and the
    arrays that JAX hands over reach the kernel without another copy. Of a kernel: its arguments in order or by name;
    Mutables come back as outputs. Of a graph that was built with ``record=True``: ``inputs`` and ``outputs`` name its
    planes, and Params as inputs. Returns an array, or a tuple in the order of the outputs. ``vjps`` and ``checkpoint``
    are those of :func:`eagle.diff.reverse`. ``jax.vmap`` and forward derivatives are refused by JAX.
    """
    made = function_of(of, inputs, outputs, vjps, checkpoint)
    if isinstance(made, GraphFunction):
        made.refuse_carried()

    def shapes_of(values: Sequence[Any]) -> tuple[Any, ...]:
        found = made.shapes(dict(zip(made.inputs, values)))
        return tuple(jax.ShapeDtypeStruct(*found[name]) for name in made.outputs)

    def run(*values: Any) -> tuple[Any, ...]:
        found = made.forward({name: _numpy(value) for name, value in zip(made.inputs, values)})
        return tuple(found[name] for name in made.outputs)

    real = [name for name in made.inputs if made.is_real(name)]

    def run_back(values: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:  # of smooth outputs
        given = {name: _numpy(value) for name, value in zip(made.inputs, values)}
        names = [name for name, has in zip(made.outputs, smooth) if has]
        bars = {name: _numpy(value) for name, value in zip(names, cotangents)}
        with made.alone:
            if isinstance(made, GraphFunction):
                made.forward(given)  # callbacks have no order: what is recorded may be another call's
            found = made.backward(given, bars, real)
        return tuple(np.asarray(found[name], given[name].dtype) for name in real)

    smooth = [made.has_derivative(name) for name in made.outputs]

    @jax.custom_vjp
    def call(*values: Any) -> Any:
        return jax.pure_callback(run, shapes_of(values), *values)

    def forward(*values: Any) -> Any:
        return call(*values), values

    def backward(values: Any, cotangents: Any) -> Any:
        wanted = tuple(
            jax.ShapeDtypeStruct(np.shape(value), jnp.result_type(value))
            for name, value in zip(made.inputs, values)
            if name in real
        )
        given = [value for value, has in zip(cotangents, smooth) if has]
        found = iter(jax.pure_callback(run_back, wanted, values, given))
        return tuple(
            next(found) if name in real else np.zeros(np.shape(value), jax.dtypes.float0)
            for name, value in zip(made.inputs, values)
        )

    call.defvjp(forward, backward)

    def by_name(*args: Any, **kwargs: Any) -> Any:
        given = made.named(args, kwargs)
        values = []
        for name, value in given.items():
            if not isinstance(value, (int, float)):  # a plain number has no width: JAX's is fine
                dtype = value.dtype if _traced(value) else np.asarray(value).dtype
                _check_width(f"{made.name}: input '{name}'", dtype)
            array = value if isinstance(value, jax.Array) else jnp.asarray(value)
            made.check(name, tuple(array.shape), str(array.dtype))
            values.append(array)
        found = call(*values)
        return found[0] if len(found) == 1 else found

    by_name.__name__ = made.name
    return by_name


def _stream_of(array: Plane) -> int:
    """The stream that JAX looks to when it is given memory of this GPU, or gives some away."""
    _, ordinal, uuid = array._pointer()
    for device in jax.devices("cuda"):
        if device.local_hardware_id == ordinal:
            return int(device.get_stream_for_external_ready_events())
    raise refusal(
        "MIXED_DEVICES",
        f"jax.node: an array lies on {uuid}, GPU {ordinal} of this process, which JAX does not use; make it visible to "
        "JAX (CUDA_VISIBLE_DEVICES, JAX_PLATFORMS)",
    )


def _copy_on_stream(plane: str, value: Any, array: Plane) -> None:
    if not array._local.flags.c_contiguous:
        raise refusal(
            "COPY_BOUND_PLANE", f"jax.node: plane '{plane}' is not contiguous; results are stored to whole arrays"
        )
    pointer, _, uuid = array._pointer()
    _core.copy_on_stream(uuid, pointer, int(value.unsafe_buffer_pointer()), array.nbytes, current_stream())


def _cotangent(value: Any, given: Any) -> Any:
    """The cotangent of what a function returned, as JAX wants it: of its type, which need not be the plane's. What is
    no real number has none, and JAX a kind of its own for that.
    """
    if not jnp.issubdtype(value.dtype, jnp.inexact):
        return np.zeros(value.shape, jax.dtypes.float0)
    return jnp.zeros(value.shape, value.dtype) if given is None else given.astype(value.dtype)


def _by_name(found: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """What a function returned, by the names of what it writes."""
    if isinstance(found, Mapping):
        given = dict(found)
    elif isinstance(found, (tuple, list)):
        given = dict(zip(names, found)) if len(found) == len(names) else {}
    else:
        given = {names[0]: found} if len(names) == 1 else {}
    if set(given) != set(names):
        raise refusal(
            "BAD_BINDING",
            f"jax.node: expected {', '.join(repr(name) for name in names)} from the function, as a dict "
            f"or in this order, found {type(found).__name__} of {', '.join(map(repr, given)) or 'another length'}",
        )
    return {name: given[name] for name in names}


def _traced(value: Any) -> bool:
    return isinstance(value, jax.core.Tracer)


def _check_width(where: str, dtype: Any) -> None:
    if dtype in (np.float64, np.int64) and not jax.config.jax_enable_x64:
        raise refusal(
            "WRONG_DTYPE",
            f"{where} is {dtype}, which JAX would narrow; say jax.config.update('jax_enable_x64', True) first, or use "
            "float32",
        )


def _jax(array: Any) -> Any:
    """The array's memory as a JAX array, where JAX can take it as it lies."""
    try:
        return jnp.from_dlpack(array) if array.flags.writeable else jnp.asarray(array)
    except (BufferError, TypeError, ValueError, RuntimeError):
        return jnp.asarray(array)


def _numpy(value: Any) -> Any:
    return np.asarray(value)
