"""What strategies and searches rely on in a surrogate."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
import torch

from seqopt.errors import InputError, SeqoptError
from seqopt.models import (
    CensoredSurrogate,
    ConditionedProcess,
    JointSurrogate,
    NoiseAwareSurrogate,
    PoolSurrogate,
    StringSurrogate,
    Surrogate,
    unsupported,
)
from seqopt.posteriors import Posterior
from seqopt.spaces import CandidateSet

FloatArray = npt.NDArray[np.floating]


class SurrogateConformance:
    """Tests of a `seqopt.models.Surrogate`: inherit them, and override the fixture ``make_surrogate``.

    The strings are words of four letters out of a and b; override the fixture ``strings`` for a surrogate of others.

    Attributes:
        rtol: Difference that is allowed between two ways to the same prediction, in standard deviations of the values.
        permutation_rtol: The same, between fits to the same data in another order; more for fits that end sooner.

    Example:
        >>> from seqopt.models import StringGP
        >>> class TestMine(SurrogateConformance):
        ...     @pytest.fixture
        ...     def make_surrogate(self) -> Callable[[], Surrogate]:
        ...         return lambda: StringGP(restarts=1)
    """

    rtol: float = 1e-6
    permutation_rtol: float = 1e-2

    @pytest.fixture
    def make_surrogate(self) -> Callable[[], Surrogate]:
        """A function that makes a new surrogate, not fitted, always with the same settings."""
        raise NotImplementedError("override the fixture make_surrogate, so that it returns a function that makes one")

    @pytest.fixture
    def strings(self) -> list[str]:
        """At least 12 different strings that the surrogate can take, as keys."""
        return ["".join(letters) for letters in itertools.product("ab", repeat=4)]

    def values(self, strings: Sequence[str]) -> list[float]:
        """Values of the strings, at least two different ones among any three; override it where they are all equal."""
        return [sum(ord(letter) % 7 / (1 + place) for place, letter in enumerate(string)) for string in strings]

    def test_it_is_a_surrogate(self, make_surrogate: Callable[[], Surrogate], strings: list[str]) -> None:
        surrogate = make_surrogate()
        assert isinstance(surrogate, Surrogate), f"{type(surrogate).__name__} lacks methods of seqopt.models.Surrogate"
        assert not isinstance(surrogate, type), f"make_surrogate returned the class {surrogate!r}, expected an object"
        assert make_surrogate() is not surrogate, "make_surrogate returned the same object twice"
        assert len(set(strings)) == len(strings) >= 12, "the fixture strings must return 12 different strings or more"
        assert unsupported(surrogate, strings) == {}, "the fixture strings must return strings that it can take"

    def test_it_says_when_it_is_not_fitted(self, make_surrogate: Callable[[], Surrogate], strings: list[str]) -> None:
        with pytest.raises(SeqoptError):
            make_surrogate().predict(strings)

    def test_predictions_are_finite_numbers_for_each_string(
        self, make_surrogate: Callable[[], Surrogate], strings: list[str]
    ) -> None:
        surrogate = self._fitted(make_surrogate, strings)
        for asked in (strings, strings[:1], strings[::-1]):
            self._checked(surrogate, asked)

    def test_a_string_is_predicted_alike_alone_and_among_others(
        self, make_surrogate: Callable[[], Surrogate], strings: list[str]
    ) -> None:
        surrogate = self._fitted(make_surrogate, strings)
        together = np.stack(self._checked(surrogate, strings))
        alone = np.concatenate([np.stack(self._checked(surrogate, [string])) for string in strings], axis=1)
        self._same(alone, together, strings, "depend on what else is asked")
        twice = np.stack(self._checked(surrogate, [*strings[:3], *strings[:3]]))
        self._same(twice[:, 3:], twice[:, :3], strings, "differ where a string stands twice")

    def test_the_generator_alone_decides(self, make_surrogate: Callable[[], Surrogate], strings: list[str]) -> None:
        found = []
        for global_seed in (1, 2):
            torch.manual_seed(global_seed)
            found.append(np.stack(self._fitted(make_surrogate, strings).predict(strings)))
        assert np.array_equal(found[0], found[1]), "two fits with equal generators predict differently"

    def test_the_data_are_left_as_they_were(self, make_surrogate: Callable[[], Surrogate], strings: list[str]) -> None:
        given, values = list(strings), np.array(self.values(strings))
        before = values.copy()
        surrogate = make_surrogate()
        surrogate.fit(given, values, rng=_rng())
        surrogate.predict(given)
        assert given == strings, "the strings have been changed"
        assert np.array_equal(values, before), "the values have been changed"

    def test_predicting_changes_nothing(self, make_surrogate: Callable[[], Surrogate], strings: list[str]) -> None:
        surrogate = self._fitted(make_surrogate, strings)
        state = json.dumps(surrogate.state_dict())
        first = np.stack(surrogate.predict(strings))
        assert np.array_equal(np.stack(surrogate.predict(strings)), first), "two predictions differ"
        assert json.dumps(surrogate.state_dict()) == state, "to predict has changed the state"

    def test_the_order_of_the_data_does_not_matter(
        self, make_surrogate: Callable[[], Surrogate], strings: list[str]
    ) -> None:
        count = len(strings) - 4
        one, other = make_surrogate(), make_surrogate()
        one.fit(strings[:count], self.values(strings[:count]), rng=_rng())
        order = [strings[index] for index in _rng(3).permutation(count)]
        other.fit(order, self.values(order), rng=_rng())
        found, expected = np.stack(other.predict(strings)), np.stack(one.predict(strings))
        self._same(found, expected, strings, "depend on the order of the data", self.permutation_rtol)

    @pytest.mark.parametrize("fits", [0, 1, 2])
    def test_a_restored_surrogate_resumes(
        self, make_surrogate: Callable[[], Surrogate], strings: list[str], fits: int
    ) -> None:
        one, count = make_surrogate(), len(strings) - 6
        for fit in range(fits):
            one.fit(strings[: count + fit], self.values(strings[: count + fit]), rng=_rng(fit))
        state = one.state_dict()
        written = json.dumps(state)
        assert json.dumps(json.loads(written)) == written
        other = make_surrogate()
        other.load_state_dict(json.loads(written))
        assert json.dumps(other.state_dict()) == written, "a restored surrogate has another state"
        for step in range(2):
            size = count + 3 + step
            for surrogate in (one, other):
                surrogate.fit(strings[:size], self.values(strings[:size]), rng=_rng(10 + step))
            assert np.array_equal(np.stack(other.predict(strings)), np.stack(one.predict(strings))), (
                f"fit {step + 1} after a state was restored differs from that of the original"
            )

    def test_copies_resume(self, make_surrogate: Callable[[], Surrogate], strings: list[str]) -> None:
        surrogate, count = make_surrogate(), len(strings) - 4
        for fit in range(2):
            copies = [copy.deepcopy(surrogate), pickle.loads(pickle.dumps(surrogate))]
            if fit:
                expected = np.stack(surrogate.predict(strings))
                for copied in copies:
                    assert np.array_equal(np.stack(copied.predict(strings)), expected), "a copy predicts differently"
            for each in (surrogate, *copies):
                each.fit(strings[: count + fit], self.values(strings[: count + fit]), rng=_rng(fit))
            expected = np.stack(surrogate.predict(strings))
            for copied in copies:
                assert np.array_equal(np.stack(copied.predict(strings)), expected), "a copy is fitted differently"

    def test_a_shallow_copy_is_fitted_without_a_trace(
        self, make_surrogate: Callable[[], Surrogate], strings: list[str]
    ) -> None:
        # `Optimizer.predict` and `recommend` fit a shallow copy to what has come since the last batch.
        surrogate = self._fitted(make_surrogate, strings)
        state, expected = json.dumps(surrogate.state_dict()), np.stack(surrogate.predict(strings))
        copied = copy.copy(surrogate)
        copied.fit(strings[::-1], self.values(strings), rng=_rng(5))
        copied.predict(strings)
        assert json.dumps(surrogate.state_dict()) == state, "the fit of a copy has changed the state of the original"
        assert np.array_equal(np.stack(surrogate.predict(strings)), expected), (
            "the fit of a copy has changed predictions of the original: a fit must replace what is kept, not fill it"
        )

    def test_data_that_cannot_be_fitted_are_refused(
        self, make_surrogate: Callable[[], Surrogate], strings: list[str]
    ) -> None:
        values = self.values(strings)
        cases: list[tuple[str, list[str], list[float]]] = [
            ("fewer values than strings", strings, values[:-1]),
            ("fewer strings than values", strings[:-1], values),
            ("a value that is not a number", strings, [float("nan"), *values[1:]]),
            ("an infinite value", strings, [float("inf"), *values[1:]]),
            ("no data", [], []),
        ]
        surrogate = self._fitted(make_surrogate, strings)
        expected = np.stack(surrogate.predict(strings))
        for case, some, numbers in cases:
            for candidate in (surrogate, make_surrogate()):
                try:
                    candidate.fit(some, numbers, rng=_rng())
                except InputError:
                    continue
                except Exception as error:
                    raise AssertionError(f"{case}: expected an InputError, got {error!r}") from error
                raise AssertionError(f"{case}: a fit was made; expected an InputError")
        assert np.array_equal(np.stack(surrogate.predict(strings)), expected), "a refused fit has changed predictions"

    def test_parameters_are_named_numbers(self, make_surrogate: Callable[[], Surrogate], strings: list[str]) -> None:
        surrogate = self._fitted(make_surrogate, strings)
        parameters = dict(getattr(surrogate, "hyperparameters", {}))
        assert all(isinstance(name, str) and isinstance(value, float) for name, value in parameters.items()), parameters

    def _fitted(self, make_surrogate: Callable[[], Surrogate], strings: list[str]) -> Surrogate:
        """Fitted to all strings but the last four."""
        surrogate, some = make_surrogate(), strings[: len(strings) - 4]
        surrogate.fit(some, self.values(some), rng=_rng())
        return surrogate

    def _checked(self, surrogate: Surrogate, strings: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        mean, std = (np.asarray(part) for part in surrogate.predict(strings))
        for name, part in (("mean", mean), ("standard deviation", std)):
            assert part.shape == (len(strings),), f"{name} of {len(strings)} strings has the shape {part.shape}"
            assert part.dtype == np.float64, f"{name} is {part.dtype}, expected float64"
            assert np.isfinite(part).all(), f"{name} is not finite: {part}"
        assert (std >= 0).all(), f"standard deviations are negative: {std}"
        return mean, std

    def _same(
        self,
        found: FloatArray,
        expected: FloatArray,
        strings: Sequence[str],
        how: str,
        rtol: float | None = None,
    ) -> None:
        spare = (self.rtol if rtol is None else rtol) * float(np.std(self.values(strings)))
        assert found.shape == expected.shape
        assert np.abs(found - expected).max(initial=0.0) <= spare, f"predictions {how}: {found} and {expected}"


class NoiseAwareSurrogateConformance(SurrogateConformance):
    """Tests of a `seqopt.models.NoiseAwareSurrogate`: those of a surrogate, and how it takes known noise.

    Example:
        >>> from seqopt.models import StringGP
        >>> class TestMine(NoiseAwareSurrogateConformance):
        ...     @pytest.fixture
        ...     def make_surrogate(self) -> Callable[[], Surrogate]:
        ...         return lambda: StringGP(restarts=1)
    """

    def test_it_says_that_it_takes_noise(self, make_surrogate: Callable[[], NoiseAwareSurrogate]) -> None:
        surrogate = make_surrogate()
        assert isinstance(surrogate, NoiseAwareSurrogate)
        assert surrogate.takes_noise_variance is True

    def test_zeros_mean_that_nothing_is_known(
        self, make_surrogate: Callable[[], NoiseAwareSurrogate], strings: list[str]
    ) -> None:
        one, other = make_surrogate(), make_surrogate()
        one.fit(strings, self.values(strings), rng=_rng())
        other.fit(strings, self.values(strings), rng=_rng(), noise_variance=np.zeros(len(strings)))
        found, expected = np.stack(other.predict(strings)), np.stack(one.predict(strings))
        self._same(found, expected, strings, "differ between variances of zero and none")

    def test_a_value_of_little_precision_counts_for_little(
        self, make_surrogate: Callable[[], NoiseAwareSurrogate], strings: list[str]
    ) -> None:
        values = np.array(self.values(strings))
        far = float(np.std(values)) * 20
        values[0] += far
        noise = np.zeros(len(values))
        noise[0] = (100 * far) ** 2
        one, other = make_surrogate(), make_surrogate()
        one.fit(strings, values, rng=_rng())
        other.fit(strings, values, rng=_rng(), noise_variance=noise)
        believed, doubted = (float(surrogate.predict(strings[:1])[0][0]) for surrogate in (one, other))
        centre = float(np.mean(values[1:]))
        assert abs(doubted - centre) < 0.2 * far, (
            f"a value that is {far:g} off with a known standard error of {100 * far:g} is predicted as {doubted:g}; "
            f"the others have the mean {centre:g} (without known noise: {believed:g})"
        )

    def test_noise_that_cannot_be_is_refused(
        self, make_surrogate: Callable[[], NoiseAwareSurrogate], strings: list[str]
    ) -> None:
        for noise in ([0.1], [-1.0] * len(strings), [float("nan")] * len(strings)):
            with pytest.raises(InputError):
                make_surrogate().fit(strings, self.values(strings), rng=_rng(), noise_variance=noise)


class CensoredSurrogateConformance(SurrogateConformance):
    """Tests of a `seqopt.models.CensoredSurrogate`: those of a surrogate, and how it takes limits.

    Example:
        >>> from seqopt.models import StringGP
        >>> class TestMine(CensoredSurrogateConformance):
        ...     @pytest.fixture
        ...     def make_surrogate(self) -> Callable[[], Surrogate]:
        ...         return lambda: StringGP(restarts=1)
    """

    def test_it_says_that_it_takes_limits(self, make_surrogate: Callable[[], CensoredSurrogate]) -> None:
        surrogate = make_surrogate()
        assert isinstance(surrogate, CensoredSurrogate)
        assert surrogate.takes_censored is True

    def test_zeros_mean_that_all_values_are_known(
        self, make_surrogate: Callable[[], CensoredSurrogate], strings: list[str]
    ) -> None:
        one, other = make_surrogate(), make_surrogate()
        one.fit(strings, self.values(strings), rng=_rng())
        other.fit(strings, self.values(strings), rng=_rng(), censored=np.zeros(len(strings)))
        found, expected = np.stack(other.predict(strings)), np.stack(one.predict(strings))
        self._same(found, expected, strings, "differ between values that are not censored and none told so")

    def test_values_are_expected_beyond_limits_that_others_contradict(
        self, make_surrogate: Callable[[], CensoredSurrogate], strings: list[str]
    ) -> None:
        values = np.array(self.values(strings))
        best = int(values.argmax())
        # Below what any other value is, and said to be above it: that is no news.
        limit = values.min() - 20 * float(np.std(values))
        values[best] = limit
        censored = np.zeros(len(values))
        censored[best] = 1
        one, other = make_surrogate(), make_surrogate()
        one.fit(strings, values, rng=_rng())
        other.fit(strings, values, rng=_rng(), censored=censored)
        taken, modelled = (float(surrogate.predict([strings[best]])[0][0]) for surrogate in (one, other))
        others = np.delete(values, best)
        assert modelled > others.min() - 3 * float(np.std(others)), (
            f"a value above {limit:g} is predicted as {modelled:g}; the others are from {others.min():g} "
            f"(as a value: {taken:g})"
        )

    def test_limits_that_cannot_be_are_refused(
        self, make_surrogate: Callable[[], CensoredSurrogate], strings: list[str]
    ) -> None:
        for censored in ([1], [2] * len(strings)):
            with pytest.raises(InputError):
                make_surrogate().fit(strings, self.values(strings), rng=_rng(), censored=censored)


class JointSurrogateConformance(SurrogateConformance):
    """Tests of a `seqopt.models.JointSurrogate`: those of a surrogate, and of its joint posterior.

    Attributes:
        draws: Draws of `sample` that are compared with the moments.

    Example:
        >>> from seqopt.models import StringGP
        >>> class TestMine(JointSurrogateConformance):
        ...     @pytest.fixture
        ...     def make_surrogate(self) -> Callable[[], Surrogate]:
        ...         return lambda: StringGP(restarts=1)
    """

    draws: int = 4000

    def test_the_joint_posterior_has_the_predicted_moments(
        self, make_surrogate: Callable[[], JointSurrogate], strings: list[str]
    ) -> None:
        surrogate = self._joint(make_surrogate, strings)
        for asked in (strings, strings[::-1], strings[-1:]):
            mean, covariance = (np.asarray(part) for part in surrogate.posterior(asked))
            assert mean.shape == (len(asked),)
            assert covariance.shape == (len(asked), len(asked))
            assert mean.dtype == covariance.dtype == np.float64
            expected = surrogate.predict(asked)
            self._same(mean, expected[0], strings, "differ in mean from the joint posterior")
            self._same(
                np.sqrt(np.diagonal(covariance)), expected[1], strings, "differ in deviation from the joint posterior"
            )
            self._near(covariance, covariance.T, strings)
            assert np.linalg.eigvalsh((covariance + covariance.T) / 2).min() >= -self._unit(strings)

    def test_covariances_are_those_of_the_joint_posterior(
        self, make_surrogate: Callable[[], JointSurrogate], strings: list[str]
    ) -> None:
        surrogate = self._joint(make_surrogate, strings)
        expected = np.asarray(surrogate.posterior(strings)[1])
        self._near(np.asarray(surrogate.covariance(strings[:5], strings)), expected[:5], strings)
        self._near(np.asarray(surrogate.covariance(strings, strings[5:])), expected[:, 5:], strings)

    def test_draws_have_the_moments_of_the_joint_posterior(
        self, make_surrogate: Callable[[], JointSurrogate], strings: list[str]
    ) -> None:
        surrogate, asked = self._joint(make_surrogate, strings), strings[-6:]
        mean, covariance = (np.asarray(part) for part in surrogate.posterior(asked))
        sample = np.asarray(surrogate.sample(asked, self.draws, _rng()))
        assert sample.shape == (self.draws, len(asked))
        assert np.array_equal(np.asarray(surrogate.sample(asked, self.draws, _rng())), sample), (
            "two samples from equal generators differ"
        )
        assert not np.array_equal(np.asarray(surrogate.sample(asked, self.draws, _rng(1))), sample)
        std = np.sqrt(np.diagonal(covariance))
        spare = 6 * std / np.sqrt(self.draws) + self.rtol * self._deviation(strings)
        assert (np.abs(sample.mean(0) - mean) <= spare).all(), f"draws have the mean {sample.mean(0)}, expected {mean}"
        # A mixture has heavier tails than a normal distribution, whose covariances err by sqrt(2 / n) at most.
        spare = 12 * np.outer(std, std) / np.sqrt(self.draws) + self._unit(strings)
        found = np.cov(sample.T)
        assert (np.abs(found - covariance) <= spare).all(), f"draws have the covariance {found}, expected {covariance}"

    def _joint(self, make_surrogate: Callable[[], JointSurrogate], strings: list[str]) -> JointSurrogate:
        surrogate = self._fitted(make_surrogate, strings)
        assert isinstance(surrogate, JointSurrogate), f"{type(surrogate).__name__} has no joint posterior"
        return surrogate

    def _deviation(self, strings: Sequence[str]) -> float:
        return float(np.std(self.values(strings)))

    def _unit(self, strings: Sequence[str]) -> float:
        return self.rtol * self._deviation(strings) ** 2

    def _near(self, found: FloatArray, expected: FloatArray, strings: Sequence[str]) -> None:
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() <= self._unit(strings), f"covariances {found}, expected {expected}"


class StringSurrogateConformance(SurrogateConformance):
    """Tests of a `seqopt.models.StringSurrogate`: those of a surrogate, and of the posterior that searches ask for.

    `seqopt.testing.posteriors.PosteriorConformance` tests the posterior ``conditioned().at(strings)`` itself.

    Example:
        >>> from seqopt.models import StringGP
        >>> class TestMine(StringSurrogateConformance):
        ...     @pytest.fixture
        ...     def make_surrogate(self) -> Callable[[], Surrogate]:
        ...         return lambda: StringGP(restarts=1)
    """

    def test_the_posterior_has_the_predicted_moments(
        self, make_surrogate: Callable[[], StringSurrogate], strings: list[str]
    ) -> None:
        surrogate = self._open(make_surrogate, strings)
        process = surrogate.conditioned()
        assert isinstance(process, ConditionedProcess), f"{type(process).__name__} is not a ConditionedProcess"
        for asked in (strings, strings[-1:]):
            posterior = process.at(asked)
            assert isinstance(posterior, Posterior)
            assert len(posterior.moments) == len(asked)
            found = _predicted(surrogate, posterior)
            self._same(found, np.stack(surrogate.predict(asked)), strings, "differ from the conditioned posterior")

    def test_a_pending_string_lowers_variances_and_moves_nothing_else(
        self, make_surrogate: Callable[[], StringSurrogate], strings: list[str]
    ) -> None:
        surrogate, new = self._open(make_surrogate, strings), strings[-1]
        process = surrogate.conditioned()
        before = process.at(strings).moments
        kept = before.conditional_variance.clone()
        given = process.given(new)
        pending = surrogate.conditioned([new]).at(strings).moments
        after = given.at(strings).moments
        assert torch.equal(process.at(strings).moments.conditional_variance, kept), (
            "given has changed the process that it was called on"
        )
        spare = self.rtol * float(before.variance.max())
        assert bool((after.conditional_variance <= before.conditional_variance + spare).all()), "a variance has grown"
        assert bool((after.conditional_variance[..., -1] < before.conditional_variance[..., -1]).all()), (
            "the variance of the pending string itself has not fallen"
        )
        for found in (pending, process.at(strings).given(len(strings) - 1).moments):
            assert torch.allclose(found.conditional_variance, after.conditional_variance, rtol=0, atol=spare), (
                "conditioned([string]), given(string) and at(strings).given(index) have different variances"
            )
        assert torch.allclose(after.mean, before.mean, rtol=self.rtol, atol=self.rtol), "a mean has moved"
        assert torch.allclose(after.variance, before.variance, rtol=self.rtol, atol=spare), (
            "variances given the data have moved"
        )

    def test_the_order_of_pending_strings_does_not_matter(
        self, make_surrogate: Callable[[], StringSurrogate], strings: list[str]
    ) -> None:
        surrogate, pending = self._open(make_surrogate, strings), strings[-3:]
        one = surrogate.conditioned(pending).at(strings).moments.conditional_variance
        other = surrogate.conditioned(pending[::-1]).at(strings).moments.conditional_variance
        assert torch.allclose(one, other, rtol=self.rtol, atol=self.rtol * float(one.max()))

    def test_the_best_observed_strings_are_those_of_largest_mean(
        self, make_surrogate: Callable[[], StringSurrogate], strings: list[str]
    ) -> None:
        surrogate, observed = self._open(make_surrogate, strings), strings[: len(strings) - 4]
        best = surrogate.conditioned().best_observed_keys(4)
        assert len(best) == len(set(best)) == 4
        assert set(best) <= set(observed), "strings are said to be observed that are not"
        mean = dict(zip(observed, surrogate.predict(observed)[0].tolist(), strict=True))
        spare = self.rtol * float(np.std(self.values(strings)))
        expected = sorted(mean.values(), reverse=True)[:4]
        assert np.abs(np.array([mean[key] for key in best]) - expected).max() <= spare, f"{best}: {mean}"
        assert surrogate.conditioned().best_observed_keys(2) == best[:2]
        assert sorted(surrogate.conditioned().best_observed_keys(100)) == sorted(observed)

    def _open(self, make_surrogate: Callable[[], StringSurrogate], strings: list[str]) -> StringSurrogate:
        surrogate = self._fitted(make_surrogate, strings)
        assert isinstance(surrogate, StringSurrogate), (
            f"{type(surrogate).__name__} lacks conditioned or untransform of seqopt.models.StringSurrogate"
        )
        return surrogate


class PoolSurrogateConformance(SurrogateConformance):
    """Tests of a `seqopt.models.PoolSurrogate`: those of a surrogate, and of its posterior over a pool.

    Attributes:
        kind: Of the strings.

    Example:
        >>> from seqopt.models import StringGP
        >>> class TestMine(PoolSurrogateConformance):
        ...     @pytest.fixture
        ...     def make_surrogate(self) -> Callable[[], Surrogate]:
        ...         return lambda: StringGP(restarts=1)
    """

    kind: str = "text"

    def test_the_pool_has_the_predicted_moments_after_every_fit(
        self, make_surrogate: Callable[[], PoolSurrogate], strings: list[str]
    ) -> None:
        surrogate, pool = make_surrogate(), CandidateSet(strings, kind=self.kind)
        assert isinstance(surrogate, PoolSurrogate), (
            f"{type(surrogate).__name__} lacks pool_posterior or untransform of seqopt.models.PoolSurrogate"
        )
        for size in (len(strings) - 6, len(strings) - 5, len(strings) - 2):
            surrogate.fit(strings[:size], self.values(strings[:size]), rng=_rng(size))
            posterior = surrogate.pool_posterior(pool)
            assert isinstance(posterior, Posterior)
            found, expected = _predicted(surrogate, posterior), np.stack(surrogate.predict(pool.keys))
            self._same(found, expected, strings, f"differ from the posterior over the pool after a fit to {size}")

    def test_a_part_of_the_pool_has_the_same_posterior(
        self, make_surrogate: Callable[[], PoolSurrogate], strings: list[str]
    ) -> None:
        surrogate, pool = self._fitted(make_surrogate, strings), CandidateSet(strings, kind=self.kind)
        assert isinstance(surrogate, PoolSurrogate)
        indices, pending = np.array([7, 2, 11]), [strings[2], strings[-1]]
        whole = surrogate.pool_posterior(pool, pending=pending).moments.take(torch.from_numpy(indices))
        part = surrogate.pool_posterior(pool, indices, pending).moments
        for name in ("mean", "variance", "conditional_variance", "outcome_variance"):
            one, other = getattr(part, name), getattr(whole, name)
            assert torch.allclose(one, other, rtol=self.rtol, atol=self.rtol), f"{name}: {one} and {other}"

    def test_pending_and_chosen_candidates_lower_variances_alike(
        self, make_surrogate: Callable[[], PoolSurrogate], strings: list[str]
    ) -> None:
        surrogate, pool = self._fitted(make_surrogate, strings), CandidateSet(strings, kind=self.kind)
        assert isinstance(surrogate, PoolSurrogate)
        before, last = surrogate.pool_posterior(pool), len(strings) - 1
        pending = surrogate.pool_posterior(pool, pending=[pool.keys[last]]).moments.conditional_variance
        chosen = before.given(last).moments.conditional_variance
        assert torch.allclose(pending, chosen, rtol=self.rtol, atol=self.rtol), f"{pending} and {chosen}"
        assert bool((pending[..., last] < before.moments.conditional_variance[..., last]).all()), (
            "the variance of a pending candidate has not fallen"
        )
        if isinstance(surrogate, StringSurrogate):
            process = surrogate.conditioned([pool.keys[last]])
            elsewhere = process.at(pool.keys).moments.conditional_variance
            assert torch.allclose(pending, elsewhere, rtol=self.rtol, atol=self.rtol), (
                "pool_posterior and conditioned have different variances"
            )


def _predicted(surrogate: StringSurrogate | PoolSurrogate, posterior: Posterior) -> FloatArray:
    """Mean and standard deviation in the values' units, over the draws of the parameters."""
    mean = posterior.moments.mean.reshape(-1, len(posterior.moments))
    variance = posterior.moments.variance.reshape(-1, len(posterior.moments))
    spread = variance.mean(0) + mean.var(0, correction=0)
    found = surrogate.untransform(mean.mean(0).numpy(), spread.numpy())
    return np.stack([np.asarray(part) for part in found])


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)
