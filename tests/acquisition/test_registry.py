"""What holds for every acquisition function by name."""

from __future__ import annotations

import pytest

from seqopt.acquisition import ACQUISITIONS, GIBBON, resolve_acquisition
from seqopt.errors import InputError


def test_objects_pass_through() -> None:
    acquisition = GIBBON(num_samples=3)
    assert resolve_acquisition(acquisition) is acquisition


@pytest.mark.parametrize("wrong", ["ei", "", GIBBON, 3])
def test_what_is_unknown_is_refused_with_the_names(wrong: object) -> None:
    with pytest.raises(InputError, match=r"gibbon, mes, mumbo, logei, .* scorebo, sal, .*mean, hits, random"):
        resolve_acquisition(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_each_is_found_by_the_name_that_it_bears(name: str) -> None:
    assert resolve_acquisition(name).name == name
