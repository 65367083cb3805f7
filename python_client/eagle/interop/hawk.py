"""Kernels that were written for raptor-hawk, as kernels of ours.

:func:`kernel` reads what hawk has traced (``k.walk``) and writes it down in our language; the result is a kernel like
any other, whose ``source()`` is that text. Nothing of hawk runs, and it is not imported here: who has a hawk kernel
has it.
What has no counterpart is refused by name, with the way out.
"""

from __future__ import annotations

import keyword
from typing import Any, Iterable, NoReturn

from eagle._kernel import Kernel
from eagle._kernel import kernel as _kernel
from eagle.errors import refusal

_DEEPEST = 12  # of expressions that are written into each other

_BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_INTEGERS = {"floordiv": "//", "mod": "%", "band": "&", "bor": "|", "bxor": "^", "shl": "<<", "shr": ">>"}
_LOGIC = {"land": "and", "lor": "or"}
# fmt: off
_SAME_NAME = (
    "sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "hypot", "erf", "erfc",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "floor", "ceil", "trunc", "round", "rint", "sign", "copysign", "fmod", "remainder", "fdim", "fma", "clip",
    "isnan", "isinf", "isfinite", "dot", "cross", "norm", "outer", "transpose",
)
# fmt: on
_FUNCTIONS = {name: f"eagle.math.{name}" for name in _SAME_NAME}
_QUATERNIONS = {
    "quat_mul": "eagle.math.quat_multiply({0}, {1})",
    "quat_conj": "eagle.math.quat_conjugate({0})",
    "quat_recip": "eagle.math.quat_conjugate({0}) / eagle.math.dot({0}, {0})",
    "quat_rotate": "eagle.math.quat_rotate({0}, {1})",
    "as_pure": "eagle.quat(0.0, {0}[0], {0}[1], {0}[2])",
    "as_vec3": "eagle.vector({0}[1], {0}[2], {0}[3])",
}
_CURES = {
    "spacing": "eagle has no spacing(); write abs(x) * 2.0**-52 where that is good enough",
    "tape_write": "tapes are hawk's own way to gradients; take eagle.diff.vjp of the kernel without one",
    "tape_read": "convert the kernel that was differentiated, and take eagle.diff.vjp of that",
    "loop_count": "convert the kernel that was differentiated, and take eagle.diff.vjp of that",
    "wide_write": "samples may store to one place, and who comes last is anybody's guess; where each place has one "
    "sample, add to zeros: hawk.scatter(out)[key] += value",
    "reduce": "its value is there when all samples have been seen; write two kernels, of which the first stores it "
    "(out = hawk.sum(x)) and the second reads it from a Table, and put both into a graph",
}


def kernel(k: Any, name: str | None = None, *, own_random: bool = False) -> Kernel:
    """A kernel of ours that computes what this kernel of raptor-hawk does, for one step.

    Arguments keep their names and order: ``Mutable``, ``Terminated``, ``Table``, ``Index`` and ``Param`` are what they
    are there, what the function returns is an output. A plane that hawk sums over samples (``out = hawk.sum(x)``) is a
    ``Reduce`` (of a vector one for each component: ``out_0``, ``out_1``), one that it scatters into or sums over some
    axes of a ``Grid`` is an ``Accum`` to be given, of zeros, and sums have our order; what has named axes is bound as
    it is. An array that is read at other samples only (``x.at(i)``) is a ``Table``, and one that is read both ways has
    another argument behind all others, the Table ``x_all``, to be bound to the same array. What is fused into several
    steps there (``steps="auto"``) is one step here, and ``eagle.simulate`` fuses as it likes.

    Random numbers of raptor-hawk come from another stream than ours, so a kernel that draws some is refused, unless
    ``own_random`` says that numbers of the same distribution from :mod:`eagle.random` will do.

    Raises EagleError: TypeError for what is no kernel of hawk's, and a ValueError that names the operation or plane
    that has no counterpart, with what to do instead.
    """
    found = getattr(k, "one_step", None) or k
    if not hasattr(found, "walk") or not hasattr(found, "sinks") or not hasattr(found, "planes"):
        raise refusal(
            "WRONG_TYPE",
            f"interop.hawk.kernel: expected a kernel that hawk has traced (@hawk.kernel), found "
            f"{type(k).__module__.split('.')[0]}.{type(k).__name__}",
        )
    return _kernel(source=_Writer(found, name or str(found.name), own_random).text())


