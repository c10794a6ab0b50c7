"""The conformance suites of surrogates: ours pass them, and each broken one fails where it is broken."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from seqopt.errors import InputError, ModelError
from seqopt.kernels import NgramKernel
from seqopt.models import FullyBayesianStringGP, StringGP, StringSurrogate, resolve_surrogate
from seqopt.posteriors import DensePosterior, Posterior
from seqopt.spaces import CandidateSet
from seqopt.testing.posteriors import PosteriorConformance
from seqopt.testing.surrogates import (
    CensoredSurrogateConformance,
    JointSurrogateConformance,
    NoiseAwareSurrogateConformance,
    PoolSurrogateConformance,
    StringSurrogateConformance,
    SurrogateConformance,
)

WORDS = ["".join(letters) for letters in itertools.product("ab", repeat=4)]
PROTEINS = ["".join(letters) for letters in itertools.product("DW", repeat=4)]
MOLECULES = ["CCO", "CCN", "CCC", "CCCl", "CCBr", "c1ccccc1", "CC(C)O", "CCCO", "CNC", "COC", "CC=O", "OCCO", "CCCN"]


class _AllSuites(
    CensoredSurrogateConformance,
    JointSurrogateConformance,
    NoiseAwareSurrogateConformance,
    PoolSurrogateConformance,
    StringSurrogateConformance,
):
    """What a Gaussian process of ours offers."""


@pytest.mark.parametrize("name", ["ssk", "ssk-bayes", "ngrams", "one-hot", "hamming"])
class TestOfSymbols(_AllSuites):
    @pytest.fixture
    def make_surrogate(self, name: str) -> Callable[[], Any]:
        return lambda: _quick(resolve_surrogate(name, CandidateSet(WORDS, kind="text")))


class TestBound(_AllSuites):
    """As the optimiser binds one to its pool."""

    @pytest.fixture
    def make_surrogate(self) -> Callable[[], Any]:
        def make() -> StringGP:
            surrogate = StringGP(NgramKernel(), restarts=1)
            surrogate.bind(CandidateSet(WORDS, kind="text"))
            return surrogate

        return make


class TestOfMolecules(_AllSuites):
    kind = "molecule"

    @pytest.fixture
    def make_surrogate(self) -> Callable[[], Any]:
        return lambda: _quick(resolve_surrogate("minmax", CandidateSet(MOLECULES, kind="molecule")))

    @pytest.fixture
    def strings(self) -> list[str]:
        return list(CandidateSet(MOLECULES, kind="molecule").keys)


class TestOfResidues(_AllSuites):
    kind = "protein"

    @pytest.fixture
    def make_surrogate(self) -> Callable[[], Any]:
        return lambda: _quick(resolve_surrogate("blosum62", CandidateSet(PROTEINS, kind="protein")))

    @pytest.fixture
    def strings(self) -> list[str]:
        return PROTEINS


@pytest.mark.parametrize("make", [StringGP, FullyBayesianStringGP])
class TestPosteriorAtStrings(PosteriorConformance):
    @pytest.fixture
    def posterior(self, make: Callable[[], StringSurrogate]) -> Posterior:
        return _fitted(make).conditioned().at(WORDS[6:])


@pytest.mark.parametrize("make", [StringGP, FullyBayesianStringGP])
class TestPosteriorOverAPool(PosteriorConformance):
    @pytest.fixture
    def posterior(self, make: Callable[[], Any]) -> Posterior:
        return _fitted(make).pool_posterior(CandidateSet(WORDS, kind="text"), pending=[WORDS[12]])


def _quick(surrogate: Any) -> Any:
    surrogate.restarts = 1
    return surrogate


@functools.cache
def _fitted(make: Callable[[], Any]) -> Any:
    surrogate = make()
    surrogate.fit(WORDS[:9], [word.count("ab") + 0.2 * index for index, word in enumerate(WORDS[:9])], rng=_rng())
    return surrogate


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


class _Linear:
    """Bayesian linear regression on counts of letters and on the first one; broken as a subclass says."""

    takes_noise_variance = True

    def __init__(self) -> None:
        self.fits = 0
        self.data: Any = None

    def features(self, strings: Sequence[str]) -> Any:
        rows = [[1.0, s.count("a"), s.startswith("a"), s.endswith("a"), s.count("ab")] for s in strings]
        return np.array(rows, dtype=np.float64).reshape(-1, 5)

    def check(self, strings: Sequence[str], values: Any, noise: Any) -> None:
        if len(strings) != len(values) or not len(strings) or not np.isfinite(values).all():
            raise InputError("one finite value for each string")
        if len(noise) != len(strings) or not (np.asarray(noise) >= 0).all():
            raise InputError("one variance for each string")

    def fit(self, strings: Sequence[str], values: Any, *, rng: Any, noise_variance: Any = None) -> None:
        noise = np.zeros(len(strings)) if noise_variance is None else np.asarray(noise_variance)
        self.check(strings, values, noise)
        self.fits += 1
        values, x = np.asarray(values, dtype=np.float64), self.features(strings)
        weight = 1 / (0.01 + noise)
        self.offset = float(np.average(values, weights=weight))
        self.spread = np.linalg.inv(np.eye(5) + (x * weight[:, None]).T @ x)
        self.mean = self.spread @ (x * weight[:, None]).T @ (values - self.offset)
        self.data = list(strings)

    @property
    def fitted(self) -> Any:
        if self.data is None:
            raise ModelError("not fitted")
        return self.data

    def posterior(self, strings: Sequence[str]) -> Any:
        assert self.fitted
        x = self.features(strings)
        return torch.from_numpy(self.offset + x @ self.mean), torch.from_numpy(x @ self.spread @ x.T)

    def predict(self, strings: Sequence[str]) -> Any:
        mean, covariance = self.posterior(strings)
        return mean.numpy(), covariance.diagonal().sqrt().numpy()

    def covariance(self, a: Sequence[str], b: Sequence[str]) -> Any:
        return torch.from_numpy(self.features(a) @ self.spread @ self.features(b).T)

    def sample(self, strings: Sequence[str], n: int, rng: np.random.Generator) -> Any:
        x = self.features(strings)
        weights = rng.standard_normal((n, 5)) @ np.linalg.cholesky(self.spread).T + self.mean
        return torch.from_numpy(self.offset + weights @ x.T)

    def state_dict(self) -> dict[str, Any]:
        return {"fits": self.fits}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.fits = state["fits"]

    def conditioned(self, pending: Sequence[Any] = ()) -> Any:
        return _Process(self, list(pending))

    def pool_posterior(self, pool: Any, indices: Any = None, pending: Sequence[Any] = ()) -> Any:
        keys = list(pool.keys) if indices is None else [pool.keys[int(index)] for index in indices]
        return self.conditioned(pending).at(keys)

    def untransform(self, mean: Any, variance: Any) -> Any:
        return self.offset + np.asarray(mean), np.sqrt(np.asarray(variance))


class _Process:
    def __init__(self, model: Any, pending: list[str]) -> None:
        self.model, self.pending = model, pending

    def at(self, items: Sequence[str]) -> DensePosterior:
        every = [*items, *self.pending, *self.model.fitted]
        mean, covariance = self.model.posterior(every)
        posterior = DensePosterior(mean - self.model.offset, covariance, 0.01)
        for index in range(len(self.pending)):
            posterior = posterior.given(len(items) + index)
        observed, n = slice(len(items) + len(self.pending), None), len(items)
        return DensePosterior(
            posterior.moments.mean[:n],
            covariance[:n, :n],
            0.01,
            conditional_covariance=posterior._conditional[:n, :n],
            conditioned_mean=posterior.conditioned_mean,
            observed_mean=posterior.moments.mean[observed],
            observed_covariance=covariance[observed, observed],
            cross_covariance=covariance[observed, :n],
        )

    def given(self, item: str) -> Any:
        return _Process(self.model, [*self.pending, item])

    def best_observed_keys(self, n: int) -> list[str]:
        keys = self.model.fitted
        return [keys[index] for index in np.argsort(-self.model.predict(keys)[0], kind="stable")[:n]]


class _OneObject(_Linear):
    def predict(self, strings: Sequence[str]) -> Any:
        raise NotImplementedError

    fit = None  # type: ignore[assignment]


class _Unfitted(_Linear):
    def predict(self, strings: Sequence[str]) -> Any:
        return super().predict(strings) if self.data else (np.zeros(len(strings)), np.ones(len(strings)))


class _Columns(_Linear):
    def predict(self, strings: Sequence[str]) -> Any:
        mean, std = super().predict(strings)
        return mean[:, None], std[:, None]


class _Relative(_Linear):
    def predict(self, strings: Sequence[str]) -> Any:
        mean, std = super().predict(strings)
        return mean - mean.mean(), std


class _Global(_Linear):
    def fit(self, strings: Sequence[str], values: Any, *, rng: Any, noise_variance: Any = None) -> None:
        super().fit(strings, values, rng=rng, noise_variance=noise_variance)
        self.mean = self.mean + 1e-3 * torch.randn(5).numpy()


class _Standardises(_Linear):
    def fit(self, strings: Sequence[str], values: Any, *, rng: Any, noise_variance: Any = None) -> None:
        super().fit(strings, values, rng=rng, noise_variance=noise_variance)
        if isinstance(values, np.ndarray):
            values -= values.mean()


class _Counts(_Linear):
    """Counts how often it was asked."""

    def predict(self, strings: Sequence[str]) -> Any:
        self.fits += 1
        return super().predict(strings)


class _LastCounts(_Linear):
    def fit(self, strings: Sequence[str], values: Any, *, rng: Any, noise_variance: Any = None) -> None:
        super().fit(strings, values, rng=rng, noise_variance=noise_variance)
        self.offset = float(values[-1])


class _Remembers(_Linear):
    """Each fit depends on the one before, which its state does not hold."""

    before = 0.0

    def fit(self, strings: Sequence[str], values: Any, *, rng: Any, noise_variance: Any = None) -> None:
        super().fit(strings, values, rng=rng, noise_variance=noise_variance)
        self.mean = self.mean + 1e-3 * self.before
        self.before = float(self.mean[0])


class _Pickled(_Linear):
    def state_dict(self) -> dict[str, Any]:
        return {"fits": np.array(self.fits)}


class _Elsewhere(_Linear):
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "data": None}


class _Fills(_Linear):
    """Puts what it learns into arrays that a copy shares."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = np.zeros(5)

    def fit(self, strings: Sequence[str], values: Any, *, rng: Any, noise_variance: Any = None) -> None:
        super().fit(strings, values, rng=rng, noise_variance=noise_variance)
        self.kept[:] = self.mean
        self.mean = self.kept


