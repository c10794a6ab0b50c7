"""Predicates of users: what they raise says for which string."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from seqopt.spaces import CandidateSet, CodonSpace, GrammarSpace, StringSpace


def broken(string: str) -> bool:
    raise ZeroDivisionError("division by zero")


def drawn(space: StringSpace | CodonSpace | GrammarSpace) -> None:
    space.sample(3, np.random.default_rng(0))


@pytest.mark.parametrize(
    "use",
    [
        lambda: drawn(StringSpace("01", 4, accept=broken)),
        lambda: drawn(CodonSpace("MA", accept=broken)),
        lambda: drawn(GrammarSpace("arithmetic", 1, 5, accept=broken)),
        lambda: CandidateSet(["CC", "CO"], kind="text", accept=broken),
        lambda: StringSpace("01", 4, accept=broken).left_out("0101"),
    ],
)
def test_an_exception_of_accept_names_the_string(use: Callable[[], object]) -> None:
    with pytest.raises(ZeroDivisionError, match="division by zero") as found:
        use()
    (note,) = found.value.__notes__
    assert note.startswith("raised by accept() for '")
    assert note.endswith("', to which it must answer True or False")
