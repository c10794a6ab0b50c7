"""An optimiser that has been used can be sent to another process or copied, and its copies resume as it does."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from seqopt import Optimizer
from seqopt.acquisition import GIBBON
from seqopt.models import FullyBayesianStringGP, StringGP
from seqopt.search import GeneticSearch, PoolSearch, RandomSearch
from seqopt.spaces import CandidateSet, CodonSpace, GrammarSpace, LocalSpace, StringSpace

WORDS = CandidateSet(["".join(letters) for letters in itertools.product("ab", repeat=4)], kind="text")
GENES = CandidateSet(["".join(c) for c in itertools.product(["AAA", "AAG"], ["GAA", "GAG"], ["GTT", "GTC", "GTA"])])
MOLECULES = CandidateSet(
    ["CCO", "CCN", "CCC", "CCCl", "CCBr", "c1ccccc1", "CC(C)O", "CCCO", "CNC", "COC", "CC=O"], kind="molecule"
)
QUICK = GeneticSearch(population=10, patience=2, restarts=1)
SEARCHES: dict[str, tuple[Any, dict[str, Any]]] = {
    **{name: (WORDS, {"surrogate": name}) for name in ("ssk", "ssk-bayes", "ngrams", "one-hot")},
    "codons": (GENES, {"surrogate": "codons"}),
    **{name: (MOLECULES, {"surrogate": name}) for name in ("minmax", "ssk+tanimoto")},
    "strings": (StringSpace("ab", min_length=2, max_length=8), {"search": QUICK}),
    "local": (LocalSpace(["ab", "cd", ["e", "ff"], "gh"]), {"search": QUICK}),
    "codon space": (CodonSpace("MKVLT", gc=(0.2, 0.7)), {"search": QUICK}),
    "grammar": (GrammarSpace("arithmetic", 1, 8), {"search": QUICK}),
    "random search": (StringSpace("ab", 8), {"search": RandomSearch(50)}),
    "fresh candidates": (WORDS, {"surrogate": "one-hot", "search": PoolSearch(candidates=8)}),
    "minimised": (WORDS, {"surrogate": "one-hot", "direction": "minimize", "transform": "log10"}),
    "thompson": (WORDS, {"surrogate": "one-hot", "acquisition": "thompson"}),
}
COPIES: dict[str, Callable[[Optimizer], Optimizer]] = {
    "pickle": lambda optimizer: pickle.loads(pickle.dumps(optimizer)),
    "deepcopy": copy.deepcopy,
}


def value(string: str) -> float:
    return 1.0 + sum(ord(letter) % 7 / (1 + place) for place, letter in enumerate(string))


def used(space: Any, options: dict[str, Any]) -> Optimizer:
    """With a fitted model, a failure, a result that was never asked for, and a string that is pending."""
    if not isinstance(space, CandidateSet):
        options = {"surrogate": FullyBayesianStringGP(draws=2), "acquisition": GIBBON(num_samples=3), **options}
    optimizer = Optimizer(space, initial=5, batch_size=2, seed=1, **options)
    if isinstance(optimizer.surrogate, StringGP):
        optimizer.surrogate.restarts = 1
    strings = optimizer.ask()
    optimizer.tell(strings, [float("nan"), *map(value, strings[1:])])
    optimizer.predict(strings)
    first, _ = optimizer.ask()
    optimizer.tell([first], [value(first)])
    return optimizer


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_a_used_optimiser_and_its_copies_resume_alike(name: str) -> None:
    optimizer = used(*SEARCHES[name])
    copies = [make(optimizer) for make in COPIES.values()]
    runs = []
    for each in (*copies, optimizer):
        strings = each.ask()
        each.tell(strings, list(map(value, strings)))
        runs.append((strings, each.hyperparameters, each.to_pandas().to_json()))
    assert runs[0] == runs[1] == runs[2]
    assert len(runs[0][0]) == 2


@pytest.mark.parametrize("make", COPIES.values(), ids=list(COPIES))
def test_a_copy_and_its_original_know_nothing_of_each_other(make: Callable[[Optimizer], Optimizer]) -> None:
    optimizer = used(WORDS, {"surrogate": "one-hot"})
    before = optimizer.state_dict()
    copied = make(optimizer)
    assert copied.state_dict() == before
    strings = copied.ask()
    copied.tell(strings, [1000.0] * len(strings))
    assert optimizer.state_dict() == before
    assert copied.predict(strings)[0].max() > 100 > optimizer.predict(strings)[0].max()
