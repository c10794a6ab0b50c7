"""Parts that do not fit each other, or say nonsense, are refused with both names, and before anything is paid for."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from seqopt import Optimizer, maximize
from seqopt.errors import InputError, ModelError
from seqopt.models import StringGP, Surrogate
from seqopt.search import GeneticSearch, PoolSearch, RandomSearch
from seqopt.spaces import CandidateSet, StringSpace

POOL = CandidateSet(["".join(letters) for letters in itertools.product("ab", repeat=4)], kind="text")
SPACE = StringSpace("ab", 6)


class Means:
    """A surrogate that predicts, and has no posterior to offer."""

    def fit(self, strings: Sequence[str], values: Any, *, rng: np.random.Generator) -> None:
        pass

    def predict(self, strings: Sequence[str]) -> Any:
        return np.zeros(len(strings)), np.ones(len(strings))

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


class OverPools(Means):
    def pool_posterior(self, pool: Any, indices: Any = None, pending: Any = ()) -> Any:
        raise AssertionError

    def untransform(self, mean: Any, variance: Any) -> Any:
        raise AssertionError


class Counting:
    """An objective that must not be called."""

    calls = 0

    def __call__(self, strings: Sequence[str]) -> list[float]:
        self.calls += len(strings)
        return [0.0] * len(strings)


@pytest.mark.parametrize(
    ("surrogate", "space", "search", "said"),
    [
        (Means, POOL, "auto", "Means has no posterior that PoolSearch and the acquisition function 'gibbon'"),
        (Means, SPACE, "auto", "Means has no posterior that GeneticSearch .* needs the methods conditioned"),
        (OverPools, SPACE, "auto", "OverPools has no posterior that GeneticSearch"),
        (OverPools, POOL, RandomSearch(5), "OverPools has no posterior that RandomSearch"),
        (StringGP, SPACE, PoolSearch(), "PoolSearch looks at every candidate of a list, and a StringSpace is not one"),
        (StringGP, POOL, GeneticSearch(), "GeneticSearch .* CandidateSet"),
    ],
)
def test_parts_that_do_not_fit_are_refused_before_anything_is_evaluated(
    surrogate: Any, space: Any, search: Any, said: str
) -> None:
    assert isinstance(surrogate(), Surrogate)
    objective = Counting()
    for call in (
        lambda: Optimizer(space, surrogate=surrogate(), search=search),
        lambda: maximize(objective, space, surrogate=surrogate(), search=search, initial=3, budget=3),
    ):
        with pytest.raises(InputError, match=said):
            call()
    assert objective.calls == 0


def test_a_surrogate_without_a_posterior_is_enough_where_strings_are_random() -> None:
    assert maximize(Counting(), POOL, surrogate=Means(), acquisition="random", initial=3, budget=3).best_value == 0.0


class Odd:
    """An acquisition function whose scores are what a test says."""

    name = "odd"

    def __init__(self, scores: Any) -> None:
        self.scores = scores

    def prepare(self, posterior: Any, rng: np.random.Generator, batch_size: int = 1) -> Any:
        return lambda posterior: self.scores(posterior.moments.mean)


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (lambda mean: mean[0] * float("nan"), "odd returned NaN for .* strings, the first at index 0"),
        (lambda mean: torch.where(torch.arange(mean.shape[-1]) == 2, torch.nan, 1.0), "NaN for 1 of .* at index 2"),
        (lambda mean: mean[0, :-1], "odd returned scores of shape .* expected one number for each"),
        (lambda mean: mean[0].sum(), "odd returned scores of shape \\(\\)"),
        (lambda mean: mean, "odd returned scores of shape .*: average over draws"),
    ],
)
@pytest.mark.parametrize(
    ("space", "search"),
    [
        (POOL, PoolSearch()),
        (POOL, PoolSearch(candidates=6)),
        (SPACE, GeneticSearch(population=6, patience=1)),
        (SPACE, RandomSearch(20)),
    ],
    ids=["pool", "part of a pool", "genetic", "random"],
)
def test_scores_that_are_not_numbers_for_each_string_are_refused(
    scores: Any, said: str, space: Any, search: Any
) -> None:
    optimizer = Optimizer(space, surrogate="ssk-bayes", acquisition=Odd(scores), search=search, initial=4)
    strings = optimizer.ask()
    optimizer.tell(strings, [float(string.count("ab")) + index for index, string in enumerate(strings)])
    before = optimizer.state_dict()["observations"]
    with pytest.raises(ModelError, match=said):
        optimizer.ask()
    assert optimizer.state_dict()["observations"] == before
    assert optimizer.pending == []


def test_acquisition_functions_load_neither_kernels_nor_models() -> None:
    code = (
        "import sys, seqopt.acquisition, seqopt.posteriors;"
        "rooms = ('kernels', 'models', 'encoding', 'spaces', 'search', 'vae');"
        "print([name for name in sys.modules if name.split('.')[:2] in [['seqopt', room] for room in rooms]"
        " or name in ('gpytorch', 'botorch', 'rdkit')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
