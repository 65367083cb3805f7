"""``data_class`` and ``NamedTuple``: what they do of those of ``dataclasses`` and ``typing``, whose place they take."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import typing
from typing import Any, Callable

import pytest

from eagle._data_classes import NamedTuple, data_class, field


@data_class(frozen=True)
class Point:
    x: float
    y: float = 0.0


@data_class
class Box:
    name: str
    items: list[int] = field(default_factory=list)


@data_class(frozen=True)
class Said:
    number: int
    text: str = field(compare=False)


@data_class(eq=False)
class Alone:
    x: int


class Pair(NamedTuple):
    """Two of a kind."""

    first: int
    second: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        return len(self.second)

    @classmethod
    def of(cls, *numbers: int) -> Pair:
        return cls(numbers[0], numbers[1:])


class TheirPair(typing.NamedTuple):
    """Two of a kind."""

    first: int
    second: tuple[int, ...] = ()


def test_fields_are_given_by_place_and_by_name() -> None:
    assert (Point(1.0, 2.0).x, Point(1.0, y=2.0).y, Point(x=1.0).y) == (1.0, 2.0, 0.0)


@pytest.mark.parametrize(
    "wrong", [lambda: Point(), lambda: Point(1, 2, 3), lambda: Point(1, x=1), lambda: Point(1, z=2), lambda: Box()]
)
def test_fields_that_are_missing_twice_or_unknown_are_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="Point|Box"):
        wrong()


def test_a_default_is_made_anew_for_each_object() -> None:
    Box("a").items.append(1)
    assert Box("b").items == []


def test_equal_fields_are_equal_objects_and_hashes() -> None:
    assert Point(1.0) == Point(1.0, 0.0) and hash(Point(1.0)) == hash(Point(1.0, 0.0))
    assert Point(1.0) != Point(2.0) and Point(1.0) != (1.0, 0.0)
    assert Said(1, "a") == Said(1, "b") and hash(Said(1, "a")) == hash(Said(1, "b"))
    assert Alone(1) != Alone(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Box("a"))


def test_a_frozen_object_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="'x'"):
        Point(1.0).x = 2.0  # type: ignore[misc]
    box = Box("a")
    box.name = "b"
    assert box == Box("b")


def test_it_looks_is_copied_and_is_pickled_as_a_dataclass() -> None:
    assert repr(Point(1.0)) == "Point(x=1.0, y=0.0)"
    for frozen in (True, False):
        theirs = dataclasses.dataclass(frozen=frozen)(type("T", (), {"__annotations__": {"a": "int"}}))
        ours = data_class(frozen=frozen)(type("T", (), {"__annotations__": {"a": "int"}}))
        assert repr(theirs(1)) == repr(ours(1))
    assert copy.copy(Point(1.0)) == copy.deepcopy(Point(1.0)) == pickle.loads(pickle.dumps(Point(1.0))) == Point(1.0)


def test_dataclasses_takes_it_for_one() -> None:
    assert dataclasses.is_dataclass(Point)
    assert dataclasses.asdict(Box("a", [1])) == {"name": "a", "items": [1]}
    assert dataclasses.replace(Point(1.0, 2.0), y=3.0) == Point(1.0, 3.0)
    assert [field.name for field in dataclasses.fields(Said)] == ["number", "text"]
    assert [field.compare for field in dataclasses.fields(Said)] == [True, False]
    assert Point.__match_args__ == ("x", "y")  # type: ignore[attr-defined]


def test_a_named_tuple_is_that_of_typing() -> None:
    assert Pair(1) == (1, ()) == TheirPair(1) and Pair(first=1, second=(2,)).length == 1
    assert Pair.of(1, 2, 3) == Pair(1, (2, 3)) and isinstance(Pair.of(1), Pair)
    assert repr(Pair(1)) == repr(TheirPair(1)).removeprefix("Their")
    assert Pair(1)._replace(second=(2,))._asdict() == {"first": 1, "second": (2,)}
    assert copy.deepcopy(Pair(1)) == pickle.loads(pickle.dumps(Pair(1))) == Pair(1)
    for name in ("_fields", "_field_defaults", "__bases__", "__doc__", "__module__"):
        assert getattr(Pair, name) == getattr(TheirPair, name), name
    assert typing.get_type_hints(Pair) == typing.get_type_hints(TheirPair)


@pytest.mark.parametrize("wrong", [lambda: Pair(), lambda: Pair(1, (), 3), lambda: Pair(1, first=1), lambda: Pair(z=1)])
def test_a_named_tuple_refuses_what_its_fields_do_not_take(wrong: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="Pair"):
        wrong()


def test_a_default_before_a_field_without_one_is_refused() -> None:
    with pytest.raises(TypeError, match="default"):

        class Wrong(NamedTuple):
            first: int = 0
            second: int
