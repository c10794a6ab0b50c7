"""What teaches most: refusals, batches on pools and generated strings, gains."""

from __future__ import annotations

import numpy as np
import pytest

from seqopt import CandidateSet, Optimizer
from seqopt.acquisition import SAL, SCoreBO
from seqopt.errors import InputError
from seqopt.kernels import (
    JointKernel,
    NgramKernel,
    OneHotKernel,
    SitesKernel,
    SubsequenceKernel,
    SubstitutionKernel,
    TanimotoKernel,
)
from seqopt.models import FullyBayesianGP, GridSampler, SliceSampler, StringGP, averaged
from seqopt.search import GeneticSearch, PoolSearch
from seqopt.spaces import StringSpace
from seqopt.strategies import BORE, Gain, ModelBased, gain_of, learner_of

POOL = ["".join("AT"[(number >> bit) & 1] for bit in range(6)) for number in range(64)]


def score(string: str) -> float:
    return string.count("AT") + 0.5 * string.count("TT")


def small() -> FullyBayesianGP:
    grid = {"lengthscale": [1.0, 3.0, 9.0]}
    sampler = GridSampler(grid, outputscales=[0.3, 1.0, 3.0], noise_variances=[1e-3, 1e-2, 0.1])
    return FullyBayesianGP(NgramKernel(2), sampler)


@pytest.mark.parametrize(
    ("acquisition", "space"),
    [
        *((name, CandidateSet(POOL)) for name in ("sal", "bald", "bqbc", "balm", "qbmgp", "scorebo")),
        *((name, StringSpace("AT", 6)) for name in ("sal", "scorebo")),
    ],
)
def test_batches_of_pools_and_generated_strings(acquisition, space):
    found = []
    search = GeneticSearch(population=20, evolutions=2, sample=40) if isinstance(space, StringSpace) else PoolSearch()
    for _ in range(2):
        optimizer = Optimizer(
            space, surrogate=small(), acquisition=acquisition, search=search, initial=4, batch_size=3, seed=1
        )
        first = optimizer.ask()
        optimizer.tell(first, [score(string) for string in first])
        second = optimizer.ask()
        assert len({*first, *second}) == 7
        found.append(list(second))
        optimizer.ask(2)  # given what is pending
    assert found[0] == found[1]


@pytest.mark.parametrize("acquisition", ["sal", "bald", "bqbc"])
def test_a_model_of_one_draw_is_refused_before_anything_is_evaluated(acquisition):
    for surrogate in ("ssk", StringGP(NgramKernel(2)), FullyBayesianGP(NgramKernel(2), draws=1)):
        with pytest.raises(InputError, match=f"acquisition function {acquisition} asks .* it needs a fully Bayesian"):
            Optimizer(POOL, surrogate=surrogate, acquisition=acquisition)
    for fine in ("balm", "qbmgp", "scorebo"):
        Optimizer(POOL, surrogate="ssk", acquisition=fine)


def test_parameters_of_a_point_estimate_are_averaged_over():
    kernels = {SubsequenceKernel: GridSampler, NgramKernel: GridSampler, TanimotoKernel: GridSampler}
    for kernel, sampler in kernels.items():
        own = kernel()
        found = averaged(StringGP(own), draws=5)
        assert found.draws == 5
        assert isinstance(found.config_arguments()["sampler"], sampler)
        assert found.kernels[0] is not own
    many = averaged(StringGP(JointKernel(SubsequenceKernel(2), TanimotoKernel(), 4), encoder=None))
    assert isinstance(many.config_arguments()["sampler"], SliceSampler)
    several = FullyBayesianGP([NgramKernel(), OneHotKernel()])
    assert averaged(several) is several
    assert averaged(FullyBayesianGP(NgramKernel(), draws=1)).draws == 8
    mean = lambda strings: [0.0] * len(strings)  # noqa: E731
    assert averaged(StringGP(mean=mean)).mean is mean
    with pytest.raises(InputError, match="a surrogate with a noise that is known cannot"):
        averaged(StringGP(noise=1e-4))
    with pytest.raises(InputError, match="parameters of a int cannot be averaged"):
        averaged(3)


def test_a_learner_leaves_the_search_as_it_was():
    optimizer = Optimizer(POOL, surrogate="ngrams", initial=4, batch_size=3, seed=1)
    first = optimizer.ask()
    optimizer.tell(first, [score(string) for string in first])
    before = optimizer.strategy.state_dict()
    learner = learner_of(optimizer.strategy.then, optimizer.space)
    batch = optimizer.ask(3, by=learner)
    assert optimizer.strategy.state_dict() == before
    assert len({*first, *batch}) == 7
    assert isinstance(learner.surrogate, FullyBayesianGP)
    assert learner.surrogate is not optimizer.surrogate
    other = learner_of(optimizer.strategy.then, optimizer.space, SCoreBO())
    assert other.acquisition.name == "scorebo"
    mixed = ModelBased(small(), "gibbon")
    mixed.start(CandidateSet(POOL))
    own = learner_of(mixed, CandidateSet(POOL)).surrogate
    assert own is not mixed.surrogate
    assert isinstance(own, FullyBayesianGP)
    with pytest.raises(InputError, match="and a BORE decides here"):
        learner_of(BORE(), CandidateSet(POOL))


def test_gains_are_those_of_the_model_and_more_than_at_random():
    space, rng = CandidateSet(POOL), np.random.default_rng(0)
    strategy = ModelBased(small(), SAL())
    strategy.start(space)
    optimizer = Optimizer(space, strategy=strategy, initial=6, batch_size=5, seed=3)
    first = optimizer.ask()
    optimizer.tell(first, [score(string) for string in first])
    batch = list(optimizer.ask())
    gain = gain_of(strategy.surrogate, space, batch, known=first, rng=rng)
    assert isinstance(gain, Gain)
    assert 0 < gain.then < gain.now
    assert 0 < gain.random < gain.now
    assert 0 < gain.saved < 1
    more = gain_of(strategy.surrogate, space, batch, known=first, pending=POOL[40:60], rng=np.random.default_rng(0))
    assert more is not None
    assert more.now < gain.now
    assert gain_of(strategy.surrogate, space, POOL, rng=rng) is None
    assert gain_of(strategy.surrogate, space, [], rng=rng) is None
    generated = gain_of(strategy.surrogate, StringSpace("AT", 6), batch, known=first, rng=rng)
    assert generated is not None


def test_a_mixture_learns_in_the_place_of_a_lengthscale_for_each_site() -> None:
    parent = "MKVLSTPEAGHIKLMNQRST"
    variants = [parent[:place] + letter + parent[place + 1 :] for place in range(20) for letter in "ACDE"]
    space = CandidateSet(list(dict.fromkeys(variants)), kind="protein")
    strategy = ModelBased("sites")
    strategy.start(space)
    assert isinstance(strategy.surrogate, StringGP)
    assert isinstance(strategy.surrogate.kernel, SitesKernel)
    learning = learner_of(strategy, space).surrogate
    assert isinstance(learning, FullyBayesianGP)
    assert SubstitutionKernel in map(type, learning.kernels)
