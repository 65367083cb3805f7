"""Kernels and recorded graphs as functions of torch tensors that autograd knows how to take back."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import numpy as np

from eagle._reverse import VjpFunction
from eagle.errors import refusal
from eagle.frameworks._functions import Function, GraphFunction, function_of

try:
    import torch
except ImportError as missing:
    raise refusal(
        "MISSING_PACKAGE", "eagle.frameworks.torch: torch is not installed; pip install eagled[torch]"
    ) from missing


def function(
    of: Any,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    vjps: Mapping[str, VjpFunction] | None = None,
    checkpoint: int | None = None,
) -> Callable[..., Any]:
    """A function of CPU tensors that runs a kernel or a recorded graph, with a derivative for autograd.

    Of a kernel: its arguments in order or by name, numbers or 0-d tensors for Params; Mutables come back as outputs and
    are not changed. Of a graph that was built with ``record=True``: ``inputs`` and ``outputs`` name its planes (and
    Params, as inputs); each call stores the inputs to their arrays, launches it, and returns copies of the outputs.
    Returns a tensor, or a tuple of them in the order of the outputs. ``vjps`` and ``checkpoint`` are those of
    :func:`eagle.diff.reverse`.

    Tensors of a kernel are neither copied on the way in nor out: their memory is what it runs over. They are float64 or
    float32, contiguous, on the CPU; others raise EagleError (TypeError, ValueError).
    """
    made = function_of(of, inputs, outputs, vjps, checkpoint)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = made.named(args, kwargs)
        found = _Call.apply(made, *(_tensor(made, name, value) for name, value in given.items()))
        return found[0] if len(found) == 1 else found

    call.__name__ = made.name
    return call


class _Call(torch.autograd.Function):
    """One call, as autograd sees it."""

    @staticmethod
    def forward(ctx: Any, made: Function, *tensors: Any) -> Any:
        given = dict(zip(made.inputs, (_array(tensor) for tensor in tensors)))
        ctx.made = made
        ctx.save_for_backward(*tensors)
        with made.alone:
            found = made.forward(given)
            ctx.mark = made.mark()
        outputs = {name: _torch(found[name]) for name in made.outputs}
        ctx.mark_non_differentiable(*(tensor for name, tensor in outputs.items() if not made.has_derivative(name)))
        return tuple(outputs.values())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        made = ctx.made
        tensors = ctx.saved_tensors
        given = dict(zip(made.inputs, (_array(tensor) for tensor in tensors)))
        wanted = [name for name, needs in zip(made.inputs, ctx.needs_input_grad[1:]) if needs and made.is_real(name)]
        cotangents = {
            name: None if grad is None else _array(grad.contiguous())
            for name, grad in zip(made.outputs, grads)
            if made.has_derivative(name)
        }
        with made.alone:
            if isinstance(made, GraphFunction) and wanted and made.mark() != ctx.mark:
                made.again(given)  # it has run for somebody else since: the record is of that
            found = made.backward(given, cotangents, wanted) if wanted else {}
        rows: list[Any] = [None]
        for name, tensor in zip(made.inputs, tensors):
            rows.append(None if name not in found else torch.from_dlpack(found[name]).to(tensor.dtype))
        return tuple(rows)


def _tensor(made: Function, name: str, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        if isinstance(value, (int, float)):
            number = torch.tensor(value, dtype=torch.int64 if isinstance(value, int) else torch.float64)
            made.check(name, (), _dtype(number))
            return number
        raise refusal(
            "WRONG_TYPE", f"{made.name}: input '{name}': expected a torch tensor, found {type(value).__name__}"
        )
    if value.device.type != "cpu":
        raise refusal(
            "MIXED_DEVICES",
            f"{made.name}: input '{name}' is on {value.device}, and kernels run on the CPU; pass {name}.cpu()",
        )
    if value.layout != torch.strided:
        raise refusal(
            "COPY_BOUND_PLANE", f"{made.name}: input '{name}' is {value.layout}; pass {name}.to_dense(), which copies"
        )
    made.check(name, tuple(value.shape), _dtype(value))
    if not value.is_contiguous():
        raise refusal(
            "COPY_BOUND_PLANE",
            f"{made.name}: input '{name}' is not contiguous (strides {tuple(value.stride())}); pass "
            f"{name}.contiguous()",
        )
    return value


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _array(tensor: Any) -> Any:
    """The tensor's memory as a numpy array."""
    if tensor.dtype == torch.bool:  # of which DLPack of torch before 2.3 knows nothing; a byte is a byte
        return np.from_dlpack(tensor.detach().view(torch.uint8)).view(np.bool_)
    return np.from_dlpack(tensor.detach())


def _torch(array: Any) -> Any:
    """A numpy array's memory as a tensor."""
    if array.dtype == np.bool_:
        return torch.from_dlpack(array.view(np.uint8)).view(torch.bool)
    return torch.from_dlpack(array)
