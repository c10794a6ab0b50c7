"""The process on tuples of building blocks, against definitions spelled out, dense algebra and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime

from seqopt.encoding import FeatureRows, MorganFingerprint
from seqopt.errors import InputError
from seqopt.kernels import BlockSimilarities, MinMaxKernel, ReagentKernel
from seqopt.kernels import reagents as reagents_module
from seqopt.kernels.reagents import OFFSET, numbers_of, subsets
from seqopt.models import ReagentGP
from seqopt.models.reagent_fit import ReagentLikelihood, ReagentParameters
from seqopt.models.reagent_grid import GridPosterior, TupleGrid
from seqopt.search.reagents import additive_best, component_means
from seqopt.spaces import CombinatorialSpace, StringSpace

AMIDE = "[C:1](=[O:2])[OH].[N;H1,H2;!$(NC=O):3]>>[C:1](=[O:2])[N:3]"
UGI = "[C;H1:1]=O.[N;H2:2].[C:3](=[O:4])[OH]>>[C:1](C#N)[N:2][C:3]=[O:4]"
REAGENTS = {
    "acids": ["CC(=O)O", "OC(=O)c1ccccc1", "OC(=O)c1ccncc1", "OC(=O)C1CC1"],
    "amines": ["CN", "CCN", "NC1CCCCC1", "NCCF"],
    "aldehydes": ["CC=O", "O=Cc1ccccc1", "O=CC1CC1"],
}


def _space(*reactions: str) -> CombinatorialSpace:
    return CombinatorialSpace(list(reactions) or [AMIDE, UGI], REAGENTS)


def _fitted(space: CombinatorialSpace, n: int = 12, seed: int = 0) -> tuple[ReagentGP, list[str], list[float]]:
    rng = np.random.default_rng(seed)
    strings = space.sample(n, rng)
    values = [len(string) + string.count("c") + 0.1 * rng.standard_normal() for string in strings]
    gp = ReagentGP()
    gp.bind(space)
    gp.fit(strings, values, rng=rng)
    return gp, strings, values


def _all(space: CombinatorialSpace) -> np.ndarray:
    grid = TupleGrid(space)
    sizes = [int(np.prod([len(space.component(r, s)) for s in range(space.components(r))])) for r in range(2)]
    return np.concatenate([grid.tuples(r, np.arange(size)) for r, size in enumerate(sizes)])


def test_the_kernel_is_its_definition() -> None:
    space = _space()
    similarities = BlockSimilarities([block.key for block in space.reagents.blocks])
    features = FeatureRows(MorganFingerprint(counts=True)(similarities.smiles))
    minmax = MinMaxKernel().cross(features)
    weights, same, between = [0.3, 0.2, 0.1, 0.5, 0.4, 0.25, 0.7], [0.1, 0.5, 0.9], 0.6
    kernel = ReagentKernel(similarities, 3, weights, same, between)
    tuples = _all(space)[::7]
    found = kernel.cross(FeatureRows(tuples.astype(float)))
    for (i, a), (j, b) in itertools.product(enumerate(tuples), repeat=2):
        parts = []
        for slot in range(3):
            x, y = a[slot + 1], b[slot + 1]
            alike = float(x == y) if min(x, y) < 0 else minmax[x, y]
            parts.append((1 - same[slot]) * alike + same[slot] * (x == y))
        total = OFFSET + sum(w * np.prod([parts[s] for s in term]) for w, term in zip(weights, subsets(3), strict=True))
        assert found[i, j] == pytest.approx(total * (1 if a[0] == b[0] else between), rel=1e-6)
    assert np.linalg.eigvalsh(found).min() > -1e-6
    assert np.allclose(np.diag(found), kernel.variance(FeatureRows(tuples.astype(float))), rtol=1e-6)
    rows = torch.from_numpy(tuples.astype(float))
    assert np.allclose(kernel(rows).to_dense().numpy(), found)


@pytest.mark.slow
def test_similarities_of_many_blocks_are_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    smiles = ["C" * n + "O" for n in range(1, 12)]
    rows, columns = np.array([0, 3, -1, 10, 3]), np.array([2, -1, 5, 7, 9, 1, 0])
    whole = BlockSimilarities(smiles).between(rows, columns)
    monkeypatch.setattr("seqopt.kernels.reagents.WHOLE", 1)
    for most in (4096, 3):  # in columns that are kept, and without room for them
        monkeypatch.setattr("seqopt.kernels.reagents.COLUMNS", most)
        several = BlockSimilarities(smiles)
        for _ in range(2):
            assert np.allclose(several.between(rows, columns), whole, atol=1e-6)
            assert np.allclose(several.between(columns, rows), whole.T, atol=1e-6)


def test_the_gradient_of_the_likelihood_is_that_of_finite_differences() -> None:
    space = _space()
    rng = np.random.default_rng(3)
    tuples = rng.permutation(_all(space))[:15]
    likelihood = ReagentLikelihood(
        tuples,
        rng.standard_normal(15),
        rng.uniform(0, 0.1, 15),
        BlockSimilarities([block.key for block in space.reagents.blocks]),
    )
    vector = ReagentParameters.first(3).vector() + 0.3 * rng.standard_normal(12)
    numeric = approx_fprime(vector, lambda at: likelihood(at)[0], 1e-6)
    assert np.allclose(likelihood(vector)[1], numeric, atol=2e-3)


def test_a_factor_that_grew_predicts_as_one_that_did_not() -> None:
    space = _space()
    rng = np.random.default_rng(0)
    strings = space.sample(30, rng)
    values = [float(len(string)) for string in strings]
    grown, whole = ReagentGP(refit_growth=10.0), ReagentGP(refit_growth=10.0)
    for gp in (grown, whole):
        gp.bind(space)
        gp.fit(strings[:10], values[:10], rng=np.random.default_rng(1))
    for size in (15, 22, 30):
        grown.fit(strings[:size], values[:size], rng=rng)
    order = [*range(1, 30), 0]  # in another order nothing can be extended
    whole.fit([strings[index] for index in order], [values[index] for index in order], rng=rng)
    others = space.sample(60, np.random.default_rng(5))
    assert np.allclose(grown.predict(others), whole.predict(others), atol=1e-6)
    posterior = grown.conditioned().at(others)
    mean, std = grown.untransform(posterior.moments.mean[0].numpy(), posterior.moments.variance[0].numpy())
    assert np.allclose(mean, grown.predict(others)[0], atol=1e-6)
    assert np.allclose(std, grown.predict(others)[1], atol=1e-5)


@pytest.mark.parametrize("reactions", [(AMIDE,), (AMIDE, UGI)])
def test_means_on_the_grid_are_those_of_each_tuple(reactions: tuple[str, ...]) -> None:
    space = _space(*reactions)
    gp, _, _ = _fitted(space)
    grid = TupleGrid(space)
    for reaction, means in enumerate(GridPosterior(gp, grid).mean()):
        tuples = grid.tuples(reaction, np.arange(len(means)))
        assert np.allclose(means, gp.moments(tuples)[0], atol=1e-4)
        assert (grid.flat(tuples)[1] == np.arange(len(means))).all()


@pytest.mark.slow
def test_draws_on_the_grid_have_the_moments_of_the_posterior() -> None:
    space = _space()
    gp, _, _ = _fitted(space)
    grid = TupleGrid(space)
    draws = GridPosterior(gp, grid).draws(600, np.random.default_rng(0))
    found = np.stack([np.concatenate(one) for one in draws]).astype(float)
    tuples = _all(space)
    mean, variance = gp.moments(tuples)
    # Four standard errors of a mean, and of a variance of normal draws.
    assert (np.abs(found.mean(0) - mean) < 5 * np.sqrt(variance / 600) + 1e-3).all()
    assert (np.abs(found.var(0) / variance - 1) < 5 * np.sqrt(2 / 600) + 0.02).all()
    joint = gp.fitted.evaluator
    some = np.array([0, 5, 20, 40])
    rows, data = FeatureRows(tuples[some].astype(float)), gp.fitted.encoded
    solved = np.linalg.solve(gp.fitted.cholesky[0].numpy(), joint.cross(data, rows))
    covariance = joint.cross(rows, None) - solved.T @ solved
    assert np.allclose(np.cov(found[:, some].T), covariance, atol=6 * variance.max() / np.sqrt(600))


def test_the_best_by_additive_terms_are_those_of_enumeration() -> None:
    space = _space()
    gp, _, _ = _fitted(space)
    kernel, data, alpha = gp.kernel, numbers_of(gp.fitted.encoded), gp.fitted.alpha[0].numpy()
    for reaction in range(2):
        mine = _all(space)[_all(space)[:, 0] == reaction]
        weight = alpha * np.where(data[:, 0] == reaction, 1.0, kernel.between)
        count = space.components(reaction)
        values = sum(kernel.weights[s] * kernel.slot(s, mine[:, s + 1], data[:, s + 1]) @ weight for s in range(count))
        best = additive_best(gp, reaction, 10)
        places = [int(np.flatnonzero((mine == row).all(1))[0]) for row in best]
        assert len(set(places)) == 10
        assert np.allclose(values[places], np.sort(values)[::-1][:10])


def test_one_component_is_varied_in_one_call() -> None:
    space = _space()
    gp, _, _ = _fitted(space)
    individual = _all(space)[-1]
    for slot in range(3):
        blocks, means = component_means(gp, individual, slot)
        rows = np.repeat(individual[None], len(blocks), axis=0)
        rows[:, slot + 1] = blocks
        assert np.allclose(means, gp.moments(rows)[0], atol=1e-6)


def test_interactions_are_learned() -> None:
    # The value is a product over components: no sum of terms explains it.
    space = CombinatorialSpace(
        [AMIDE],
        {
            "acids": ["C" * n + "C(=O)O" for n in range(1, 13)],
            "amines": ["N" + "C" * n + "F" for n in range(2, 14)],
        },
    )
    sizes = {(a, b): (a - 5.5) * (b - 5.5) for a in range(12) for b in range(12)}
    tuples = [(0, a, 12 + b) for a, b in sizes]
    order = np.random.default_rng(0).permutation(len(tuples))
    strings, values = space.to_strings(tuples), np.array(list(sizes.values()))
    gp = ReagentGP()
    gp.bind(space)
    train, rest = order[:90], order[90:]
    gp.fit([strings[i] for i in train], values[train], rng=np.random.default_rng(0))
    mean, _ = gp.predict([strings[i] for i in rest])
    assert 1 - np.square(mean - values[rest]).sum() / np.square(values[rest] - values.mean()).sum() > 0.8
    assert gp.hyperparameters["weight[1+2]"] > gp.hyperparameters["weight[1]"]


def test_other_spaces_and_strings_are_refused() -> None:
    with pytest.raises(InputError, match="a StringSpace has none"):
        ReagentGP().bind(StringSpace("01", 4))
    gp, _, _ = _fitted(_space())
    assert set(gp.unsupported(["CNC(C)=O", "CCO"])) == {1}
    with pytest.raises(InputError, match="'CCO' is not a product"):
        gp.predict(["CCO"])


@pytest.mark.parametrize("noisy", [False, True])
def test_values_may_come_in_other_units_before_parameters_are_fitted_again(noisy: bool) -> None:
    # A transform that is learned anew changes all values at once.
    space = _space()
    strings = space.sample(20, np.random.default_rng(2))
    values = np.array([len(string) + 3.0 * string.count("F") for string in strings])
    noise = np.where(np.arange(20) % 3, 0.0, 0.5) if noisy else np.zeros(20)
    found = []
    for scale, shift in ((1.0, 0.0), (0.01, -7.0)):
        gp = ReagentGP()
        gp.bind(space)
        gp.fit(strings[:18], values[:18], rng=np.random.default_rng(0), noise_variance=noise[:18])
        again = scale * values + shift
        gp.fit(strings, again, rng=np.random.default_rng(0), noise_variance=scale**2 * noise)
        assert gp.units == pytest.approx((again.mean(), again.std(ddof=1)))
        mean, std = gp.predict(strings)
        found.append(((mean - shift) / scale, std / scale))
    assert np.allclose(found[0][0], found[1][0], rtol=1e-6)
    assert np.allclose(found[0][1], found[1][1], rtol=1e-5)


def test_a_fit_that_is_taken_back_begins_where_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    gp, strings, values = _fitted(_space())
    before = gp.state_dict()
    more = [*strings, *(one for one in gp.space.sample(40, np.random.default_rng(3)) if one not in strings)][:16]
    others = [*values, 1.0, 2.0, 3.0, 4.0]
    gp.fit(more, others, rng=np.random.default_rng(0))
    fresh = ReagentGP()
    fresh.bind(gp.space)
    fresh.load_state_dict(before)
    fresh.fit(more, np.square(others), rng=np.random.default_rng(0))
    gp.load_state_dict(before)

    sizes, cross = [], ReagentKernel.cross

    def counted(kernel: ReagentKernel, a: FeatureRows, b: FeatureRows | None = None) -> np.ndarray:
        sizes.append((len(a), len(a if b is None else b)))
        return cross(kernel, a, b)

    monkeypatch.setattr(ReagentKernel, "cross", counted)
    gp.fit(more, np.square(others), rng=np.random.default_rng(0))
    assert sorted(sizes) == [(4, 4), (12, 4)]
    monkeypatch.undo()
    for one, other in zip(gp.predict(more), fresh.predict(more), strict=True):
        assert np.allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize(("whole", "columns"), [(1_000, 10), (2, 1_000), (2, 5), (2, 3)])
def test_weighted_similarities_are_products_with_the_table(
    monkeypatch: pytest.MonkeyPatch, whole: int, columns: int
) -> None:
    smiles = [f"{'C' * n}{end}" for n in range(1, 6) for end in ("O", "N", "c1ccccc1", "C(=O)O")]
    expected = BlockSimilarities(smiles).between(np.arange(20), np.arange(20))
    monkeypatch.setattr(reagents_module, "WHOLE", whole)
    monkeypatch.setattr(reagents_module, "COLUMNS", columns)
    monkeypatch.setattr(reagents_module, "AT_A_TIME", 3)
    similarities = BlockSimilarities(smiles)
    rng = np.random.default_rng(0)
    for count in (4, 1, 12, 5):
        chosen, rows = rng.choice(20, count, replace=False), rng.integers(20, size=9)
        weights = rng.standard_normal(count)
        found = similarities.weighted(rows, chosen, weights)
        np.testing.assert_allclose(found, expected[np.ix_(rows, chosen)] @ weights, atol=1e-6)
        with_none = similarities.weighted(rows, np.append(chosen, -1), np.append(weights, 5.0))
        np.testing.assert_allclose(with_none, found, atol=1e-12)
        # Either side may be the one that has been seen.
        np.testing.assert_allclose(similarities.between(chosen, rows), expected[np.ix_(chosen, rows)], atol=1e-6)
        np.testing.assert_allclose(similarities.between(rows, chosen), expected[np.ix_(rows, chosen)], atol=1e-6)
    kernel = ReagentKernel(similarities, 2, same=[0.3, 0.1])
    table = kernel.slot(0, rows, chosen)
    np.testing.assert_allclose(kernel.slot_weighted(0, rows, chosen, weights), table @ weights, atol=1e-6)
