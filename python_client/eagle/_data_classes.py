"""``data_class`` and ``NamedTuple``: to a type checker they are ``dataclasses.dataclass`` and ``typing.NamedTuple``, of
which they do what this package needs, in a part of the time that ``import eagle`` would take with those.

A data class has its methods generated and compiled, each class for itself, and there are two dozen here: that was a
quarter of the whole. The methods here are closures over the fields. Of a named tuple ``typing`` compiles each
annotation to see whether it is a type; here annotations stay the texts that they are.

>>> @data_class(frozen=True)
... class Point:
...     x: float
...     y: float = 0.0
>>> Point(1.0) == Point(x=1.0, y=0.0), Point(1.0)
(True, Point(x=1.0, y=0.0))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as data_class
    from dataclasses import field as field
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple

    class _Field:
        __slots__ = ("compare", "make")

    def field(*, default_factory=None, compare=True):
        """A field whose default is made anew for each object, or that makes no difference between objects."""
        made = _Field()
        made.make, made.compare = default_factory, compare
        return made

    class _Fields:
        """What ``dataclasses`` asks a class for, made when it does."""

        def __init__(self, names, special):
            self._names, self._special, self._made = names, special, None

        def __get__(self, _, owner):
            if self._made is None:
                import dataclasses

                made = []
                for name in self._names:
                    given = self._special.get(name)
                    if given is None:
                        field = dataclasses.field(default=getattr(owner, name, dataclasses.MISSING))
                    elif given.make is None:
                        field = dataclasses.field(compare=given.compare)
                    else:
                        field = dataclasses.field(default_factory=given.make, compare=given.compare)
                    made.append((name, owner.__annotations__[name], field))
                self._made = dataclasses.make_dataclass(owner.__name__, made).__dataclass_fields__
            return self._made

    def data_class(cls=None, /, *, frozen=False, eq=True, repr=True):
        """A class with a field for each of its annotations; no base of it may be one.

        ``frozen``: fields are set once. ``eq``: objects are equal, and frozen ones have equal hashes, where their
        fields are equal; else each is equal to itself alone.
        """
        if cls is None:
            return lambda cls: data_class(cls, frozen=frozen, eq=eq, repr=repr)
        names = tuple(cls.__annotations__)
        known = frozenset(names)
        special = {name: cls.__dict__[name] for name in names if isinstance(cls.__dict__.get(name), _Field)}
        for name in special:
            delattr(cls, name)
        factories = [(name, field.make) for name, field in special.items() if field.make is not None]
        required = known - {name for name, _ in factories} - cls.__dict__.keys()
        compared = [name for name in names if name not in special or special[name].compare]

        def __init__(self, *given, **named):
            values = self.__dict__
            values.update(zip(names, given))
            if named.keys() & values.keys() or named.keys() - known or len(given) > len(names):
                raise TypeError(f"{cls.__name__}: got {given} and {named}, of the fields {', '.join(names)}")
            values.update(named)
            for name, make in factories:
                if name not in values:
                    values[name] = make()
            if required - values.keys():
                raise TypeError(f"{cls.__name__}: {', '.join(sorted(required - values.keys()))} not given")

        def fields(self):
            return tuple([getattr(self, name) for name in compared])

        def __repr__(self):
            return f"{cls.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

        def __eq__(self, other):
            return fields(self) == fields(other) if other.__class__ is cls else NotImplemented

        def __hash__(self):
            return hash(fields(self))

        def __setattr__(self, name, value):
            raise AttributeError(f"{cls.__name__} is frozen: {name!r} cannot be set")

        cls.__init__ = __init__
        cls.__match_args__ = names
        cls.__dataclass_fields__ = _Fields(names, special)
        if repr and "__repr__" not in cls.__dict__:
            cls.__repr__ = __repr__
        if eq:
            cls.__eq__ = __eq__
            cls.__hash__ = __hash__ if frozen else None
        if frozen:
            cls.__setattr__ = __setattr__
        return cls

    class _NamedTuples(type):
        """Makes a tuple type of a class body: a field for each annotation, and whatever else stands there."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body["__annotations__"]
            given = [field for field in fields if field in body]
            if given != [*fields][len(fields) - len(given) :]:
                raise TypeError(f"{name}: a field without a default follows one that has a default")
            defaults = [body[field] for field in given]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for key, value in body.items():
                if key not in fields and key != "__module__":
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_NamedTuples):
        """A base that leaves no trace: a class with it has ``tuple`` for its base."""


__all__ = ["NamedTuple", "data_class", "field"]