class _Credulous(_Linear):
    def check(self, strings: Sequence[str], values: Any, noise: Any) -> None:
        if len(strings) != len(values) or not len(strings):
            raise ValueError("one value for each string")


class _Tensors(_Linear):
    @property
    def hyperparameters(self) -> dict[str, Any]:
        return {"mean": torch.zeros(1)}


class _Deaf(_Linear):
    """Knows of noise, and makes nothing of it."""

    def fit(self, strings: Sequence[str], values: Any, *, rng: Any, noise_variance: Any = None) -> None:
        super().fit(strings, values, rng=rng)


class _Unaware(_Linear):
    takes_noise_variance = False


class _DeafToLimits(StringGP):
    def fit(self, strings: Sequence[str], values: Any, *, censored: Any = None, **options: Any) -> None:
        super().fit(strings, values, **options)


class _UnawareOfLimits(StringGP):
    takes_censored = False


class _AddsNoise(_Linear):
    def fit(self, strings: Sequence[str], values: Any, *, rng: Any, noise_variance: Any = None) -> None:
        known = None if noise_variance is None else np.asarray(noise_variance) + 1.0
        super().fit(strings, values, rng=rng, noise_variance=known)


class _Noisy(_Linear):
    """Adds noise to the joint posterior."""

    def posterior(self, strings: Sequence[str]) -> Any:
        mean, covariance = super().posterior(strings)
        return mean, covariance + 0.1 * torch.eye(len(mean), dtype=torch.float64)

    def predict(self, strings: Sequence[str]) -> Any:
        mean, covariance = super().posterior(strings)
        return mean.numpy(), covariance.diagonal().sqrt().numpy()


