"""Parameters learned from a part of the values, wholly or at first."""

import numpy as np
import pytest
import torch

from seqopt.errors import InputError
from seqopt.models import StringGP, fitting, resolve_surrogate
from seqopt.models.fitting import PointEstimate
from seqopt.models.marginal_likelihood import DenseMarginalLogLikelihood
from seqopt.spaces import CandidateSet

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
    ours = values.mean() + values.std(ddof=1) * gp.hyperparameters["mean"]
    assert ours == pytest.approx(VALUES.mean() + VALUES.std(ddof=1) * plain.hyperparameters["mean"], rel=1e-3)


def test_equal_values_in_the_part_leave_the_parameters_as_they_were() -> None:
    values = np.zeros(60)
    chosen = np.sort(np.random.default_rng(1).choice(60, size=30, replace=False))
    values[np.setdiff1d(np.arange(60), chosen)[0]] = 1.0
    before = StringGP(restarts=1).kernel.match_decay.item()
    assert fitted(values, 30).hyperparameters["match_decay"] == pytest.approx(before)


def test_a_fit_needs_two_strings() -> None:
    with pytest.raises(InputError, match="fit_size is 1"):
        StringGP(fit_size=1)


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Numbers of strings and of starts of each optimisation, where more than 45 strings are surveyed on 40."""
    seen: list[tuple[int, int]] = []
    original = PointEstimate._best_of_restarts

    def counting(self, likelihood, start, rng, restarts, *rest):
        seen.append((len(likelihood.model.train_targets), restarts))
        return original(self, likelihood, start, rng, restarts, *rest)

    monkeypatch.setattr(PointEstimate, "_best_of_restarts", counting)
    monkeypatch.setattr(fitting, "SURVEYED", 45)
    monkeypatch.setattr(fitting, "SURVEY", 40)
    return seen


def log_posterior(gp: StringGP) -> float:
    likelihood = DenseMarginalLogLikelihood(gp.model.likelihood, gp.model)
    gp.model.train()
    with torch.no_grad():
        reached = float(likelihood(gp.model(*gp.model.train_inputs), gp.model.train_targets))
    gp.model.eval()
    return reached


@pytest.mark.slow
def test_many_strings_are_surveyed_first_and_the_fit_is_as_good(
    starts: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    surveyed = StringGP(restarts=3)
    surveyed.fit(STRINGS, VALUES, rng=np.random.default_rng(1))
    assert starts == [(40, 3), (60, 1)]
    monkeypatch.setattr(fitting, "SURVEYED", 60)
    plain = StringGP(restarts=3)
    plain.fit(STRINGS, VALUES, rng=np.random.default_rng(1))
    assert starts[2:] == [(60, 3)]
    assert log_posterior(surveyed) == pytest.approx(log_posterior(plain), abs=0.02)


def test_the_survey_is_of_the_strings_that_are_fitted(starts: list[tuple[int, int]]) -> None:
    gp = StringGP(restarts=2, fit_size=50)
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(1))
    assert starts == [(40, 2), (50, 1)]
    starts.clear()
    gp.fit(STRINGS, VALUES, rng=np.random.default_rng(1), full=False)
    assert starts == [(50, 1)]


def test_a_survey_of_equal_values_is_left_out(starts: list[tuple[int, int]]) -> None:
    values = np.zeros(60)
    chosen = np.random.default_rng(1).choice(60, size=40, replace=False)
    values[np.setdiff1d(np.arange(60), chosen)] = 1.0
    StringGP(restarts=2).fit(STRINGS, values, rng=np.random.default_rng(1))
    assert starts == [(60, 2)]


def test_kernels_that_cost_little_are_not_surveyed(starts: list[tuple[int, int]]) -> None:
    surrogate = resolve_surrogate("one-hot", CandidateSet(STRINGS))
    surrogate.fit(STRINGS, VALUES, rng=np.random.default_rng(1))
    assert [count for count, _ in starts] == [60]


def test_parameters_learned_from_a_part_stay_within_their_bounds_whatever_the_others_are() -> None:
    values = VALUES.copy()
    chosen = np.sort(np.random.default_rng(1).choice(60, size=30, replace=False))
    values[np.setdiff1d(np.arange(60), chosen)[0]] = 1e12
    gp = fitted(values, 30)
    assert gp.hyperparameters["outputscale"] == pytest.approx(fitting.SCALE_BOUNDS[0])
    assert gp.hyperparameters["noise_variance"] == pytest.approx(fitting.NOISE_BOUNDS[0])
    assert np.isfinite(gp.predict(STRINGS)).all()