def source(k: Any, name: str | None = None, *, own_random: bool = False) -> str:
    """The text that :func:`kernel` makes a kernel of."""
    return kernel(k, name, own_random=own_random).source()


class _Writer:
    """Writes one kernel: statements in order, each node once."""

    def __init__(self, k: Any, name: str, own_random: bool) -> None:
        self._k = k
        self._own_random = own_random
        self._name = name
        self._lines: list[str] = []
        self._indent = 1
        self._written: dict[int, str] = {}  # by node: the expression that stands for it
        self._kept: list[Any] = []  # nodes whose ids are in use
        self._uses: dict[int, int] = {}
        self._free = 0
        self._forms = {plane: getattr(form, "form", "") for plane, form in k.planes.items()}
        self._arguments: dict[str, str] = {}
        self._axes: dict[str, tuple[tuple[str, int], ...]] = {}
        self._read_own: set[str] = set()  # planes that are read as this sample's, and at another one
        self._read_at: set[str] = set()
        self._accums = {sink.name for sink in k.sinks if sink.kind == "accum_write"}
        # The corrections of compensated sums, which hawk's runtime owns.
        self._companions = {
            f"{sink.name}_c"
            for sink in k.sinks
            if sink.kind == "accum_write" and sink.policy in ("compensated", "keyed_auto")
        } | {f"{sink.name}_comp" for sink in k.sinks if sink.kind == "sample_sum"}
        self._taken = set(k.planes) | {slot_name for _, slot_name in k.walk.arg_spec}

    def text(self) -> str:
        for sink in self._k.sinks:
            self._count(sink.operands)
        self._declare()
        returned = self._returned()
        assigned: list[tuple[str, str]] = []
        finish = ""
        for sink in self._k.sinks:
            kind = sink.kind
            if sink.name in self._companions:
                continue
            if kind in ("assign", "sample_sum"):
                assigned.append((sink.name, self._of(sink.value)))
            elif kind == "accum_write":
                self._accumulate(sink)
            elif kind == "finish":
                finish = f"{sink.name} = {_bare(self._of(sink.value))}"
            else:
                self._refuse(f"store '{kind}'", sink, _CURES.get(kind, "store to a Mutable of one value a sample"))
        # All at once: what they are made of is what there was before.
        if assigned:
            names, values = zip(*assigned)
            self._line(f"{', '.join(names)} = {', '.join(map(_bare, values))}")
        if finish:
            self._line(finish)
        annotation = ""
        if returned:
            annotation, value = returned
            self._line(f"return {value}")
        if not self._lines:
            self._line("pass")
        arguments = ", ".join(f"{plane}: {role}" for plane, role in self._arguments.items())
        return f"def {self._name}({arguments}){annotation}:\n" + "\n".join(self._lines) + "\n"

    # ---- arguments

    def _declare(self) -> None:
        slots = {name: (role, self._k.walk.slot_types[(role, name)]) for role, name in self._k.walk.arg_spec}
        reductions = {sink.name: sink.op for sink in self._k.sinks if sink.kind == "sample_sum"}
        outputs = set(self._leaves_of_returns())
        order = [*self._k.planes, *(name for name in slots if name not in self._k.planes)]
        for name in order:
            if name not in slots or name in outputs or name in self._companions:
                continue
            role, ttype = slots[name]
            if not str(name).isidentifier() or keyword.iskeyword(str(name)):
                self._refuse(f"the name {name!r} of a plane", None, "rename the argument")
            if role == "nsamples" or name == "finished_count":  # which a run counts by itself here
                continue
            if name in reductions:
                self._arguments[name] = f'Reduce("{reductions[name]}")'
                continue
            self._arguments[name] = self._role(name, role, ttype)
        for name in order:
            if name in self._read_at and name in self._read_own:
                self._arguments[self._others(name)] = f"Table[{self._type(name, slots[name][1])}]"

    def _others(self, name: str) -> str:
        """The argument by which a plane of samples is read at any of them."""
        if name not in self._read_own:
            return name
        if f"{name}_all" in self._taken:
            self._refuse(f"a read of other samples' '{name}'", None, f"rename '{name}_all', which stands for them here")
        return f"{name}_all"

    def _role(self, name: str, role: str, ttype: Any) -> str:
        value = self._type(name, ttype)
        if role in ("per_sample", "vec_in", "mat_in"):
            return f"Table[{value}]" if name in self._read_at and name not in self._read_own else value
        if role == "uniform":
            if ttype.shape:
                self._refuse(
                    f"Param '{name}' of {ttype.shape} numbers", None, "pass a Table, or a Param for each number"
                )
            return "Param[int]" if value == "Index" else "Param"
        if role == "mutable":
            return f"Mutable[{value}]"
        if role == "terminated":
            return "Terminated"
        if role == "lookup":
            if name == "fused_steps":
                self._refuse(f"plane '{name}'", None, "convert the kernel as it was written, before hawk.steps(...)")
            return self._indexed("Table", name, value)
        if role == "accum_out":
            return self._indexed("Accum", name, value)
        if role == "wide_out":
            self._refuse(f"stores by key into '{name}'", None, _CURES["wide_write"])
        self._refuse(f"plane '{name}' of role '{role}'", None, "give each value a sample, a Table or a Param")

    def _indexed(self, kind: str, name: str, value: str) -> str:
        """A Table or an Accum, with named axes where it has some."""
        axes = self._dims(name) if value == "Scalar" else ()
        if not axes:
            return f"{kind}[{value}]"
        self._axes[name] = axes
        return f"{kind}[" + ", ".join(f'"{label}":{extent}' for label, extent in axes) + "]"

    def _dims(self, name: str) -> tuple[tuple[str, int], ...]:
        """The named axes of a table, where all extents are known; else it has one."""
        found = []
        for dim in getattr(self._k.planes.get(name), "dims", ()) or ():
            label, extent = (tuple(dim) if isinstance(dim, (tuple, list)) else (dim, None))[:2]
            if extent is None or not str(label).isidentifier():
                return ()
            found.append((str(label), int(extent)))
        shape = tuple(getattr(getattr(self._k.planes.get(name), "ttype", None), "shape", ()))
        if found and name in self._accums:  # of vectors and matrices: their entries come first
            found = [(f"{name}_{axis}", int(extent)) for axis, extent in enumerate(shape)] + found
        return tuple(found)

    def _type(self, name: str, ttype: Any) -> str:
        if ttype.dtype in ("int32", "uint32"):
            self._refuse(
                f"plane '{name}' of {ttype.dtype}", None, "integers of kernels have 64 bits here; declare an Index"
            )
        if ttype.dtype == "bool":
            return "Index"
        if ttype.dtype in ("i32", "i64"):
            return "Index"
        if ttype.tag == "quaternion":
            return "Quat"
        if len(ttype.shape) == 2:
            return f"Matrix[{ttype.shape[0]}, {ttype.shape[1]}]"
        return f"Vector[{ttype.shape[0]}]" if ttype.shape else "Scalar"

    def _leaves_of_returns(self) -> list[str]:
        """The planes that are returned, in order."""
        found: list[str] = []

        def look(part: Any) -> None:
            if isinstance(part, str):
                found.append(part)
            elif isinstance(part, dict):
                for inner in part.values():
                    look(inner)
            elif isinstance(part, (tuple, list)):
                for inner in part:
                    look(inner)

        look(self._k.returns)
        return [part for name in found for part in self._parts(name)]

    def _parts(self, name: str) -> list[str]:
        """The outputs that a returned plane is here: none for an Accum, one for each component of a reduced vector."""
        if name in self._accums:
            return []
        cells = [sink.name for sink in self._k.sinks if sink.kind == "sample_sum" and sink.cell == name]
        return cells or [name]

    def _returned(self) -> tuple[str, str] | None:
        """The annotation, and what is returned."""
        names = self._leaves_of_returns()
        if not names:
            return None
        slots = {name: self._k.walk.slot_types[(role, name)] for role, name in self._k.walk.arg_spec}
        sums = {sink.name: sink.op for sink in self._k.sinks if sink.kind == "sample_sum"}
        types = [f'Reduce("{sums[name]}")' if name in sums else self._type(name, slots[name]) for name in names]
        returns = self._k.returns
        if isinstance(returns, str) and len(names) == 1:
            return f" -> {types[0]}", names[0]
        if isinstance(returns, dict) and all(isinstance(value, str) for value in returns.values()):
            keys = [
                key if len(parts) == 1 else key + part[len(value) :]
                for key, value in returns.items()
                for parts in [self._parts(value)]
                for part in parts
            ]
            annotation = ", ".join(f'"{key}": {role}' for key, role in zip(keys, types))
            return f" -> {{{annotation}}}", (
                "{" + ", ".join(f'"{key}": {name}' for key, name in zip(keys, names)) + "}"
            )
        if isinstance(returns, str) or (
            isinstance(returns, (tuple, list)) and all(isinstance(value, str) for value in returns)
        ):
            return f" -> tuple[{', '.join(types)}]", f"{', '.join(names)}" + ("," if len(names) == 1 else "")
        self._refuse("a return of nested parts", None, "return a tuple or a dict of values")

    # ---- nodes

    def _count(self, roots: Iterable[Any]) -> None:
        """How often each node is used, bodies of loops included."""
        stack = list(roots)
        while stack:
            node = stack.pop()
            self._uses[id(node)] = self._uses.get(id(node), 0) + 1
            if self._uses[id(node)] > 1:
                continue
            self._kept.append(node)
            if node.kind == "primitive":
                stack.append(node.operands[0])
                continue
            if node.kind == "at":
                self._read_at.add(node.operands[0].name)
                stack.append(node.operands[1])
                continue
            if hasattr(node, "role"):
                self._read_own.add(node.name)
            stack.extend(node.operands)
            if node.kind == "loop":
                stack.extend(node.body_roots())

    def _line(self, line: str) -> None:
        self._lines.append("    " * self._indent + line)

    def _fresh(self, prefix: str = "n") -> str:
        while True:
            name = f"{prefix}{self._free}"
            self._free += 1
            if name not in self._taken:
                return name

    def _of(self, node: Any) -> str:
        """The expression that stands for a node; statements before it are written as they are needed."""
        # By hand, because chains are longer than Python's stack is deep.
        stack = [(node, False)]
        while stack:
            one, ready = stack.pop()
            if id(one) in self._written:
                continue
            if ready or not self._needs(one):
                self._write(one)
                continue
            stack.append((one, True))
            stack.extend((operand, False) for operand in reversed(self._needs(one)) if id(operand) not in self._written)
        return self._written[id(node)]

    def _needs(self, node: Any) -> tuple[Any, ...]:
        if node.kind == "primitive":
            return (node.operands[0],)
        if node.kind == "at":
            return (node.operands[1],)
        return tuple(node.operands)

    def _write(self, node: Any) -> None:
        if node.kind == "loop":
            self._loop(node)
            self._written[id(node)] = ""
            return
        expression, atom = self._expression(node)
        depth = expression.count("(")
        if not atom and (self._uses.get(id(node), 1) > 1 or depth > _DEEPEST or len(expression) > 90):
            name = self._fresh()
            self._line(f"{name} = {_bare(expression)}")
            expression = name
        self._written[id(node)] = expression

    def _expression(self, node: Any) -> tuple[str, bool]:
        """The node's expression, in parentheses where it needs them, and whether it may be written again and again."""
        kind = node.kind
        literal = getattr(node, "literal", None)
        if kind == "constant":
            return self._constant(node, literal), True
        if kind in ("vocab_read", "prior_read", "uniform", "table_read") or hasattr(node, "role"):
            if getattr(node, "role", "") == "nsamples":
                return "eagle.n_samples()", True
            return str(node.name), True
        if kind == "loop_value":
            return self._written[id(node.operands[0]), literal], True  # type: ignore[index]
        if kind in ("sample_index",) or type(node).__name__ == "SampleIndex":
            return "eagle.sample_index()", True
        if kind == "primitive":
            return self._written[id(node.operands[0])], True
        if kind == "at":
            return self._at(node), False
        operands = [self._written[id(operand)] for operand in node.operands]
        return self._operation(node, kind, literal, operands), False

    def _operation(self, node: Any, kind: str, literal: Any, operands: list[str]) -> str:
        shapes = [tuple(operand.ttype.shape) for operand in node.operands]
        if kind == "div" and node.ttype.dtype in ("i32", "i64"):
            return self._quotient(node, operands)
        if kind in _BINARY:
            return f"({self._meeting(kind, operands, shapes, _BINARY[kind])})"
        if kind in _COMPARISONS or kind in _INTEGERS or kind in _LOGIC:
            sign = {**_COMPARISONS, **_INTEGERS, **_LOGIC}[kind]
            return f"({operands[0]} {sign} {operands[1]})"
        if kind in ("min", "max"):
            whole = node.ttype.dtype in ("i32", "i64")
            if whole:
                return f"{kind}({', '.join(operands)})"
            return f"eagle.math.{kind}imum({', '.join(self._spread(operands, shapes))})"
        if kind in _FUNCTIONS:
            spread = operands if kind in ("dot", "cross", "outer") else self._spread(operands, shapes)
            return f"{_FUNCTIONS[kind]}({', '.join(spread)})"
        if kind in _QUATERNIONS:
            return _QUATERNIONS[kind].format(*operands)
        simple = {
            "neg": "(-{0})",
            "abs": "abs({0})",
            "lnot": "(not {0})",
            "invert": "(~{0})",
            "mv": "({0} @ {1})",
            "mm": "({0} @ {1})",
            "random_uniform": "eagle.random.uniform({0}, {1})",
            "random_normal": "eagle.random.normal({0}, {1})",
            "select": "eagle.select({0}, {1}, {2})",
        }
        if kind.startswith("random_") and not self._own_random:
            self._refuse(
                f"operation '{kind}'",
                node,
                "its numbers are of another stream; say own_random=True for numbers of eagle.random, or pass them as "
                "an array",
            )
        if kind in simple:
            return simple[kind].format(*operands)
        if kind == "sum":
            if len(shapes[0]) == 1:
                return f"eagle.math.sum({operands[0]})"
            return "(" + " + ".join(_entries(operands[0], shapes[0])) + ")"
        if kind == "dispatch":
            branches = ", ".join(f"lambda: {branch}" for branch in operands[1:])
            return f'eagle.dispatch({operands[0]}, [{branches}], policy="{node.policy}")'
        if kind == "component":
            index = literal if isinstance(literal, tuple) else (literal,)
            return f"{operands[0]}[{', '.join(map(str, index))}]"
        if kind == "component_at":
            choices = ", ".join(f"lambda: {operands[0]}[{i}]" for i in range(shapes[0][0]))
            if shapes[0][0] == 1:
                return f"{operands[0]}[0]"
            return f'eagle.dispatch({operands[1]}, [{choices}], policy="predicated")'
        if kind in ("set_component_at", "add_at"):
            return self._with_component(kind, operands, shapes[0][0])
        if kind == "vec":
            if isinstance(literal, tuple):
                rows = [operands[r * literal[1] : (r + 1) * literal[1]] for r in range(literal[0])]
                return f"eagle.matrix([{', '.join('[' + ', '.join(row) + ']' for row in rows)}])"
            return f"eagle.{'quat' if node.ttype.tag == 'quaternion' else 'vector'}({', '.join(operands)})"
        if kind == "splat":
            return _filled(operands[0], tuple(literal))
        if kind == "cast":
            return self._cast(node, literal, operands[0])
        self._refuse(
            f"operation '{kind}'",
            node,
            _CURES.get(
                kind,
                "write it with the operations of docs/manual/kernels.md (nothing factors matrices here: solve small "
                "systems by components)",
            ),
        )

    def _quotient(self, node: Any, operands: list[str]) -> str:
        """Of integers, cut towards zero as in C; ours rounds down."""
        signs = []
        sizes = []
        for operand, text in zip(node.operands, operands):
            if _not_negative(operand):
                sizes.append(text)
                continue
            text = self._named(text)
            signs.append(f"eagle.select({text} < 0, -1, 1)")
            sizes.append(f"abs({text})")
        return "(" + " * ".join([f"({sizes[0]} // {sizes[1]})", *signs]) + ")"

    def _named(self, expression: str) -> str:
        """A name for the value, to be written again and again."""
        if expression.isidentifier():
            return expression
        name = self._fresh()
        self._line(f"{name} = {_bare(expression)}")
        return name

    def _constant(self, node: Any, literal: Any) -> str:
        value: Any = literal
        if node.ttype.shape:
            self._refuse("a constant of several numbers", node, "pass it as a Table or a Param")
        if node.ttype.dtype == "bool":
            return str(bool(value))
        if node.ttype.dtype in ("i32", "i64"):
            return str(int(value)) if int(value) >= 0 else f"({int(value)})"
        if node.ttype.dtype in ("int32", "uint32"):
            self._refuse(f"a constant of {node.ttype.dtype}", node, "use Index integers, which have 64 bits here")
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            return "math.nan" if number != number else ("math.inf" if number > 0 else "(-math.inf)")
        return repr(number) if number >= 0 and not repr(number).startswith("-") else f"({number!r})"

    def _cast(self, node: Any, target: Any, operand: str) -> str:
        if target in ("i32", "i64"):
            return f"int({operand})"
        if target in ("f64", "f32"):
            return f"float({operand})"
        self._refuse(f"a conversion to {target}", node, "integers of kernels have 64 bits here; convert to an Index")

    def _meeting(self, kind: str, operands: list[str], shapes: list[tuple[int, ...]], sign: str) -> str:
        """Arithmetic of unlike shapes: ours has products with a number, and quotients by one."""
        one, other = shapes
        plain = one == other or (kind == "mul" and () in shapes) or (kind == "div" and other == ())
        if not plain:
            operands = self._spread(operands, shapes)
        return f"{operands[0]} {sign} {operands[1]}"

    def _spread(self, operands: list[str], shapes: list[tuple[int, ...]]) -> list[str]:
        """All of one shape: numbers beside vectors become vectors."""
        whole = max(shapes, key=len)
        return [_filled(text, whole) if shape != whole else text for text, shape in zip(operands, shapes)]

    def _with_component(self, kind: str, operands: list[str], width: int) -> str:
        vector, index, value = operands
        parts = []
        for i in range(width):
            new = value if kind == "set_component_at" else f"{vector}[{i}] + {value}"
            parts.append(f"eagle.select({index} == {i}, {new}, {vector}[{i}])")
        return f"eagle.vector({', '.join(parts)})"

    def _at(self, node: Any) -> str:
        plane, index = node.operands[0].name, self._written[id(node.operands[1])]
        role = node.operands[0].role
        if role in ("per_sample", "vec_in", "mat_in"):
            plane = self._others(plane)
        elif role != "lookup":
            self._refuse(
                f"a read of other samples' '{plane}', which samples write",
                node,
                "pass a copy of the array as a Table, and read that",
            )
        return f"{plane}.at({self._coordinates(plane, index)})"

    def _coordinates(self, plane: str, index: str) -> str:
        """What a flat index means along the axes of a plane."""
        axes = self._axes.get(plane)
        if not axes or len(axes) == 1:
            return _bare(index)
        index = self._named(index)
        parts = []
        inner = 1
        for position, (_, extent) in reversed(list(enumerate(axes))):
            part = index if inner == 1 else f"{index} // {inner}"
            parts.append(part if position == 0 else f"({part}) % {extent}" if inner > 1 else f"{part} % {extent}")
            inner *= extent
        return ", ".join(reversed(parts))

    def _accumulate(self, sink: Any) -> None:
        if sink.policy == "or":
            self._refuse("a scatter that ORs", sink, "add ones to an Accum of Index, and compare with 0 afterwards")
        index = "eagle.sample_index()" if sink.index is None else self._of(sink.index)
        value = _bare(self._of(sink.value))
        place = self._coordinates(sink.name, index)
        self._line(f"{sink.name}.add({value}, at={f'({place})' if ', ' in place else place})")

    # ---- loops

    def _loop(self, loop: Any) -> None:
        if loop.count is not None:
            self._refuse("a loop of a derivative", loop, _CURES["loop_count"])
        if loop.body_sinks:
            self._refuse("a store inside a loop", loop, "carry the value through the loop and store it afterwards")
        carried = [self._fresh(_clean(carry.name)) for carry in loop.carries]
        for name, start in zip(carried, loop.inits):
            self._line(f"{name} = {_bare(self._written[id(start)])}")
        index = self._fresh(_clean(loop.index.name))
        outer, self._written = self._written, dict(self._written)
        for node in self._placeholders(loop):
            if type(node).__name__ == "LoopCarry" and node.depth == loop.index.depth:
                self._written[id(node)] = carried[node.slot]
            elif type(node).__name__ == "LoopIndex" and node.depth == loop.index.depth:
                self._written[id(node)] = index
        self._line(f"for {index} in range({loop.start}, {loop.stop}, {loop.step}):")
        self._indent += 1
        if loop.exit_cond is not None:
            leaves = _bare(self._of(loop.exit_cond))
            # What the break leaves is made of what the trip began with, like the condition.
            values = [self._of(value) for value in loop.exit_values]
            self._line(f"if {leaves}:")
            self._indent += 1
            changed = [(name, value) for name, value in zip(carried, values) if name != value]
            if changed:
                self._line(f"{', '.join(n for n, _ in changed)} = {', '.join(_bare(v) for _, v in changed)}")
            self._line("break")
            self._indent -= 1
        values = [self._of(value) for value in loop.nexts]
        self._line(f"{', '.join(carried)} = {', '.join(map(_bare, values))}")
        self._indent -= 1
        self._written = outer
        for slot, name in enumerate(carried):
            self._written[id(loop), slot] = name  # type: ignore[index]

    def _placeholders(self, loop: Any) -> list[Any]:
        """The carried values and the index, as nodes of the body have them."""
        found, seen = [loop.index, *loop.carries], {id(loop.index), *map(id, loop.carries)}
        stack = list(loop.body_roots())
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if type(node).__name__ in ("LoopCarry", "LoopIndex"):
                found.append(node)
            stack.extend(node.operands)
            if node.kind == "loop":
                stack.extend(node.body_roots())
        return found

    def _refuse(self, what: str, node: Any, cure: str) -> NoReturn:
        of = f" of type {node.ttype!r}" if node is not None and hasattr(node, "ttype") else ""
        raise refusal(
            "BAD_VALUE",
            f"interop.hawk.kernel: kernel '{self._k.name}' has {what}{of}, which has no counterpart here: {cure}",
        )