class _Prior(_Linear):
    def covariance(self, a: Sequence[str], b: Sequence[str]) -> Any:
        return torch.from_numpy(self.features(a) @ self.features(b).T)


class _Independent(_Linear):
    def sample(self, strings: Sequence[str], n: int, rng: np.random.Generator) -> Any:
        mean, std = self.predict(strings)
        return torch.from_numpy(mean + std * rng.standard_normal((n, len(strings))))


class _OtherUnits(_Linear):
    def untransform(self, mean: Any, variance: Any) -> Any:
        return np.asarray(mean), np.sqrt(np.asarray(variance))


class _Appends(_Process):
    def given(self, item: str) -> Any:
        self.pending.append(item)
        return self


class _GivenInPlace(_Linear):
    def conditioned(self, pending: Sequence[Any] = ()) -> Any:
        return _Appends(self, list(pending))


class _LastPending(_Linear):
    """Sees the last of the pending strings only."""

    def conditioned(self, pending: Sequence[Any] = ()) -> Any:
        return _Process(self, list(pending)[-1:])


class _Worst(_Process):
    def best_observed_keys(self, n: int) -> list[str]:
        return super().best_observed_keys(100)[::-1][:n]


class _WorstFirst(_Linear):
    def conditioned(self, pending: Sequence[Any] = ()) -> Any:
        return _Worst(self, list(pending))


