"""Parameters learned from a part of the values."""

import numpy as np
import pytest

from seqopt.errors import InputError
from seqopt.models import StringGP

RNG = np.random.default_rng(0)
STRINGS = ["".join(RNG.choice(list("ACGT"), 10)) for _ in range(60)]
VALUES = np.array([string.count("A") - string.count("GC") for string in STRINGS], dtype=float)


def fitted(values: np.ndarray, fit_size: int) -> StringGP:
    gp = StringGP(restarts=1, fit_size=fit_size)
    gp.fit(STRINGS, values, rng=np.random.default_rng(1))
    return gp


def test_the_model_is_conditioned_on_all_values_whatever_it_learned_from() -> None:
    gp = fitted(VALUES, 30)
    assert len(gp.model.train_targets) == 60
    assert np.abs(gp.predict(STRINGS)[0] - VALUES).max() < 0.5
    whole = fitted(VALUES, 60)
    assert gp.hyperparameters != whole.hyperparameters
    assert whole.hyperparameters == fitted(VALUES, 1000).hyperparameters


def test_what_was_learned_keeps_its_unit_where_the_others_lie_far_off() -> None:
    values = VALUES.copy()
    chosen = np.sort(np.random.default_rng(1).choice(60, size=30, replace=False))
    (apart,) = np.setdiff1d(np.arange(60), chosen)[:1]
    plain = fitted(VALUES, 30)
    values[apart] = 1000.0
    gp = fitted(values, 30)
    # Noise and scale were learned from values that are the same in both.
    for name in ("outputscale", "noise_variance"):
        ours = gp.hyperparameters[name] * values.var(ddof=1)
        expected = plain.hyperparameters[name] * VALUES.var(ddof=1)
        assert ours == pytest.approx(expected, rel=1e-3) or gp.hyperparameters[name] == pytest.approx(1e-4)


def test_equal_values_in_the_part_leave_the_parameters_as_they_were() -> None:
    values = np.zeros(60)
    chosen = np.sort(np.random.default_rng(1).choice(60, size=30, replace=False))
    values[np.setdiff1d(np.arange(60), chosen)[0]] = 1.0
    before = StringGP(restarts=1).kernel.match_decay.item()
    assert fitted(values, 30).hyperparameters["match_decay"] == pytest.approx(before)


def test_a_fit_needs_two_strings() -> None:
    with pytest.raises(InputError, match="fit_size is 1"):
        StringGP(fit_size=1)
