"""The posterior over a pool too large for its covariances to be kept, against the one that keeps them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from seqopt.acquisition import GIBBON, Acquisition, LogExpectedImprovement, ThompsonSampling, UpperConfidenceBound
from seqopt.kernels import NgramKernel, SubsequenceKernel
from seqopt.models import StringGP, pool_posterior, streamed_posterior, string_gp
from seqopt.models.pool_posterior import PoolPosterior, explained
from seqopt.models.streamed_posterior import StreamedPosterior
from seqopt.search import PoolSearch
from seqopt.search.protocols import Suggestion
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
    monkeypatch.setattr(string_gp, "COLUMN_MEMORY", 0)
    monkeypatch.setattr(streamed_posterior, "BLOCK_ELEMENTS", 2000)  # several blocks, the last one shorter
    monkeypatch.setattr(streamed_posterior, "REFINED", 16)
    monkeypatch.setattr(streamed_posterior, "ACTIVE", 40)


def both(gp: StringGP, monkeypatch: pytest.MonkeyPatch, **options: object) -> tuple[PoolPosterior, StreamedPosterior]:
    kept = gp.pool_posterior(POOL, **options)  # type: ignore[arg-type]
    monkeypatch.setattr(string_gp, "COLUMN_MEMORY", 0)
    passed = gp.pool_posterior(POOL, **options)  # type: ignore[arg-type]
    assert isinstance(kept, PoolPosterior)
    assert isinstance(passed, StreamedPosterior)
    return kept, passed


def test_blocks_give_the_moments_of_the_whole(gp: StringGP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_posterior, "BLOCK_ELEMENTS", 2000)
    pending = [POOL.keys[11], "ABABABABABABAB"]
    kept, passed = both(gp, monkeypatch, pending=pending)
    for index in (7, 200):
        kept.condition(index)
        passed.condition(index)
    for name in ("mean", "variance", "conditional_variance", "conditioned_mean", "observed_mean"):
        torch.testing.assert_close(getattr(passed, name), getattr(kept, name), rtol=1e-8, atol=1e-10)
    assert (passed.noise_variance, passed.best_observed) == (kept.noise_variance, kept.best_observed)
    chosen = torch.tensor([3, 7, 350])
    for observed in (False, True):
        for found, expected in zip(passed.joint(chosen, observed), kept.joint(chosen, observed), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.usefixtures("streamed")
def test_bounds_hold_and_become_exact_where_asked(gp: StringGP, monkeypatch: pytest.MonkeyPatch) -> None:
    exact, bounded = gp.pool_posterior(POOL), gp.pool_posterior(POOL)
    assert isinstance(bounded, StreamedPosterior)
    bounded.use_bounds()
    score = np.random.default_rng(2).random(len(POOL))
    for index in (5, 17, 300, 45):
        exact.condition(index)
        bounded.condition(index)
        bounded.refine(score)
        known = np.array([bounded.is_exact(place) for place in range(len(POOL))])
        assert 16 <= known.sum() <= 56
        assert known[np.argsort(-score)[:16]].all()
        truth = exact.conditional_variance
        torch.testing.assert_close(bounded.conditional_variance[known], truth[known], rtol=1e-8, atol=1e-10)
        assert (bounded.conditional_variance >= truth - 1e-12).all()
        assert len(bounded._active) <= 40  # memory is bounded
        score = np.random.default_rng(index).random(len(POOL))


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
        found = PoolSearch().suggest(
            8,
            space=POOL,
            surrogate=gp,
            acquisition=acquisition,
            excluded={*TRAIN[:20], POOL.keys[3]},
            pending=[POOL.keys[3]],
            rng=np.random.default_rng(4),
        )
        return [(suggestion.key, suggestion.acquisition) for suggestion in found]

    expected = suggest()
    monkeypatch.setattr(string_gp, "COLUMN_MEMORY", 0)
    monkeypatch.setattr(streamed_posterior, "REFINED", 16)
    found = suggest()
    assert [key for key, _ in found] == [key for key, _ in expected]
    np.testing.assert_allclose([value for _, value in found], [value for _, value in expected], rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("streamed")
def test_few_candidates_are_looked_at_again(gp: StringGP, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    original = StreamedPosterior._make_exact
    monkeypatch.setattr(
        StreamedPosterior, "_make_exact", lambda self, chosen: (looked.append(len(chosen)), original(self, chosen))[1]
    )
    arguments = {"space": POOL, "surrogate": gp, "excluded": set(), "pending": [], "rng": np.random.default_rng(0)}
    PoolSearch().suggest(4, acquisition=GIBBON(), **arguments)  # type: ignore[arg-type]
    assert 0 < sum(looked) < len(POOL) / 2


@pytest.mark.usefixtures("streamed")
def test_no_block_is_larger_than_allowed(gp: StringGP, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = StreamedPosterior._columns

    def columns(self: StreamedPosterior, *arguments: object) -> torch.Tensor:
        rows = original(self, *arguments)  # type: ignore[arg-type]
        sizes.append(rows.numel())
        return rows

    monkeypatch.setattr(StreamedPosterior, "_columns", columns)
    gp.pool_posterior(POOL)
    assert len(sizes) > 3
    assert max(sizes) <= 2000


def test_panels_of_the_triangular_inverse_leave_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    inverse = torch.randn(23, 23, dtype=torch.float64, generator=generator).tril()
    rows = torch.randn(23, 50, dtype=torch.float64, generator=generator)
    monkeypatch.setattr(pool_posterior, "PANEL", 7)
    monkeypatch.setattr(pool_posterior, "BLOCK_CANDIDATES", 16)
    torch.testing.assert_close(explained(inverse, rows), (inverse @ rows).square().sum(0))


@pytest.mark.usefixtures("streamed")
def test_predictions_of_many_strings_are_those_of_few(gp: StringGP) -> None:
    mean, std = gp.predict(POOL.keys)
    for place in (0, 123, len(POOL) - 1):
        one_mean, one_std = gp.predict([POOL.keys[place]])
        np.testing.assert_allclose([mean[place], std[place]], [one_mean[0], one_std[0]], rtol=1e-8)


@pytest.fixture
def costly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StringGP:
    """A surrogate whose covariances are kept on disk."""
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    monkeypatch.setattr(streamed_posterior, "STORED_BLOCK", 64)
    found = StringGP(restarts=1)
    found.bind(POOL)
    found.fit(TRAIN, VALUES, rng=np.random.default_rng(0))
    return found


def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Single-precision covariances that are computed from now on."""
    sizes: list[int] = []
    original = StreamedPosterior._columns

    def columns(self: StreamedPosterior, *arguments: object) -> torch.Tensor:
        rows = original(self, *arguments)  # type: ignore[arg-type]
        sizes.append(rows.numel() if rows.dtype == torch.float32 else 0)
        return rows

    monkeypatch.setattr(StreamedPosterior, "_columns", columns)
    return sizes


