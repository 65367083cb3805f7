"""Models: the parts of one step, bound over planes that they share by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence, Union

import numpy as np

from eagle import _core
from eagle._imported import refuse_moved
from eagle._kernel import Kernel, is_labelled
from eagle._nodes import Conditional, Node
from eagle.errors import EagleError, refusal
from eagle.plan import BoundPlan, Plan, _reals_among
from eagle.planes import Plane, device_of, local_of
from eagle.roles import Role
from eagle.session import Array, Session, check_session, default_session, session_of

if TYPE_CHECKING:
    from eagle.interop.xarray import Labels

# The mask among the arguments, where it is given by this name; no kernel has it then.
_MASK = "terminated"

# What a step is made of.
Part = Union[Kernel, Plan, BoundPlan, Node]


class Model:
    """The parts of a step, each bound. ``where`` begins the text of a refusal.

    Planes go by name: what one kernel writes as ``y``, the next reads as ``y``. Outputs that are not given are made.
    All Terminated arguments are one mask, whatever their names; where ``makes_mask`` is true it is made if nobody
    gives it. With ``labelled`` arguments may be ``xarray.DataArray``, whose labels planes have again in ``shown``.
    """

    def __init__(
        self,
        where: str,
        model: Any,
        arguments: dict[str, Any],
        *,
        reserved: Sequence[str] = (),
        until: Kernel | None = None,
        mask: Array | None = None,
        makes_mask: bool = False,
        labelled: bool = False,
        session: Session | None = None,
        scalar_type: Any = None,
    ) -> None:
        self._where = where
        self._given = dict(arguments)
        self._used: set[str] = set()
        given_parts = [_part(where, part) for part in (model if isinstance(model, (list, tuple)) else [model])]
        if not any(not isinstance(part, Node) for part in given_parts):
            raise refusal("BAD_VALUE", f"{where}: an empty step; give it at least one kernel")
        if until is not None:
            given_parts.append(_part(f"{where}: until", until))
        self._plans = [part for part in given_parts if isinstance(part, (Plan, BoundPlan))]
        self._refuse_reserved(reserved)
        self.labels: Labels | None = None
        if labelled and is_labelled([*self._given.values(), mask]):
            mask = self._unlabel(mask)
        arrays = [*self._given.values(), *([] if mask is None else [mask])]
        arrays += [array for part in self._plans if isinstance(part, BoundPlan) for array in part.planes.values()]
        arrays += [array for part in given_parts if isinstance(part, Node) for array in part._arrays]
        check_session(where, session)
        self.session = session or session_of(arrays) or default_session()
        self._real = scalar_type if scalar_type is not None else self._common_real()
        self._mask_given = mask
        self._mask = mask if mask is not None else self._given_mask()
        self._makes_mask = makes_mask or until is not None
        self.planes: dict[str, Array] = {}
        self._first: dict[str, str] = {}  # the kernel that brought each plane
        self.mask: str | None = None
        self._made: set[str] = set()
        self.parts: list[BoundPlan | Node] = []
        for part in given_parts:
            self.parts.append(self._bind(part) if isinstance(part, Plan) else part)
            if isinstance(part, BoundPlan):
                self._take(part)
        self._refuse_extra()
        self.n = next(part.n for part in self.parts if isinstance(part, BoundPlan))
        if self.labels is not None:
            self.labels.kinds = self.roles()

    @property
    def shown(self) -> Mapping[str, Any]:
        """The planes as users see them: with labels, where the arguments have some."""
        if self.labels is None:
            return self.planes
        return {name: self.labels.plane(name, array) for name, array in self.planes.items()}

    @property
    def device(self) -> str | None:
        """The GPU on which its planes lie; None for memory of the host."""
        return device_of(self.planes.values())

    def states(self) -> list[str]:
        """Names of the planes that a step changes and reads."""
        return [name for name in self.planes if self._roles(name) & {"mutable", "terminated"}]

    def changed(self) -> list[Array]:
        """The arrays that a step writes."""
        planes = [
            plane for name, plane in self.planes.items() if self._roles(name) & {"mutable", "terminated", "output"}
        ]
        written = [array for part in self.parts if isinstance(part, Node) for array in part._written]
        return list({id(array): array for array in (*planes, *written)}.values())

    def calls(self) -> dict[int, Callable[[], Any]]:
        """The callables of the step, by number."""
        found: dict[int, Callable[[], Any]] = {}
        for part in self.parts:
            if isinstance(part, Node):
                found.update(part._calls)
        return found

    def nodes(self) -> list[_core.Node]:
        """The parts, for the core: a run is about to begin."""
        for part in self.parts:
            if isinstance(part, BoundPlan) and part._watched:
                refuse_moved(self._where, part._watched)
        return [part._node for part in self.parts if part._node is not None]

    def roles(self) -> dict[str, str]:
        """What each plane is to the model: "accum", "reduce", "table", or "sample" for one element a sample."""
        kinds = {name: self._roles(name) for name in self.planes}
        return {
            name: next((kind for kind in ("accum", "reduce", "table") if roles == {kind}), "sample")
            for name, roles in kinds.items()
        }

    # ---- details

    def _unlabel(self, mask: Any) -> Any:
        """Keeps the labels of the arguments, which become plain arrays. Returns the mask."""
        from eagle.interop.xarray import Labels

        arguments: dict[str, Role] = {}
        for part in self._plans:
            for name in part.kernel.arguments:
                arguments.setdefault(name, part.kernel.role(name))
        given = {**self._given, **({} if mask is None else {_MASK: mask})}
        self.labels = Labels(self._where, {**arguments, _MASK: Role("terminated", "bool")}, given)
        plain = {name: self.labels.plain(name, value) for name, value in given.items()}
        mask = plain.pop(_MASK, None)
        self._given = plain
        return mask

    def _roles(self, name: str) -> set[str]:
        return {row[1] for part in self.parts if isinstance(part, BoundPlan) for row in part.rows if row[0] == name}

    def _refuse_reserved(self, reserved: Sequence[str]) -> None:
        for part in self._plans:
            for name in part.kernel.arguments:
                if name in reserved:
                    raise refusal(
                        "BAD_BINDING",
                        f"{self._where}: kernel '{part.kernel.name}' has an argument '{name}', a keyword here; "
                        "rename it",
                    )

    def _common_real(self) -> str | None:
        """float32 where the float planes of the model say so; of both, the two are named."""
        given = ((name, self._given.get(name)) for part in self._plans for name in part.kernel.arguments)
        found = _reals_among((name, value) for name, value in given if isinstance(value, (np.ndarray, Plane)))
        if len(found) == 2:
            raise refusal(
                "WRONG_DTYPE",
                f"{self._where}: '{found['f64']}' is float64 and '{found['f32']}' is float32; cast one of "
                f"them, for example session.asarray({found['f32']}, dtype=np.float64)",
            )
        return next(iter(found), None)

    def _mask_names(self) -> list[tuple[str, str]]:
        """(kernel, argument) of every Terminated."""
        return [
            (part.kernel.name, name)
            for part in self._plans
            for name in part.kernel.arguments
            if part.kernel.role(name).kind == "terminated"
        ]

    def _given_mask(self) -> Array | None:
        for part in self._plans:
            for name in part.kernel.arguments:
                if part.kernel.role(name).kind != "terminated":
                    continue
                if isinstance(part, BoundPlan):
                    return part.planes[name]
                if name in self._given:
                    given: Array = self._given[name]
                    return given
        return None

    def _take(self, bound: BoundPlan) -> None:
        for name, role, _, _ in bound.rows:
            if name not in bound.planes:
                continue
            first = self._first.setdefault(name, bound.kernel.name)
            if not _same(self.planes.setdefault(name, bound.planes[name]), bound.planes[name]):
                raise refusal(
                    "BAD_BINDING",
                    f"{self._where}: '{name}' is one array in kernel '{first}' and another one in kernel "
                    f"'{bound.kernel.name}'; planes go by name: bind both to one array, or rename the argument of one",
                )
            if role == "terminated" and self.mask is None:
                self.mask = name

    def _bind(self, plan: Plan) -> BoundPlan:
        kernel = plan.kernel
        if plan.scalar_type is None and self._real is not None:
            plan = Plan(kernel, self._real)
        arguments: dict[str, Any] = {}
        for name in (*kernel.arguments, *plan.outputs()):
            kind = kernel.role(name).kind if name in kernel.arguments else "output"
            if name in self._given:
                self._used.add(name)
                if kind == "terminated" and self._mask_given is not None:
                    raise refusal(
                        "BAD_BINDING",
                        f"{self._where}: kernel '{kernel.name}': the mask is passed twice, as '{name}' and as "
                        "terminated=; leave one out",
                    )
                arguments[name] = self._given[name]
            elif name in self.planes:
                arguments[name] = self.planes[name]
            elif kind == "terminated" and self._mask is not None:
                arguments[name] = self._mask
            elif kind == "mutable":
                raise refusal(
                    "BAD_BINDING",
                    f"{self._where}: kernel '{kernel.name}': state '{name}' has no initial value; argument '{name}' "
                    f"is missing: pass {name}=array",
                )
        if self._makes_mask and self._mask is None:
            self._make_mask(kernel, arguments)
        try:
            bound = plan.bind(session=self.session, **arguments)
        except EagleError as error:
            raise told_by(self._where, "bind", error) from None
        self._take(bound)
        return bound

    def _make_mask(self, kernel: Kernel, arguments: dict[str, Any]) -> None:
        masks = [name for name in kernel.arguments if kernel.role(name).kind == "terminated"]
        if not masks:
            return
        n = self.samples(kernel, arguments)
        if n is None:
            return
        device = device_of([*arguments.values(), *self._given.values()])
        self._mask = self.session.zeros(n, bool, device, masks[0])
        arguments[masks[0]] = self._mask

    def samples(self, kernel: Kernel, arguments: dict[str, Any]) -> int | None:
        """The number of samples that these arguments have; None where none tells."""
        translation = kernel.translation("f64")
        for name, role, _, _ in translation.kernel.arguments:
            if role not in ("param", "table") and isinstance(arguments.get(name), (np.ndarray, Plane)):
                return int(arguments[name].shape[-1]) if arguments[name].ndim else None
        return None

    def _refuse_extra(self) -> None:
        extra = [name for name in self._given if name not in self._used]
        if not extra:
            return
        if extra[0] in self._first:
            raise refusal(
                "BAD_BINDING",
                f"{self._where}: argument '{extra[0]}' is bound already, by kernel '{self._first[extra[0]]}'; leave it "
                "out, or pass the plan unbound",
            )
        takes = dict.fromkeys(name for part in self.parts if isinstance(part, BoundPlan) for name in part.names)
        raise refusal(
            "BAD_BINDING",
            f"{self._where}: there is no argument '{extra[0]}'; the model takes "
            + ", ".join(f"'{name}'" for name in takes),
        )


def told_by(where: str, method: str, error: EagleError) -> EagleError:
    """The error of ``method``, which ``where`` called, as its own; names of kernels and nodes stay as they are."""
    message = str(error)
    opening = f"{method}: "
    return refusal(error.reason, f"{where}: {message[len(opening) :] if message.startswith(opening) else message}")


def _same(one: Array, other: Array) -> bool:
    """Whether two arrays are the same elements."""
    if one is other:
        return True
    faces = [
        (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
        for array in (local_of(one), local_of(other))
        if isinstance(array, np.ndarray)
    ]
    return len(faces) == 2 and faces[0] == faces[1]


def _callable_node(where: str, node: Node | Conditional) -> Node:
    """The node, where a step can call it between its kernels."""
    named = f"'{node.name}' ({node.kind})" if node.name else f"'{node.kind}'"
    if node.kind in ("opaque_stream", "opaque_host"):
        raise refusal(
            "BAD_VALUE",
            f"{where}: node {named}: a stream or host node cannot run inside a stepping loop; take some steps at a "
            "time (max_steps=k), and call your code between them in a loop of your own",
        )
    if not isinstance(node, Node) or node._parts or len(node._calls) != 1:
        raise refusal(
            "WRONG_TYPE",
            f"{where}: node {named} cannot be part of a step, which holds kernels and opaque nodes; write it in a "
            "kernel, or in the callable of an eagle.graph.opaque",
        )
    return node


def _part(where: str, part: Any) -> Plan | BoundPlan | Node:
    if isinstance(part, Kernel):
        return Plan(part)
    if isinstance(part, (Plan, BoundPlan)):
        return part
    if isinstance(part, (Node, Conditional)):
        return _callable_node(where, part)
    raise refusal(
        "WRONG_TYPE",
        f"{where}: expected a kernel, a plan or an opaque node, or a list of them, as model, found "
        f"{type(part).__name__}; decorate the step with @eagle.kernel",
    )
