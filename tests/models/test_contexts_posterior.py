"""Posteriors of a pool in every context, against those of the same queries one after another."""

import gpytorch
import numpy as np
import pytest
import torch

from seqopt import CandidateSet
from seqopt.data import Contexts, Query
from seqopt.encoding import FeatureEncoder
from seqopt.encoding.fields import ContextEncoder, FieldEncoder, NameEncoder
from seqopt.kernels import (
    CoregionalizationKernel,
    HierarchicalKernel,
    MinMaxKernel,
    NgramKernel,
    SameLevelKernel,
    SubsequenceKernel,
)
from seqopt.kernels.composite import OnField, Product, Sum, sharing_columns
from seqopt.models import BlockwisePosterior, SliceSampler, StringGP, gaussian
from seqopt.models.contexts import autoregressive, coregionalized, fold_mean, hierarchical
from seqopt.models.contexts_posterior import ContextsPosterior
from seqopt.posteriors import Moments, Posterior

POOL = ["ABC", "AAB", "CCA", "BCA", "CABA", "BBB", "ACAC", "CC"]
SPACE = CandidateSet(POOL)
CONTEXTS = {
    "levels": (coregionalized, Contexts.of_levels("f", {"a": 0.1, "b": 1.0}, target="b")),
    "folds": (fold_mean, Contexts.of_folds("f", ["a", "b"])),
    "plates": (hierarchical, Contexts.of_plates("f", known=["a", "b"])),
}


def fitted(name, averaged=False):
    build, contexts = CONTEXTS[name]
    gp = build(SPACE, contexts, kernel=SubsequenceKernel(2), averaged=averaged)
    items = [Query(key, {"f": level}) for level in "ab" for key in POOL[:5]]
    if averaged:
        gp._samplers = [SliceSampler(draws=8, burn_in=4, extensions=0)]
    rng = np.random.default_rng(0)
    gp.fit(items, [key.key.count("A") + rng.normal() for key in items], rng=rng)
    return gp, contexts


