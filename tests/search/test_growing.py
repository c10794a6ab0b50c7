import logging
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqopt import Optimizer
from seqopt.errors import InputError
from seqopt.search import GeneticSearch, RandomSearch
from seqopt.search.growing import PROBE, grown, sampled
from seqopt.spaces import CodonSpace, GrammarSpace, StringSpace


def rare(string):
    """One string of the 4^14 in 16,000 or so."""
    return string[::2] == "ACGTACG"


RARE = StringSpace("ACGT", 14, accept=rare)


def one_rare(filler):
    return "".join(a + b for a, b in zip("ACGTACG", filler, strict=True))


@given(st.integers(0, 10**6), st.integers(1, 60))
def test_what_is_grown_lies_in_the_space_and_begins_with_the_parents(seed, n):
    parents = [one_rare("AAAAAAA"), one_rare("CCCCCCC")]
    found = grown(RARE, n, parents, np.random.default_rng(seed))
    assert len(set(found)) == len(found) <= n
    assert all(RARE.contains(string) for string in found)
    assert set(found) >= set(parents[:n])


def test_growing_reaches_all_strings_that_pass():
    space = StringSpace("AC", 6, accept=lambda string: string.startswith("A"))
    assert len(grown(space, 32, ["AAAAAA"], np.random.default_rng(0))) == 32
    assert len(grown(space, 100, ["AAAAAA"], np.random.default_rng(0))) == 32


@pytest.mark.parametrize(
    ("space", "parent"),
    [
        (CodonSpace("MAGIC", accept=lambda gene: gene.endswith("TGC")), "ATGGCAGGAATATGC"),
        (GrammarSpace("arithmetic", 1, 12, accept=lambda formula: "sin(x)" in formula), "sin(x)+1"),
    ],
)
def test_individuals_of_other_spaces_are_grown_too(space, parent):
    individual = space.from_string(parent)
    found = grown(space, 12, [individual], np.random.default_rng(1))
    assert len(found) > 3
    assert all(space.contains(space.to_string(one)) for one in found)


def test_sampling_is_left_to_the_space_where_it_finds_enough():
    easy = StringSpace("ACGT", 14, accept=lambda string: string[0] == "A")
    found = sampled(easy, 50, [one_rare("AAAAAAA")], np.random.default_rng(0))
    assert len(found) == 50
    assert len({string[:7] for string in found}) > 40  # not mutants of one string
    assert len(sampled(easy, PROBE // 2, ["A" * 14], np.random.default_rng(0))) == PROBE // 2
    with pytest.raises(InputError, match="accept"):
        sampled(StringSpace("ACGT", 14, accept=lambda string: False), 50, [], np.random.default_rng(0))
    assert len(set(sampled(RARE, 50, [one_rare("AAAAAAA")], np.random.default_rng(0)))) == 50


@pytest.mark.slow
@pytest.mark.parametrize("search", [GeneticSearch(evolutions=20, sample=200), "auto"])
def test_a_search_goes_on_from_told_strings(search, caplog):
    caplog.set_level(logging.ERROR)
    optimizer = Optimizer(RARE, search=search, surrogate="ngrams", initial=4, seed=2)
    told = [one_rare("AAAAAAA"), one_rare("ACACACA")]
    optimizer.tell(told, [0.0, 3.0])
    started = time.monotonic()
    for _ in range(4):
        strings = optimizer.ask(3)
        assert len(set(strings) - set(told)) == 3
        assert all(map(rare, strings))
        optimizer.tell(strings, [float(string[1::2].count("C")) for string in strings])
    assert optimizer.best.value >= 5.0
    assert time.monotonic() - started < 60.0


def test_without_any_string_that_passes_the_user_is_told():
    optimizer = Optimizer(RARE, search=RandomSearch(100), initial=4)
    with pytest.raises(InputError, match="accept"):
        optimizer.ask()
