"""Runs a suite where there is no test file: in a notebook, or in a script that looks at a part."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest


def failures(suite: type, **fixtures: Callable[[], object]) -> dict[str, str]:
    """The tests of a suite that a part fails, and why; empty if it passes.

    Every test gets fixtures of its own. In a test file inherit the suite instead: pytest shows where a test fails.

    Args:
        suite: A suite of `seqopt.testing`, or a class that inherits one.
        fixtures: Functions without arguments that make the fixtures, by name. Those left out are the suite's own.

    Returns:
        For each test that fails its name and what it says.

    Example:
        >>> from seqopt.spaces import StringSpace
        >>> from seqopt.testing.spaces import EvolvableSpaceConformance
        >>> failures(EvolvableSpaceConformance, space=lambda: StringSpace("01", 8))
        {}
    """
    found: dict[str, str] = {}
    for name in dir(suite):
        if not name.startswith("test_"):
            continue
        test = getattr(suite, name)
        marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
        names = [mark.args[0] for mark in marks]
        for values in itertools.product(*(mark.args[1] for mark in marks)):
            given = dict(zip(names, values, strict=True))
            instance = suite()
            try:
                wanted = [each for each in inspect.signature(test).parameters if each not in ("self", *names)]
                test(instance, **given, **{each: _fixture(instance, each, fixtures) for each in wanted})
            except pytest.skip.Exception:
                continue
            # pytest.raises fails with an exception of its own, which is not an Exception.
            except (Exception, pytest.fail.Exception) as error:
                found.setdefault(name, f"{type(error).__name__}: {error}")
    return found


def _fixture(instance: object, name: str, fixtures: Mapping[str, Callable[[], object]]) -> Any:
    if name in fixtures:
        return fixtures[name]()
    definition: Any = inspect.getattr_static(type(instance), name)
    return definition.__wrapped__(instance)