def test_a_costly_kernel_is_evaluated_once(costly: StringGP, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept, first = both(costly, monkeypatch)
    sizes = computed(monkeypatch)
    second = costly.pool_posterior(POOL)
    assert sum(sizes) == len(POOL)  # one row is compared
    for name in ("mean", "variance"):
        assert torch.equal(getattr(first, name), getattr(second, name))
        torch.testing.assert_close(getattr(first, name), getattr(kept, name), rtol=1e-3, atol=1e-5)
    # New strings are added to what is there, while the kernel stays as it was.
    costly.fit([*TRAIN, *POOL.keys[:2]], [*VALUES, 0.0, 1.0], rng=np.random.default_rng(0), full=False)
    sizes.clear()
    costly.pool_posterior(POOL)
    assert sum(sizes) == (1 + 2) * len(POOL)
    # Another process finds them, too, and another kernel has its own.
    again = StringGP(restarts=1)
    again.load_state_dict(costly.state_dict())
    again.bind(POOL)
    again.fit([*TRAIN, *POOL.keys[:2]], [*VALUES, 0.0, 1.0], rng=np.random.default_rng(0), full=False)
    sizes.clear()
    again.pool_posterior(POOL)
    assert sum(sizes) == len(POOL)
    again.fit(TRAIN[::-1], VALUES, rng=np.random.default_rng(0), full=True)
    sizes.clear()
    again.pool_posterior(POOL)
    assert sum(sizes) == 31 * len(POOL)
    assert len(list((tmp_path / "columns").iterdir())) == 2


def test_a_batch_of_a_costly_kernel_is_that_of_double_precision(
    costly: StringGP, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_posterior, "REFINED", 16)

    def suggest() -> list[Suggestion]:
        return PoolSearch().suggest(
            6,
            space=POOL,
            surrogate=costly,
            acquisition=GIBBON(),
            excluded=set(TRAIN),
            pending=[],
            rng=np.random.default_rng(4),
        )

    expected = suggest()
    monkeypatch.setattr(string_gp, "COLUMN_MEMORY", 0)
    for found in (suggest(), suggest()):
        assert [one.key for one in found] == [one.key for one in expected]
        for name in ("predicted_mean", "predicted_std"):
            np.testing.assert_allclose(
                [getattr(one, name) for one in found], [getattr(one, name) for one in expected], rtol=1e-9
            )
