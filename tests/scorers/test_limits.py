"""Limits of a batch: every pair and every scaffold is held against their definitions."""

import itertools
import logging
from collections import Counter

import numpy as np
import pytest
from nltk import edit_distance
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles
from rdkit.DataStructs import TanimotoSimilarity

from seqopt import BatchLimits, CandidateSet, Optimizer, StringSpace
from seqopt.errors import ExhaustedError, InputError
from seqopt.scorers.similarity import molecular_similarity, sequence_identity
from seqopt.strategies import BORE

RINGS = ["c1ccc({})cc1", "c1cc({})ccn1", "C1CCC({})CC1"]
TAILS = ["C", "CC", "O", "N", "Cl", "CO", "C#N", "C(=O)N"]
SMILES = [ring.format(tail) for ring, tail in itertools.product(RINGS, TAILS)] + ["CCO", "CCN", "CCCl"]


def test_molecular_similarity_is_that_of_rdkit() -> None:
    generator = GetMorganGenerator(radius=2, includeChirality=True)
    prints = [generator.GetCountFingerprint(Chem.MolFromSmiles(one)) for one in SMILES[:8]]
    expected = [[TanimotoSimilarity(a, b) for b in prints] for a in prints]
    assert molecular_similarity(SMILES[:8], SMILES[:8]) == pytest.approx(np.array(expected), abs=1e-9)


def test_sequence_identity_is_that_of_the_edit_distance() -> None:
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ACGTé"), rng.integers(0, 9))) for _ in range(12)]
    found = sequence_identity(strings, strings[:5])
    for (i, a), (j, b) in itertools.product(enumerate(strings), enumerate(strings[:5])):
        longest = max(len(a), len(b))
        assert found[i, j] == pytest.approx(1 - edit_distance(a, b) / longest if longest else 1.0)


@pytest.mark.parametrize("design", ["random", "maxmin", "medoids"])
def test_no_batch_of_a_search_holds_more_of_a_scaffold(design: str) -> None:
    pool = CandidateSet(SMILES, kind="molecule")
    optimizer = Optimizer(pool, initial=6, batch_size=6, design=design, limits=BatchLimits(per_scaffold=2), seed=1)
    for _ in range(2):
        batch = optimizer.ask()
        counts = Counter(MurckoScaffoldSmiles(string) for string in batch)
        assert len(batch) == 6
        assert all(count <= 2 for scaffold, count in counts.items() if scaffold)
        optimizer.tell(batch, [float(len(string)) for string in batch])


def test_no_two_strings_of_a_batch_are_too_similar_in_any_search() -> None:
    space = StringSpace("ABC", 6)
    optimizer = Optimizer(
        space, surrogate="ssk", initial=4, batch_size=5, limits=BatchLimits(max_similarity=0.5), seed=0
    )
    for _ in range(2):
        batch = optimizer.ask()
        for a, b in itertools.combinations(batch, 2):
            assert 1 - edit_distance(a, b) / 6 <= 0.5
        optimizer.tell(batch, [string.count("AB") for string in batch])


def test_a_limited_batch_is_the_greedy_one_where_nothing_is_too_similar() -> None:
    found = []
    for limits in (None, BatchLimits(max_similarity=0.999999)):
        optimizer = Optimizer(CandidateSet(SMILES, kind="molecule"), initial=5, batch_size=4, limits=limits, seed=2)
        first = optimizer.ask()
        optimizer.tell(first, [float(len(string)) for string in first])
        found.append(optimizer.ask())
    assert found[0] == found[1]


def test_what_is_awaited_counts_as_a_member() -> None:
    optimizer = Optimizer(CandidateSet(SMILES[:8], kind="molecule"), initial=4, limits=BatchLimits(per_scaffold=3))
    assert len(optimizer.ask(2)) == 2
    assert len(optimizer.ask(1)) == 1
    with pytest.raises(ExhaustedError, match="at most 3 of a scaffold"):
        optimizer.ask(1)


def test_a_short_batch_is_said_to_be_short(caplog: pytest.LogCaptureFixture) -> None:
    optimizer = Optimizer(CandidateSet(SMILES, kind="molecule"), initial=12, limits=BatchLimits(per_scaffold=1))
    with caplog.at_level(logging.WARNING):
        # One of each of three scaffolds, and three molecules without rings.
        assert len(optimizer.ask()) == 6
    assert "only 6 of 12 strings were found within the limits of a batch (at most 1 of a scaffold)" in caplog.text


def test_a_search_without_a_gaussian_process_keeps_to_limits() -> None:
    pool = CandidateSet(SMILES, kind="molecule")
    optimizer = Optimizer(pool, strategy=BORE(), initial=6, batch_size=5, limits=BatchLimits(per_scaffold=1))
    first = optimizer.ask(6)
    optimizer.tell(first, [float(len(string)) for string in first])
    counts = Counter(MurckoScaffoldSmiles(string) for string in optimizer.ask())
    assert all(count == 1 for scaffold, count in counts.items() if scaffold)


def test_included_strings_come_first_and_count(caplog: pytest.LogCaptureFixture) -> None:
    pool = CandidateSet(SMILES, kind="molecule")
    include = ["OCC", SMILES[0], SMILES[1], SMILES[2]]
    optimizer = Optimizer(pool, initial=6, include=include, limits=BatchLimits(per_scaffold=2), seed=0)
    batch = optimizer.ask()
    assert batch[:4] == ["CCO", *SMILES[:3]]
    # Three of benzene were asked for; nothing else adds to them.
    assert sum(MurckoScaffoldSmiles(string) == "c1ccccc1" for string in batch) == 3
    optimizer.tell(batch, range(len(batch)))
    assert not set(optimizer.ask(5)) & set(batch)


def test_included_strings_come_first_where_enough_is_known_already() -> None:
    pool = CandidateSet(SMILES, kind="molecule")
    optimizer = Optimizer(pool, initial=3, batch_size=3, include=["CCO", "CCN"])
    optimizer.tell(SMILES[:4], [1.0, 2.0, 3.0, 4.0])
    optimizer.tell(["CCN"], [0.0])
    batch = optimizer.ask()
    assert batch[0] == "CCO"
    assert "CCN" not in batch
    assert optimizer.observations.rows[-1].details["predicted_mean"] is not None


def test_what_cannot_be_kept_to_is_refused() -> None:
    with pytest.raises(InputError, match="limits of a batch are empty"):
        BatchLimits()
    with pytest.raises(InputError, match="max_similarity is 1"):
        BatchLimits(max_similarity=1)
    with pytest.raises(InputError, match="per_scaffold is 0"):
        BatchLimits(0)
    with pytest.raises(InputError, match="of kind 'text'"):
        Optimizer(StringSpace("AB", 4), limits=BatchLimits(per_scaffold=1))
    with pytest.raises(InputError, match="'CCCCCC' is to be included in the first batch, and is not among"):
        Optimizer(CandidateSet(SMILES, kind="molecule"), include=["CCCCCC"])
