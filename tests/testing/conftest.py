"""Runs suites on parts that are broken on purpose."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest


def failed_tests(suite: Any, **fixtures: Callable[[], Any]) -> set[str]:
    """The tests of a suite that fail; parametrised ones with every value."""
    failed = set()
    for name in dir(suite):
        if not name.startswith("test_"):
            continue
        test = getattr(suite, name)
        names = test.__code__.co_varnames[1 : test.__code__.co_argcount]
        marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
        for values in itertools.product(*(mark.args[1] for mark in marks)):
            given = dict(zip((mark.args[0] for mark in marks), values, strict=True))
            given |= {key: fixtures[key]() for key in names if key not in given}
            try:
                test(suite(), **given)
            except pytest.skip.Exception:
                continue
            # pytest.raises fails with an exception of its own, which is not an Exception.
            except (Exception, pytest.fail.Exception):
                failed.add(name)
    return failed


@pytest.fixture
def failures() -> Callable[..., set[str]]:
    """See `failed_tests`."""
    return failed_tests
