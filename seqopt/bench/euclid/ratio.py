"""Density ratios over a box, whose points are written as strings: our own strategies and classifiers search it.

A point of the unit cube is its coordinates, separated by blanks: ``"0.25 0.5"``. `Coordinates` reads them for a
classifier of tables, and `PolishedSearch` maximises a score over the cube by L-BFGS from the best of random points.

References:
    Tiao, L. C. et al. (2021). BORE: Bayesian optimization by density-ratio estimation. ICML.
    Song, J. et al. (2022). A general recipe for likelihood-free Bayesian optimization. ICML.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from seqopt.bench.euclid.functions import Problem
from seqopt.encoding import Encoder
from seqopt.errors import InputError
from seqopt.models.classifiers import Perceptron, RandomForest
from seqopt.optimizer import Optimizer
from seqopt.scorers import Scoring
from seqopt.search import Proposal, RandomSearch
from seqopt.strategies import BORE, LFBO, RandomStrategy, Strategy

FloatArray = npt.NDArray[np.float64]

DIGITS = 9
"""Of coordinates."""

DRAWN, STARTS = 1024, 5
"""Random points that are scored, and how many of the best are polished, as in the authors' program."""

STEP = 1e-3
"""Of differences; networks compute in single precision, in which those of closer points are noise."""

ITERATIONS = 50
"""Of L-BFGS."""

RATE, STEPS = 0.01, 300
"""Of the perceptron's training."""


def written(points: FloatArray) -> list[str]:
    """Points of the unit cube, ``n x d``, as strings.

    Example:
        >>> written(np.array([[0.25, 0.5]]))
        ['0.25 0.5']
    """
    return [" ".join(f"{number:.{DIGITS}g}" for number in point) for point in points.tolist()]


def read(strings: Sequence[str]) -> FloatArray:
    """The points that strings stand for, ``n x d``."""
    return np.array([[float(number) for number in string.split()] for string in strings], dtype=np.float64)


class Coordinates:
    """Coordinates of points; implements `seqopt.encoding.Featurizer`.

    Args:
        dim: Number of coordinates.
    """

    def __init__(self, dim: int) -> None:
        self.name, self.size = f"coordinates {dim}", dim

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """``n x d``."""
        return read(strings).reshape(-1, self.size)


class Box:
    """The unit cube as a space of strings; implements `seqopt.spaces.Space`.

    Args:
        dim: Number of coordinates.
    """

    kind = "text"

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.encoder = Encoder("characters")

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        """``n`` uniform points."""
        return written(rng.random((n, self.dim)))

    def contains(self, string: str) -> bool:
        """Whether it is a point of the cube."""
        try:
            point = read([string])
        except ValueError:
            return False
        return point.shape == (1, self.dim) and bool(((point >= 0.0) & (point <= 1.0)).all())

    def key(self, string: str) -> str:
        """The same point with rounded coordinates.

        Raises:
            InputError: If it is no point of the cube.
        """
        if not self.contains(string):
            raise InputError(f"{string!r} is not a point: expected {self.dim} numbers from 0 to 1")
        return written(read([string]))[0]

    def keys_of(self, strings: Sequence[str]) -> list[str]:
        """The keys of many points."""
        return [self.key(string) for string in strings]


class PolishedSearch:
    """The best of random points, the best of which L-BFGS goes on from; implements `seqopt.search.Search`.

    Derivatives are central differences of the score.
    """

    def propose(
        self, n: int, *, space: Box, scoring: Scoring, excluded: Set[str], rng: np.random.Generator
    ) -> list[Proposal]:
        """See `seqopt.search.Search`."""
        found: list[Proposal] = []
        drawn = rng.random((DRAWN, space.dim))
        scorer = scoring.scorer(written(drawn))
        for _ in range(n):

            def score(points: FloatArray) -> FloatArray:
                return np.asarray(scorer.scores(written(points)), dtype=np.float64)

            values = score(drawn)
            starts = drawn[np.argsort(-values, kind="stable")[:STARTS]]
            ends = np.concatenate([polished(score, starts), drawn])
            order = np.argsort(-np.concatenate([score(ends[: len(starts)]), values]), kind="stable")
            taken = excluded | {proposal.key for proposal in found}
            names = written(ends[order])
            string = next((name for name in names if name not in taken), None)
            if string is None:
                break
            found.append(Proposal.of(string, scorer.choose(string)))
        return found