def _not_negative(node: Any) -> bool:
    """Whether an integer is known to be at least 0."""
    if node.kind == "constant":
        return int(node.literal) >= 0
    if type(node).__name__ == "LoopIndex":
        return False  # its loop may count down
    if type(node).__name__ == "SampleIndex" or getattr(node, "role", "") == "nsamples":
        return True
    return node.kind in ("add", "mul", "div", "floordiv", "mod") and all(map(_not_negative, node.operands))


def _clean(name: Any) -> str:
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in str(name)).strip("_") or "c"
    return (text if text[0].isalpha() else "c" + text) + "_"


def _bare(expression: str) -> str:
    """Without the parentheses around the whole."""
    if not (expression.startswith("(") and expression.endswith(")")):
        return expression
    depth = 0
    for i, c in enumerate(expression):
        depth += (c == "(") - (c == ")")
        if depth == 0 and i < len(expression) - 1:
            return expression
    return expression[1:-1]


def _entries(matrix: str, shape: tuple[int, ...]) -> list[str]:
    return [f"{matrix}[{r}, {c}]" for r in range(shape[0]) for c in range(shape[1])]


def _filled(value: str, shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return f"eagle.vector({', '.join([value] * shape[0])})"
    row = f"[{', '.join([value] * shape[1])}]"
    return f"eagle.matrix([{', '.join([row] * shape[0])}])"
