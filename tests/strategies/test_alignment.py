"""Values of several measurements on one scale."""

import numpy as np
import pytest

from seqopt.data import Contexts, Measured, Query
from seqopt.strategies.alignment import FEWEST, Alignment

CONTEXTS = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
DOCKING, ASSAY = CONTEXTS.possible


def measured(docking: list[float], assay: list[float], noise: float | None = None) -> Measured:
    items = [Query(f"a{n}", DOCKING) for n in range(len(docking))] + [Query(f"a{n}", ASSAY) for n in range(len(assay))]
    values = np.array([*docking, *assay])
    return Measured(items, values, None if noise is None else np.full(len(values), noise), np.arange(len(values)))


def test_other_values_have_the_mean_and_spread_of_the_target_and_go_back() -> None:
    given = measured([-8.0, -6.5, -7.0, -9.5], [5.0, 7.0, 6.5], noise=0.04)
    alignment = Alignment.of(given, CONTEXTS)
    found = alignment.aligned(given)
    np.testing.assert_array_equal(found.targets[4:], given.targets[4:])
    assert found.targets[:4].mean() == pytest.approx(given.targets[4:].mean())
    assert found.targets[:4].std() == pytest.approx(given.targets[4:].std())
    assert found.noise_variance is not None
    ratio = given.targets[4:].std() / given.targets[:4].std()
    assert found.noise_variance[:4] == pytest.approx(0.04 * ratio**2)
    for value, own in zip(found.targets[:4], given.targets[:4], strict=True):
        mean, std = alignment.back(DOCKING, float(value), 0.2 * ratio)
        assert (mean, std) == (pytest.approx(own), pytest.approx(0.2))
    assert alignment.back(ASSAY, 1.0, 2.0) == (1.0, 2.0)


@pytest.mark.parametrize("docking", [[1.0] * FEWEST, [1.0, 2.0]])
def test_too_few_or_equal_values_stay(docking: list[float]) -> None:
    given = measured(docking, [5.0, 7.0, 6.5])
    np.testing.assert_array_equal(Alignment.of(given, CONTEXTS).aligned(given).targets, given.targets)


def test_offsets_of_plates_are_left_to_the_model() -> None:
    plates = Contexts.of_plates()
    items = [Query("a", {"plate": plate}) for plate in ("P1", "P1", "P1", "P2", "P2", "P2")]
    given = Measured(items, np.arange(6.0), None, np.arange(6))
    np.testing.assert_array_equal(Alignment.of(given, plates).aligned(given).targets, given.targets)
