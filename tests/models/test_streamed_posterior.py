"""The posterior over a pool too large for its covariances to be kept, against the one that keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from seqopt.acquisition import GIBBON, Acquisition, LogExpectedImprovement, ThompsonSampling, UpperConfidenceBound
from seqopt.acquisition.gibbon import PreparedGIBBON
from seqopt.kernels import NgramKernel, SubsequenceKernel
from seqopt.models import StringGP, column_cache, gaussian, streamed_posterior
from seqopt.models.column_cache import explained
from seqopt.models.gp_state import BatchedGPState
from seqopt.models.pool_posterior import PoolPosterior
from seqopt.models.streamed_posterior import LazyPosterior, StreamedPosterior
from seqopt.posteriors import Moments
from seqopt.scorers import GaussianScoring
from seqopt.search import PoolSearch, Proposal
from seqopt.spaces import CandidateSet

RNG = np.random.default_rng(5)
POOL = CandidateSet({"".join(RNG.choice(list("ABCD"), 9)) for _ in range(400)} | {"A" * 9}, kind="text")
TRAIN = [*POOL.sample(30, np.random.default_rng(1)), "DDDD"]
TRAIN += TRAIN[:3]  # measured twice
VALUES = [s.count("AB") + 0.3 * s.count("C") + 0.1 * np.random.default_rng(i).normal() for i, s in enumerate(TRAIN)]


@pytest.fixture(params=["ssk", "foreign"])
def gp(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StringGP:
    monkeypatch.setattr(SubsequenceKernel, "costly", False)  # so that all is computed in double precision
    found = StringGP(NgramKernel() if request.param == "foreign" else None, restarts=1)
    found.bind(POOL)
    found.fit(TRAIN, VALUES, rng=np.random.default_rng(0))
    return found


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "COLUMN_MEMORY", 0)
    monkeypatch.setattr(streamed_posterior, "BLOCK_ELEMENTS", 2000)  # several blocks, the last one shorter
    monkeypatch.setattr(streamed_posterior, "REFINED", 16)
    monkeypatch.setattr(streamed_posterior, "ACTIVE", 40)


def both(gp: StringGP, monkeypatch: pytest.MonkeyPatch, **options: object) -> tuple[PoolPosterior, StreamedPosterior]:
    kept = gp.pool_posterior(POOL, **options)  # type: ignore[arg-type]
    monkeypatch.setattr(gaussian, "COLUMN_MEMORY", 0)
    gp._posteriors.clear()  # or the first is kept
    passed = gp.pool_posterior(POOL, **options)  # type: ignore[arg-type]
    assert isinstance(kept, PoolPosterior)
    assert isinstance(passed, StreamedPosterior)
    return kept, passed


def propose(
    n: int, gp: StringGP, acquisition: Acquisition, excluded: set[str], pending: Sequence[str] = ()
) -> list[Proposal]:
    rng = np.random.default_rng(4)
    scoring = GaussianScoring(gp, acquisition, pending=pending, batch_size=n + len(pending), rng=rng)
    return PoolSearch().propose(n, space=POOL, scoring=scoring, excluded=excluded, rng=rng)


def test_blocks_give_the_moments_of_the_whole(gp: StringGP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_posterior, "BLOCK_ELEMENTS", 2000)
    pending = [POOL.keys[11], "ABABABABABABAB"]
    kept, passed = both(gp, monkeypatch, pending=pending)
    for index in (7, 200):
        kept, passed = kept.given(index), passed.given(index)
    for name in Moments.__dataclass_fields__:
        ours, theirs = getattr(passed.moments, name), getattr(kept.moments, name)
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)
    for name in ("conditioned_mean", "observed_mean"):
        torch.testing.assert_close(getattr(passed, name), getattr(kept, name), rtol=1e-8, atol=1e-10)
    assert passed.best_observed == kept.best_observed
    chosen = torch.tensor([3, 7, 350])
    for observed in (False, True):
        for found, expected in zip(passed.joint(chosen, observed), kept.joint(chosen, observed), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(passed.cross(chosen), kept.cross(chosen), rtol=1e-8, atol=1e-10)


@pytest.mark.usefixtures("streamed")
def test_bounds_hold_and_become_exact_where_asked(gp: StringGP, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = gp.pool_posterior(POOL)
    assert isinstance(exact, StreamedPosterior)
    lazy = exact.lazy()
    before = lazy.bounds().moments.conditional_variance.clone()
    first = lazy.bounds()
    score = np.random.default_rng(2).random(len(POOL))
    for index in (5, 17, 300, 45):
        exact = exact.given(index)
        lazy.choose(index)
        looked, at = lazy.refine(score)
        known = np.array([lazy.is_exact(other) for other in range(len(POOL))])
        assert 16 <= known.sum() <= 56
        assert known[np.argsort(-score)[:16]].all()
        truth, bounds = exact.moments.conditional_variance[0], lazy.bounds().moments.conditional_variance[0]
        torch.testing.assert_close(bounds[known], truth[known], rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(at.moments.conditional_variance[0], truth[looked], rtol=1e-8, atol=1e-10)
        assert (bounds >= truth - 1e-12).all()
        assert len(lazy._active) <= 40  # memory is bounded
        score = np.random.default_rng(index).random(len(POOL))
    assert torch.equal(first.moments.conditional_variance, before)  # what was handed out stays as it was


@pytest.mark.parametrize(
    "acquisition",
    [
        GIBBON(repulsion=1.0),
        GIBBON(),
        GIBBON(repulsion=lambda size: 1.0),
        LogExpectedImprovement(),
        UpperConfidenceBound(),
        ThompsonSampling(),
    ],
    ids=["gibbon", "gibbon/B", "function", "logei", "ucb", "thompson"],
)
def test_the_same_batch_is_chosen(gp: StringGP, monkeypatch: pytest.MonkeyPatch, acquisition: Acquisition) -> None:
    def suggest() -> list[tuple[str, float | None]]:
        found = propose(8, gp, acquisition, {*TRAIN[:20], POOL.keys[3]}, [POOL.keys[3]])
        return [(proposal.key, proposal.acquisition) for proposal in found]

    expected = suggest()
    monkeypatch.setattr(gaussian, "COLUMN_MEMORY", 0)
    monkeypatch.setattr(streamed_posterior, "REFINED", 16)
    found = suggest()
    assert [key for key, _ in found] == [key for key, _ in expected]
    np.testing.assert_allclose([value for _, value in found], [value for _, value in expected], rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("streamed")
def test_few_candidates_are_looked_at_again(gp: StringGP, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    original = LazyPosterior.refine

    def refine(self: LazyPosterior, scores: np.ndarray) -> tuple:
        found = original(self, scores)
        looked.append(len(found[0]))
        return found

    monkeypatch.setattr(LazyPosterior, "refine", refine)
    propose(4, gp, GIBBON(), set())
    assert 0 < sum(looked) < len(POOL) / 2


@pytest.mark.usefixtures("streamed")
def test_no_block_is_larger_than_allowed(gp: StringGP, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = computed(monkeypatch, np.float64)
    gp.pool_posterior(POOL)
    assert len(sizes) > 3
    assert max(sizes) <= 2000


def test_panels_of_the_triangular_inverse_leave_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    inverse = torch.randn(23, 23, dtype=torch.float64, generator=generator).tril()
    rows = torch.randn(23, 50, dtype=torch.float64, generator=generator)
    monkeypatch.setattr(column_cache, "PANEL", 7)
    monkeypatch.setattr(column_cache, "BLOCK_CANDIDATES", 16)
    torch.testing.assert_close(explained(inverse, rows), (inverse @ rows).square().sum(0))


@pytest.mark.usefixtures("streamed")
def test_predictions_of_many_strings_are_those_of_few(gp: StringGP) -> None:
    mean, std = gp.predict(POOL.keys)
    for index in (0, 123, len(POOL) - 1):
        one_mean, one_std = gp.predict([POOL.keys[index]])
        np.testing.assert_allclose([mean[index], std[index]], [one_mean[0], one_std[0]], rtol=1e-8)


@pytest.fixture
def costly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StringGP:
    """A surrogate whose covariances are kept on disk."""
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    monkeypatch.setattr(streamed_posterior, "STORED_BLOCK", 64)
    found = StringGP(restarts=1)
    found.bind(POOL)
    found.fit(TRAIN, VALUES, rng=np.random.default_rng(0))
    return found


def computed(monkeypatch: pytest.MonkeyPatch, precision: type[np.floating] = np.float32) -> list[int]:
    """Sizes of the blocks of covariances of a precision that are computed from now on."""
    sizes: list[int] = []
    original = StreamedPosterior.raw_columns

    def columns(self: StreamedPosterior, *arguments: object) -> np.ndarray:
        rows = original(self, *arguments)  # type: ignore[arg-type]
        sizes.append(rows.size if rows.dtype == precision else 0)
        return rows

    monkeypatch.setattr(StreamedPosterior, "raw_columns", columns)
    return sizes


def test_a_costly_kernel_is_evaluated_once(costly: StringGP, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(streamed_posterior, "VERIFIED", 3)
    kept, first = both(costly, monkeypatch)
    sizes = computed(monkeypatch)
    costly._posteriors.clear()
    second = costly.pool_posterior(POOL)
    verified = 3 * len(TRAIN)
    assert sum(sizes) == len(POOL) + verified  # one row is compared
    for name in ("mean", "variance"):
        once, again = getattr(first.moments, name), getattr(second.moments, name)
        assert torch.equal(once, again)
        torch.testing.assert_close(once, getattr(kept.moments, name), rtol=1e-3, atol=1e-5)
    # New strings are added to what is there, while the kernel stays as it was.
    costly.fit([*TRAIN, *POOL.keys[:2]], [*VALUES, 0.0, 1.0], rng=np.random.default_rng(0), full=False)
    sizes.clear()
    costly.pool_posterior(POOL)
    verified = 3 * (len(TRAIN) + 2)
    assert sum(sizes) == (1 + 2) * len(POOL) + verified
    # Another process finds them, too, and another kernel has its own.
    other = StringGP(restarts=1)
    other.load_state_dict(costly.state_dict())
    other.bind(POOL)
    other.fit([*TRAIN, *POOL.keys[:2]], [*VALUES, 0.0, 1.0], rng=np.random.default_rng(0), full=False)
    sizes.clear()
    other.pool_posterior(POOL)
    assert sum(sizes) == len(POOL) + verified
    other.fit(TRAIN[::-1], VALUES, rng=np.random.default_rng(0), full=True)
    sizes.clear()
    other.pool_posterior(POOL)
    assert sum(sizes) == 31 * len(POOL) + 3 * len(TRAIN)
    assert len(list((tmp_path / "columns").iterdir())) == 2


def test_a_batch_of_a_costly_kernel_is_that_of_double_precision(
    costly: StringGP, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_posterior, "REFINED", 16)

    def suggest() -> list[Proposal]:
        return propose(6, costly, GIBBON(), set(TRAIN))

    expected = suggest()
    monkeypatch.setattr(gaussian, "COLUMN_MEMORY", 0)
    for found in (suggest(), suggest()):
        assert [one.key for one in found] == [one.key for one in expected]
        for name in ("predicted_mean", "predicted_std"):
            np.testing.assert_allclose(
                [getattr(one, name) for one in found], [getattr(one, name) for one in expected], rtol=1e-9
            )


BINARY = CandidateSet(
    {"".join(bits) for bits in np.random.default_rng(2).choice(["0", "1"], size=(1500, 20)).tolist()}, kind="text"
)


@pytest.fixture(scope="module")
def noiseless() -> StringGP:
    """A surrogate with next to no noise: its inverse amplifies what single precision leaves out."""
    found = StringGP(restarts=1)
    found.bind(BINARY)
    train = BINARY.sample(150, np.random.default_rng(3))
    kernel = SubsequenceKernel(match_decay=0.9, gap_decay=0.9)
    found.kernel = kernel
    for parameter in kernel.parameters():
        parameter.requires_grad_(False)
    found.fit(train, [string.count("101") for string in train], rng=np.random.default_rng(0))
    state = found.fitted
    one = torch.ones(1, dtype=torch.float64)
    found._state = BatchedGPState.build(
        state.evaluator, state.keys, state.encoded, state.targets, 0 * one, one, 1e-7 * one, torch.zeros(150).double()
    )
    return found


@pytest.mark.slow
def test_little_noise_makes_the_first_pass_one_of_double_precision(
    noiseless: StringGP, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Means were off by several predicted deviations, and deviations by a factor of three."""
    some = BINARY.keys[::37]
    expected = noiseless.predict(some)
    monkeypatch.setattr(gaussian, "COLUMN_MEMORY", 0)
    posterior = noiseless.pool_posterior(BINARY)
    assert isinstance(posterior, StreamedPosterior)
    assert posterior.precision == np.float64
    mean, std = noiseless.untransform(posterior.moments.mean[0], posterior.moments.variance[0])
    for found in (noiseless.predict(some), (mean[::37], std[::37])):
        np.testing.assert_allclose(found[0], expected[0], atol=1e-3 * expected[1].min())
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-3)