class _Stale(_Linear):
    """Keeps the posterior over a pool beyond the next fit."""

    kept: Any = None

    def pool_posterior(self, pool: Any, indices: Any = None, pending: Sequence[Any] = ()) -> Any:
        if indices is not None or pending:
            return super().pool_posterior(pool, indices, pending)
        self.kept = self.kept or super().pool_posterior(pool)
        return self.kept


class _Misplaced(_Linear):
    def pool_posterior(self, pool: Any, indices: Any = None, pending: Sequence[Any] = ()) -> Any:
        return super().pool_posterior(pool, None if indices is None else np.sort(indices), pending)


class _IgnoresPending(_Linear):
    def pool_posterior(self, pool: Any, indices: Any = None, pending: Sequence[Any] = ()) -> Any:
        return super().pool_posterior(pool, indices)


class _Closed(_Linear):
    conditioned = pool_posterior = None  # type: ignore[assignment]


BROKEN: list[tuple[type, type, str]] = [
    (SurrogateConformance, _OneObject, "it_is_a_surrogate"),
    (SurrogateConformance, _Unfitted, "when_it_is_not_fitted"),
    (SurrogateConformance, _Columns, "finite_numbers"),
    (SurrogateConformance, _Relative, "alone_and_among_others"),
    (SurrogateConformance, _Global, "the_generator_alone"),
    (SurrogateConformance, _Standardises, "left_as_they_were"),
    (SurrogateConformance, _Counts, "predicting_changes_nothing"),
    (SurrogateConformance, _LastCounts, "the_order_of_the_data"),
    (SurrogateConformance, _Remembers, "a_restored_surrogate"),
    (SurrogateConformance, _Pickled, "a_restored_surrogate"),
    (SurrogateConformance, _Elsewhere, "copies_resume"),
    (SurrogateConformance, _Fills, "a_shallow_copy"),
    (SurrogateConformance, _Credulous, "cannot_be_fitted"),
    (SurrogateConformance, _Tensors, "named_numbers"),
    (NoiseAwareSurrogateConformance, _Unaware, "it_says_that"),
    (NoiseAwareSurrogateConformance, _AddsNoise, "zeros_mean"),
    (NoiseAwareSurrogateConformance, _Deaf, "little_precision"),
    (NoiseAwareSurrogateConformance, _Deaf, "cannot_be_is_refused"),
    (JointSurrogateConformance, _Noisy, "the_joint_posterior_has"),
    (JointSurrogateConformance, _Prior, "covariances_are_those"),
    (JointSurrogateConformance, _Independent, "draws_have_the_moments"),
    (StringSurrogateConformance, _Closed, "the_posterior_has"),
    (StringSurrogateConformance, _OtherUnits, "the_posterior_has"),
    (StringSurrogateConformance, _GivenInPlace, "a_pending_string"),
    (StringSurrogateConformance, _LastPending, "the_order_of_pending"),
    (StringSurrogateConformance, _WorstFirst, "the_best_observed"),
    (PoolSurrogateConformance, _Closed, "after_every_fit"),
    (PoolSurrogateConformance, _Stale, "after_every_fit"),
    (PoolSurrogateConformance, _Misplaced, "a_part_of_the_pool"),
    (PoolSurrogateConformance, _IgnoresPending, "pending_and_chosen"),
]
SUITES = list(dict.fromkeys(suite for suite, _, _ in BROKEN))


@pytest.mark.slow
def test_a_surrogate_that_makes_nothing_of_limits_fails(failures: Callable[..., set[str]]) -> None:
    found = {
        broken: failures(
            CensoredSurrogateConformance,
            make_surrogate=lambda broken=broken: lambda: broken(NgramKernel(), restarts=1),
            strings=lambda: list(WORDS),
        )
        for broken in (_DeafToLimits, _UnawareOfLimits)
    }
    assert found[_DeafToLimits] == {
        "test_limits_that_cannot_be_are_refused",
        "test_values_are_expected_beyond_limits_that_others_contradict",
    }
    assert found[_UnawareOfLimits] == {"test_it_says_that_it_takes_limits"}


@pytest.mark.parametrize("suite", SUITES)
def test_each_broken_surrogate_fails_where_it_is_broken(suite: type, failures: Callable[..., set[str]]) -> None:
    caught: set[str] = set()
    for those, broken, where in [*BROKEN, (suite, _Linear, "")]:
        if those is not suite:
            continue
        failed = failures(suite, make_surrogate=lambda broken=broken: broken, strings=lambda: list(WORDS))
        if broken is _Linear:
            assert failed == set()
        else:
            assert any(where in name for name in failed), (broken, failed)
        caught |= failed
    assert caught >= {name for name in vars(suite) if name.startswith("test_")}
