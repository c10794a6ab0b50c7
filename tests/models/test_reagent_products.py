"""The part of the process on tuples that compares products, against fingerprints compared one by one."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator
from scipy.optimize import approx_fprime

from seqopt.acquisition import resolve_acquisition
from seqopt.encoding import FeatureRows
from seqopt.errors import InputError
from seqopt.kernels import BlockSimilarities, ReagentKernel
from seqopt.kernels.products import ProductSimilarities
from seqopt.models import ReagentGP
from seqopt.models.reagent_fit import ReagentLikelihood, ReagentParameters
from seqopt.models.reagent_grid import GridPosterior, TupleGrid
from seqopt.scorers import GaussianScoring
from seqopt.search import ReagentSearch
from seqopt.spaces import CombinatorialSpace

AMIDE = "[C:1](=[O:2])[OH].[N;H1,H2;!$(NC=O):3]>>[C:1](=[O:2])[N:3]"
REAGENTS = {
    "acids": ["CC(=O)O", "OC(=O)c1ccccc1", "OC(=O)c1ccncc1", "OC(=O)C1CC1", "OC(=O)CCl"],
    "amines": ["CN", "CCN", "NC1CCCCC1", "NCCF", "NCc1ccco1"],
}


@pytest.fixture(scope="module")
def space() -> CombinatorialSpace:
    return CombinatorialSpace([AMIDE], REAGENTS)


@pytest.fixture(scope="module")
def everything(space: CombinatorialSpace) -> np.ndarray:
    return TupleGrid(space).tuples(0, np.arange(25))


@pytest.fixture(scope="module")
def fitted(space: CombinatorialSpace) -> ReagentGP:
    rng = np.random.default_rng(0)
    strings = space.sample(12, rng)
    gp = ReagentGP(products=True)
    gp.bind(space)
    gp.fit(strings, [len(one) + 3.0 * one.count("c") * one.count("F") for one in strings], rng=rng)
    return gp


def _minmax(one: str, other: str) -> float:
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048, includeChirality=True)
    counts = [generator.GetCountFingerprint(Chem.MolFromSmiles(smiles)).GetNonzeroElements() for smiles in (one, other)]
    keys = set(counts[0]) | set(counts[1])
    pairs = [(counts[0].get(key, 0), counts[1].get(key, 0)) for key in keys]
    return sum(map(min, pairs)) / sum(map(max, pairs))


def _kernel(space: CombinatorialSpace, product: float) -> ReagentKernel:
    similarities = BlockSimilarities([block.key for block in space.reagents.blocks])
    return ReagentKernel(similarities, 2, products=ProductSimilarities(space), product=product)


def test_the_kernel_adds_the_similarity_of_products(space: CombinatorialSpace, everything: np.ndarray) -> None:
    kernel = _kernel(space, 0.7)
    rows = FeatureRows(everything.astype(float))
    products = [space.product(tuple(row)) for row in everything.tolist()]
    expected = 0.7 * np.array([[_minmax(str(a), str(b)) for b in products] for a in products])
    assert np.allclose(kernel.cross(rows) - kernel.of_blocks().cross(rows), expected)
    assert np.allclose(np.diag(kernel.cross(rows)), kernel.variance(rows), rtol=1e-6)
    some = rows.take([7, 3])
    assert np.allclose(kernel.cross(some, rows), kernel.cross(rows)[[7, 3]])


def test_few_fingerprints_are_kept(
    space: CombinatorialSpace, everything: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ProductSimilarities(space).between(everything)
    monkeypatch.setattr("seqopt.kernels.products.KEPT", 6)
    similarities = ProductSimilarities(space)
    for rows, columns in (([0, 3], [4, 5]), ([3, 9, 12], [11, 0]), ([3, 1], [3, 24, 23, 22])):
        assert np.allclose(similarities.between(everything[rows], everything[columns]), whole[np.ix_(rows, columns)])
        assert len(similarities) <= 6


def test_what_is_no_product_is_like_none(space: CombinatorialSpace) -> None:
    # An amine is no acid: the tuple gives no product.
    rows = np.array([[0, 5, 6], [0, 0, 5], [0, 6, 5]])
    found = ProductSimilarities(space).between(rows)
    assert found[1, [0, 2]].tolist() == [0.0, 0.0]
    assert np.linalg.eigvalsh(found).min() > -1e-9


def test_the_gradient_of_the_likelihood_is_that_of_finite_differences(
    space: CombinatorialSpace, everything: np.ndarray
) -> None:
    rng = np.random.default_rng(3)
    tuples = rng.permutation(everything)[:15]
    similarities = BlockSimilarities([block.key for block in space.reagents.blocks])
    likelihood = ReagentLikelihood(
        tuples, rng.standard_normal(15), rng.uniform(0, 0.1, 15), similarities, ProductSimilarities(space)
    )
    vector = ReagentParameters.first(2, products=True).vector() + 0.3 * rng.standard_normal(8)
    numeric = approx_fprime(vector, lambda at: likelihood(at)[0], 1e-6)
    assert np.allclose(likelihood(vector)[1], numeric, atol=2e-3)


def test_moments_and_draws_are_those_of_dense_algebra(fitted: ReagentGP, everything: np.ndarray) -> None:
    state, kernel = fitted.fitted, fitted.kernel
    rows, data = FeatureRows(everything.astype(float)), state.encoded
    gram = kernel.cross(data) + np.diag(state.observed_noise[0].numpy())
    for one in (kernel, kernel.of_blocks()):
        link = one.cross(data, rows)
        mean = link.T @ np.linalg.solve(gram, state.targets.numpy())
        covariance = one.cross(rows) - link.T @ np.linalg.solve(gram, link)
        found = fitted.moments(everything, blocks_only=one is not kernel)
        assert np.allclose(found[0], mean, atol=1e-5)
        assert np.allclose(found[1], np.diag(covariance), atol=1e-5)
        if one is kernel:
            exact, draws = fitted.joint_draws(everything, 4_000, np.random.default_rng(0))
            assert np.allclose(exact, mean, atol=1e-5)
            assert np.allclose(draws.mean(0), mean, atol=5 * np.sqrt(np.diag(covariance).max() / 4_000))
            assert np.allclose(np.cov(draws.T), covariance, atol=6 * np.diag(covariance).max() / np.sqrt(4_000))
    means = GridPosterior(fitted, TupleGrid(fitted.space)).mean()[0]
    assert np.allclose(means, fitted.moments(everything, blocks_only=True)[0], atol=1e-4)


def test_a_model_is_restored_with_its_weight_of_products(space: CombinatorialSpace, fitted: ReagentGP) -> None:
    other, without = ReagentGP(products=True), ReagentGP()
    for one in (other, without):
        one.bind(space)
    other.load_state_dict(fitted.state_dict())
    assert other.hyperparameters == fitted.hyperparameters
    assert fitted.hyperparameters["weight[product]"] > 0
    with pytest.raises(InputError, match="not those of a model that compares blocks only"):
        without.load_state_dict(fitted.state_dict())


def _scoring(gp: ReagentGP, name: str) -> GaussianScoring:
    return GaussianScoring(gp, resolve_acquisition(name), batch_size=3, rng=np.random.default_rng(1))


@pytest.mark.parametrize("largest", [2_000_000, 1])
def test_the_batch_is_chosen_by_blocks_and_products(
    space: CombinatorialSpace, fitted: ReagentGP, everything: np.ndarray, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqopt.search.reagents.LARGEST", largest)
    known = {str(key) for key in fitted.fitted.keys}
    search = ReagentSearch(draws=4, shortlist=30)
    products = [str(space.product(tuple(row))) for row in everything.tolist()]
    means = {key: mean for key, mean in zip(products, fitted.moments(everything)[0], strict=True) if key not in known}
    found = search.propose(
        3, space=space, scoring=_scoring(fitted, "mean"), excluded=known, rng=np.random.default_rng(2)
    )
    best = sorted(means, key=means.__getitem__, reverse=True)[:3]
    assert [one.key for one in found] == best


def test_draws_of_the_whole_model_make_the_batch(space: CombinatorialSpace, fitted: ReagentGP) -> None:
    known = {str(key) for key in fitted.fitted.keys}
    batches = [
        ReagentSearch(draws=3, dispersion=dispersion).propose(
            3, space=space, scoring=_scoring(fitted, "thompson"), excluded=known, rng=np.random.default_rng(5)
        )
        for dispersion in (1e-9, 1.0, 1.0)
    ]
    # Without deviations each draw is the mean.
    scores = [one.acquisition for one in batches[0]]
    assert scores == pytest.approx([one.predicted_mean for one in batches[0]], abs=1e-4)
    assert [one.key for one in batches[1]] == [one.key for one in batches[2]]
    assert not known & {one.key for one in batches[1]}


def test_a_nomination_makes_no_product(
    fitted: ReagentGP, everything: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a product was made")

    monkeypatch.setattr(ProductSimilarities, "between", refuse)
    fitted.moments(everything, blocks_only=True)
    GridPosterior(fitted, TupleGrid(fitted.space)).draws(1, np.random.default_rng(0))


def test_a_weight_without_products_is_refused() -> None:
    with pytest.raises(InputError, match=r"product is 0\.5"):
        ReagentKernel(["CCO"], 2, product=0.5)