def test_where_single_precision_is_taken_it_is_as_good_as_claimed(
    costly: StringGP, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, passed = both(costly, monkeypatch)
    assert isinstance(passed, StreamedPosterior)
    assert passed.precision == np.float32
    mean, variance = kept.moments.mean, kept.moments.variance
    tolerance = streamed_posterior.TOLERANCE
    assert ((passed.moments.mean - mean).abs() <= tolerance * variance.sqrt()).all()
    assert ((passed.moments.variance - variance).abs() <= tolerance * variance).all()


def test_scores_after_a_second_look_are_those_of_a_fresh_object(
    noiseless: StringGP, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIBBON kept the scores of single precision, because it caches by tensors that were changed in place."""
    monkeypatch.setattr(streamed_posterior, "TOLERANCE", np.inf)  # single precision, where it is not safe
    monkeypatch.setattr(gaussian, "COLUMN_MEMORY", 0)
    monkeypatch.setattr(streamed_posterior, "REFINED", 64)
    noiseless._posteriors.clear()
    posterior = noiseless.pool_posterior(BINARY)
    assert isinstance(posterior, StreamedPosterior)
    assert posterior.precision == np.float32
    prepared = PreparedGIBBON(torch.tensor([[1.5, 2.0]], dtype=torch.float64))
    lazy = posterior.lazy()
    before = prepared(lazy.bounds()).numpy()
    indices, at = lazy.refine(before)
    fresh = PreparedGIBBON(prepared.max_values)
    exact = fresh(noiseless.conditioned().at([BINARY.keys[index] for index in indices])).numpy()
    np.testing.assert_allclose(prepared(at).numpy(), exact, rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(prepared(lazy.bounds()).numpy()[indices], exact, rtol=1e-6, atol=1e-300)
    assert not np.allclose(before[indices], exact, rtol=1e-2, atol=0)