def polished(score: Callable[[FloatArray], FloatArray], starts: FloatArray) -> FloatArray:
    """Where L-BFGS ends from each of k points of the cube, ``k x d``; it maximises."""

    def loss(flat: FloatArray, count: int) -> tuple[float, FloatArray]:
        at = flat.reshape(count, -1)
        offsets = STEP * np.eye(at.shape[1])
        above, below = np.minimum(at[:, None] + offsets, 1.0), np.maximum(at[:, None] - offsets, 0.0)
        values = score(np.concatenate([at, above.reshape(-1, at.shape[1]), below.reshape(-1, at.shape[1])]))
        up, down = values[count:].reshape(2, count, -1)
        width = (above - below).diagonal(axis1=1, axis2=2)
        return -float(values[:count].sum()), (-(up - down) / width).reshape(-1)

    # One at a time: a line search of their sum would be cut short by whichever is steepest.
    ends = [
        minimize(
            loss,
            start,
            args=(1,),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * len(start),
            options={"maxiter": ITERATIONS, "maxfun": 2 * ITERATIONS},
        ).x
        for start in starts
    ]
    return np.clip(np.array(ends), 0.0, 1.0)


def lfbo_perceptron(dim: int) -> Strategy:
    """LFBO with a perceptron, a tenth of its proposals random.

    The authors' network goes on from the weights of the step before; ours begins anew, and learns faster instead.
    """
    classifier = Perceptron(Coordinates(dim), activation="elu", rate=RATE, steps=STEPS)
    return LFBO(classifier, gamma=1 / 3, search=PolishedSearch(), epsilon=0.1)


def lfbo_perceptron_published(dim: int) -> Strategy:
    """The same with the 100 gradient steps at the rate of 0.001 that are published, and no weights to go on from."""
    return LFBO(Perceptron(Coordinates(dim), activation="elu"), gamma=1 / 3, search=PolishedSearch(), epsilon=0.1)


def bore_forest(dim: int) -> Strategy:
    """BORE with a random forest and 500 random points."""
    return BORE(RandomForest(Coordinates(dim)), gamma=1 / 3, search=RandomSearch(500))


def random_points(dim: int) -> Strategy:
    """Random points."""
    return RandomStrategy()


def with_strategy(
    problem: Problem,
    strategy: Strategy,
    evaluations: int,
    initial: int,
    first: np.random.Generator,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """A search of a function by a strategy, one point at a time.

    Args:
        problem: What is maximised; measured with its noise.
        strategy: Decides.
        evaluations: Points, the initial ones included.
        initial: Random points to begin with.
        first: Draws these, and the noise.
        rng: Fixes all else.

    Returns:
        All points and values, the noiseless regret of the best point so far after each, and processor seconds.
    """
    box = Box(problem.dim)
    optimizer = Optimizer(box, strategy=strategy, initial=initial, batch_size=1, seed=int(rng.integers(2**31)))
    seconds = []

    def measure(strings: Sequence[str]) -> None:
        points = read(strings)
        values = problem.measure(points, np.full(len(points), problem.target), first)
        optimizer.tell(strings, values.tolist())

    measure(box.sample(initial, first))
    while len(optimizer.observations) < evaluations:
        started = time.process_time()
        strings = optimizer.ask(1)
        seconds.append(round(time.process_time() - started, 4))
        measure(strings)
    rows = optimizer.observations.rows
    points = read([row.string for row in rows])
    return {
        "points": np.column_stack([points, np.full(len(points), problem.target)]).tolist(),
        "values": [float(f"{row.value:.9g}") for row in rows],
        "regret": np.minimum.accumulate(problem.regret(points)).tolist(),
        "choose_seconds": seconds,
    }