@pytest.mark.slow
@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("name", CONTEXTS)
def test_moments_are_those_of_the_queries(name, averaged, monkeypatch):
    monkeypatch.setattr("seqopt.models.contexts_posterior.BLOCK_CANDIDATES", 3)
    gp, contexts = fitted(name, averaged)
    queries = contexts.queries(POOL)
    pending = [Query("BBB", {"f": "a"})]
    found = gp.contexts_posterior(SPACE, contexts, pending=pending)
    assert isinstance(found, ContextsPosterior)
    assert isinstance(found, Posterior)
    expected = gp.conditioned(pending).at(queries)
    for step in (None, 2, 11, 2):
        if step is not None:
            found, expected = found.given(step), expected.given(step)
        for part in Moments.__dataclass_fields__:
            torch.testing.assert_close(
                getattr(found.moments, part), getattr(expected.moments, part), rtol=1e-6, atol=1e-8, msg=part
            )
    torch.testing.assert_close(found.conditioned_mean, expected.conditioned_mean)
    chosen = torch.tensor([1, 9, 12])
    for first, second in zip(found.joint(chosen, True), expected.joint(chosen, True), strict=True):
        torch.testing.assert_close(first, second, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(found.cross(chosen), expected.cross(chosen), rtol=1e-6, atol=1e-8)
    plain = gp.conditioned(pending).at(POOL).moments
    torch.testing.assert_close(gp.contexts_posterior(SPACE, contexts).target_moments.mean, plain.mean)


def test_some_candidates_and_where_memory_does_not_suffice(monkeypatch):
    gp, contexts = fitted("levels")
    some = gp.contexts_posterior(SPACE, contexts, np.array([5, 1]))
    whole = gp.contexts_posterior(SPACE, contexts)
    torch.testing.assert_close(some.moments.mean, whole.moments.mean[:, [5, 1, 13, 9]])
    monkeypatch.setattr(gaussian, "COLUMN_MEMORY", 10)
    blockwise = gp.contexts_posterior(SPACE, contexts)
    assert isinstance(blockwise, BlockwisePosterior)
    torch.testing.assert_close(blockwise.moments.outcome_mean, whole.moments.outcome_mean, rtol=1e-6, atol=1e-8)


def test_strings_are_compared_once_for_all_contexts(monkeypatch):
    monkeypatch.setattr("seqopt.models.contexts_posterior.CHECKED", 3)
    gp, contexts = fitted("levels")
    seen = []
    evaluated = SubsequenceKernel.cross

    def counted(self, a, b=None, *rest, **more):
        seen.append((len(a), len(a if b is None else b)))
        return evaluated(self, a, b, *rest, **more)

    monkeypatch.setattr(SubsequenceKernel, "cross", counted)
    posterior = gp.contexts_posterior(SPACE, contexts)
    assert [one for one in seen if one[1] == len(POOL)] == [(5, len(POOL))]  # ten queries of five strings
    seen.clear()
    posterior.given(6)
    assert [one for one in seen if one[1] == len(POOL)] == [(1, len(POOL))]
    seen.clear()
    gp.contexts_posterior(SPACE, contexts)  # columns are kept
    assert not seen


def test_a_fit_leaves_what_a_kernel_without_parameters_says_of_strings(monkeypatch):
    monkeypatch.setattr("seqopt.models.contexts_posterior.CHECKED", 3)
    space = CandidateSet(["CCO", "CCN", "CCC", "c1ccccc1", "CCCC", "OCCO", "NCCN", "CCCl"], kind="molecule")
    contexts = CONTEXTS["levels"][1]
    items = [Query(key, {"f": level}) for level in "ab" for key in space.keys[:4]]
    later = [*items, Query(space.keys[5], {"f": "a"}), Query(space.keys[5], {"f": "b"})]
    values = np.random.default_rng(0).normal(size=len(later))

    def fitted_to(*told):
        gp = coregionalized(space, contexts, kernel="minmax")
        for some in told:
            gp.fit(some, values[: len(some)], rng=np.random.default_rng(0))
            posterior = gp.contexts_posterior(space, contexts)
        return gp, posterior

    seen = []
    evaluated = MinMaxKernel.cross

    def counted(self, a, b=None, *rest, **more):
        seen.append((len(a), len(a if b is None else b)))
        return evaluated(self, a, b, *rest, **more)

    gp, _ = fitted_to(items)
    monkeypatch.setattr(MinMaxKernel, "cross", counted)
    gp.fit(later, values, rng=np.random.default_rng(0))
    seen.clear()
    found = gp.contexts_posterior(space, contexts)
    assert [one for one in seen if one[1] == len(space)] == [(1, len(space))]  # the new string
    seen.clear()
    found = found.given(7)
    assert [one for one in seen if one[1] == len(space)] == [(1, len(space))]
    expected = fitted_to(items, later)[1].given(7)
    for part in Moments.__dataclass_fields__:
        torch.testing.assert_close(getattr(found.moments, part), getattr(expected.moments, part))
    fresh = BlockwisePosterior(gp.conditioned().given(found.query(7)), contexts.queries(space.keys))
    torch.testing.assert_close(found.moments.outcome_mean, fresh.moments.outcome_mean, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(found.moments.remaining_variance, fresh.moments.remaining_variance, rtol=1e-6, atol=1e-8)


def test_what_is_shared_is_not_changed_by_its_user():
    kernel = OnField(SubsequenceKernel(2), "strings")
    items = fitted("levels")[0].encoder.encode(POOL)
    with sharing_columns([kernel]):
        first = kernel.cross(items, items)
        kept = first.copy()
        first *= 0.0
        np.testing.assert_array_equal(kernel.cross(items, items), kept)
    assert kernel._shared is None


class Letters:
    """Counts of three letters."""

    name, size = "letters", 3

    def __call__(self, strings):
        return np.array([[string.count(letter) for letter in "ABC"] for string in strings], dtype=float).reshape(-1, 3)


class Weighted(gpytorch.kernels.Kernel):
    """A kernel without parameters whose description says nothing of its weights."""

    def __init__(self, weights):
        super().__init__()
        self.weights = np.array(weights)

    def forward(self, x1, x2, diag=False, **params):
        weights = torch.from_numpy(self.weights)
        first, second = x1 * weights, x2 * weights
        return (first * second).sum(-1) if diag else first @ second.mT


def levels():
    return OnField(CoregionalizationKernel(2), "g")


def plates():
    return OnField(SameLevelKernel(), "f")


def strings(kernel=None):
    return OnField(MinMaxKernel() if kernel is None else kernel, "strings")


KERNELS = {
    "affine": lambda: strings() * levels() + levels(),
    "another kernel on columns": lambda: strings() * levels() + gpytorch.kernels.RBFKernel(active_dims=(2, 3, 4)),
    "equal descriptions": lambda: strings(Weighted([1.0, 0, 0])) * levels() + strings(Weighted([0.0, 1, 1])),
    "a square on one plate": lambda: Sum(strings(), Product(strings(), strings(), plates())),
    "a square": lambda: Product(strings(), strings(), levels()),
    "plates of levels": lambda: Product(strings(), strings(), HierarchicalKernel(levels(), plates())),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_that_are_affine_in_that_of_strings_and_others(name):
    contexts = Contexts.of_plates("f", known=["a", "b"])
    fields = {
        "f": NameEncoder("f"),
        "g": ContextEncoder("g", ("u", "v"), "v"),
        "strings": FeatureEncoder(Letters()),
    }
    gp = StringGP(KERNELS[name](), encoder=FieldEncoder(fields), restarts=1)
    rng = np.random.default_rng(0)
    for told in (POOL[:5], POOL[1:7]):
        items = [Query(key, {"f": level}) for level in "ab" for key in told]
        gp.fit(items, [key.key.count("A") + rng.normal() for key in items], rng=rng)
        found, expected = gp.contexts_posterior(SPACE, contexts), gp.conditioned().at(contexts.queries(POOL))
        for step in (None, 3, 9):
            if step is not None:
                found, expected = found.given(step), expected.given(step)
            for part in Moments.__dataclass_fields__:
                torch.testing.assert_close(
                    getattr(found.moments, part), getattr(expected.moments, part), rtol=1e-6, atol=1e-8, msg=part
                )


@pytest.mark.parametrize("known", [7, 8])
def test_a_table_grows_with_its_queries(known):
    pool = [*POOL, "AA", "BB", "ABAB"]
    space = CandidateSet(pool)
    contexts = CONTEXTS["levels"][1]
    gp = autoregressive(space, contexts, kernel=NgramKernel(), tied=False)
    items = [Query(key, {"f": level}) for level in "ab" for key in pool[:known]]
    rng = np.random.default_rng(0)
    gp.fit(items, rng.normal(size=len(items)), rng=rng)
    found, expected = gp.contexts_posterior(space, contexts), gp.conditioned().at(contexts.queries(pool))
    for step in (known, known + 1, known + 2, 20):
        found, expected = found.given(step), expected.given(step)
    torch.testing.assert_close(found.moments.remaining_variance, expected.moments.remaining_variance)
