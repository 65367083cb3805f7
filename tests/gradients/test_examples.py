"""The examples in the documentation of the faces, with the packages that they are faces of."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_examples_of_the_documentation_run(request: pytest.FixtureRequest, name: str) -> None:
    request.getfixturevalue(name)
    failed, _ = doctest.testmod(importlib.import_module(f"eagle.frameworks.{name}"))
    assert failed == 0
