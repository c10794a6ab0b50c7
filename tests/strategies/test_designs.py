"""Initial designs against their definitions."""

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from seqopt import CandidateSet, Optimizer, StringSpace
from seqopt.encoding import Encoder
from seqopt.errors import InputError, ModelError
from seqopt.kernels import NgramKernel, SubsequenceKernel
from seqopt.models import FullyBayesianGP, KernelDistances
from seqopt.strategies import BORE, Design, MaxMinDesign, MedoidsDesign

SMILES = ["CCO", "CCCO", "CCCCO", "c1ccccc1", "c1ccccc1O", "c1ccccc1N", "CC(=O)O", "CCN", "CCCN", "C1CCCCC1", "CCCl"]


class Points:
    """Squared distances between points on a line."""

    def __init__(self, places: Sequence[float]) -> None:
        places = np.asarray(places, dtype=np.float64)
        self.squared = (places[:, None] - places) ** 2

    def __len__(self) -> int:
        return len(self.squared)

    def columns(self, indices: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return self.squared[:, np.asarray(indices)]


@pytest.mark.parametrize("known", [0, 2])
def test_each_string_of_maxmin_is_the_farthest_from_those_before(known: int) -> None:
    places = np.random.default_rng(0).random(30)
    points = Points(places)
    chosen = MaxMinDesign().choose(6, points, known, np.random.default_rng(1))
    assert len(set(chosen)) == 6
    before = list(range(30 - known, 30))
    for index in chosen:
        if before:
            nearest = points.squared[: 30 - known, before].min(axis=1)
            assert nearest[index] == nearest.max()
        before.append(index)


def test_maxmin_decides_at_random_between_equals() -> None:
    points = Points([0.0, 1.0, -1.0, 0.0])  # the last is known
    first = {MaxMinDesign().choose(1, points, 1, np.random.default_rng(seed))[0] for seed in range(20)}
    assert first == {1, 2}


def test_medoids_are_the_best_representatives_of_a_small_set() -> None:
    # Three groups far apart: every other choice of three serves one of them badly.
    places = [0.0, 0.1, 0.3, 10.0, 10.2, 10.3, 20.0, 20.4, 20.5, 20.6]
    points = Points(places)
    chosen = MedoidsDesign().choose(3, points, 0, np.random.default_rng(0))
    costs = {
        subset: points.squared[:, list(subset)].min(axis=1).sum() for subset in itertools.combinations(range(10), 3)
    }
    assert costs[tuple(sorted(chosen))] == pytest.approx(min(costs.values()))


def test_medoids_leave_to_known_strings_what_these_serve() -> None:
    points = Points([0.0, 0.1, 10.0, 10.1, 0.05])  # the last, in the middle of the first group, is known
    (index,) = MedoidsDesign().choose(1, points, 1, np.random.default_rng(0))
    assert index in (2, 3)


@pytest.mark.parametrize("design", [MaxMinDesign(), MedoidsDesign()])
def test_all_are_chosen_where_there_are_too_few(design: Design) -> None:
    assert sorted(design.choose(9, Points([0.0, 1.0, 1.0, 3.0]), 1, np.random.default_rng(0))) == [0, 1, 2]


def test_distances_are_those_of_the_kernel_before_a_fit() -> None:
    strings = ["AAB", "ABBA", "BBBB", "AB"]
    kernel = SubsequenceKernel(normalize=False)
    encoded = Encoder().encode(strings)
    distances = KernelDistances(kernel, encoded)
    gram = kernel.cross(encoded)
    for a, b in itertools.product(range(4), repeat=2):
        expected = gram[a, a] + gram[b, b] - 2 * gram[a, b]
        assert distances.columns([b])[a, 0] == pytest.approx(expected, abs=1e-9)


def test_a_kernel_that_adapts_to_strings_is_left_as_it_is() -> None:
    kernel = NgramKernel()
    before = kernel.lengthscale.item()
    found = KernelDistances(kernel, Encoder().encode(["AAAAAAAA", "BBBBBBBB", "ABABABAB"])).columns([0])
    assert kernel.lengthscale.item() == before
    assert 0.1 < found[1, 0] < 1.9  # neither all alike nor all as far as can be


@pytest.mark.parametrize("design", ["maxmin", "medoids"])
def test_a_design_is_fixed_by_the_seed(design: str) -> None:
    pool = CandidateSet(SMILES, kind="molecule")
    first, again, other = (Optimizer(pool, initial=5, design=design, seed=seed).ask() for seed in (1, 1, 2))
    assert first == again
    assert len(set(first)) == len(set(other)) == 5


def test_farthest_first_is_farther_apart_than_random_strings() -> None:
    space = StringSpace("ABCD", 8)

    def nearest(design: str, seed: int) -> float:
        found = Optimizer(space, surrogate="ssk", initial=12, design=design, seed=seed).ask()
        squared = KernelDistances(SubsequenceKernel(), space.encoder.encode(found)).columns(np.arange(len(found)))
        return float(squared[~np.eye(len(found), dtype=bool)].min())

    for seed in range(3):
        assert nearest("maxmin", seed) > nearest("random", seed)


def test_what_is_known_or_awaited_is_not_chosen_again_and_kept_away_from() -> None:
    pool = CandidateSet(SMILES, kind="molecule")
    optimizer = Optimizer(pool, initial=8, design="maxmin", seed=3)
    optimizer.tell(["CCO"], [1.0])
    first = optimizer.ask(3)
    second = optimizer.ask(4)
    assert len({"CCO", *first, *second}) == 8


def test_a_search_without_distances_refuses_a_design() -> None:
    with pytest.raises(InputError, match=r"maxmin.*choose the design random"):
        Optimizer(["AB", "BA", "BB"], strategy=BORE(), initial=2, design="maxmin")
    with pytest.raises(InputError, match="unknown design 'latin'"):
        Optimizer(["AB", "BA", "BB"], initial=2, design="latin")
    several = FullyBayesianGP([SubsequenceKernel(), NgramKernel()])
    with pytest.raises(ModelError, match="of 2 kernels has no one distance"):
        Optimizer(["AB", "BA", "BB"], surrogate=several, initial=2, design="maxmin")
    one = Optimizer(["AB", "BA", "BB"], surrogate=FullyBayesianGP(SubsequenceKernel()), initial=2, design="maxmin")
    assert len(one.ask()) == 2
    with pytest.raises(InputError, match="sample is 0"):
        MaxMinDesign(0)
    assert len(Optimizer(["AB", "BA", "BB"], strategy=BORE(), initial=2).ask()) == 2
