"""What arguments of nodes are called when they get new values; what the names mean is the engine's."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple

import numpy as np

from eagle._scratch import Scratch
from eagle.errors import refusal, text
from eagle.planes import Plane

Row = Tuple[str, Optional[int], str, Any]


def param_rows(method: str, params: Any) -> list[Row]:
    """(label, index, name, number) for each entry."""
    return [
        (*_address(method, key), param_number(f"{method}: {key!r}", value)) for key, value in _items(method, params)
    ]


def plane_rows(method: str, planes: Any) -> list[Row]:
    """(label, index, name, array) for each entry."""
    rows = []
    for key, value in _items(method, planes):
        if not isinstance(value, (np.ndarray, Plane, Scratch)):
            raise refusal("WRONG_TYPE", f"{method}: {key!r}: expected an array, found {type(value).__name__}")
        rows.append((*_address(method, key), value))
    return rows


def _items(method: str, given: Any) -> list[tuple[Any, Any]]:
    if not isinstance(given, Mapping):
        raise refusal("WRONG_TYPE", f"{method}: expected a dict of values by name, found {type(given).__name__}")
    return list(given.items())


def _address(method: str, key: Any) -> tuple[str, int | None, str]:
    if isinstance(key, str):
        return "", None, text(f"{method}: name", key)
    node: Any
    node, name = key if isinstance(key, tuple) and len(key) == 2 else (None, None)
    if isinstance(name, str) and isinstance(node, str):
        return text(f"{method}: label", node), None, text(f"{method}: name", name)
    if isinstance(name, str) and hasattr(node, "__index__") and not isinstance(node, bool):
        index = int(node.__index__())
        if 0 <= index < 2**32:
            return "", index, text(f"{method}: name", name)
        raise refusal("BAD_VALUE", f"{method}: {key!r}: there is no node {index}")
    raise refusal(
        "WRONG_TYPE",
        f"{method}: expected 'name', 'node.name', ('node', 'name') or (index, 'name') as a key, found {key!r}",
    )


def param_number(where: str, value: Any) -> int | float:
    """The value of a Param as the C++ layer takes it: an int of 64 bits, else a float."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise refusal(
            "WRONG_TYPE", f"{where}: a Param takes one number, found {type(value).__name__}; pass an int or float"
        )
    if isinstance(value, (float, np.floating)):
        return float(value)
    number = int(value)
    if -(2**63) <= number < 2**63:
        return number
    try:
        return float(number)
    except OverflowError:
        raise refusal(
            "BAD_VALUE",
            f"{where}: expected a number within the range of float64, found an integer of {number.bit_length()} bits",
        ) from None
