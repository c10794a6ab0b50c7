"""Candidate sets: identity, membership, sampling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.errors import InputError
from seqopt.spaces import CandidateSet


def test_molecules_are_identified_by_canonical_smiles_and_kept_as_written() -> None:
    pool = CandidateSet(["OCC", "C(O)C", "c1ccccc1O", "C[C@H](N)O", "C[C@@H](N)O"], kind="molecule")
    assert pool.strings == ["OCC", "c1ccccc1O", "C[C@H](N)O", "C[C@@H](N)O"]
    assert pool.keys[0] == "CCO"
    assert pool.index_of("Oc1ccccc1") == 1
    assert pool.index_of("CCN") is None
    assert "C(C)O" in pool
    assert "not a molecule" not in pool


def test_salts_and_charges_are_told_apart() -> None:
    pool = CandidateSet(["CC(=O)O", "CC(=O)[O-]", "CC(=O)[O-].[Na+]"], kind="molecule")
    assert len(pool) == 3


def test_standardised_molecules_are_identified_by_their_parent() -> None:
    pool = CandidateSet(["CC(=O)[O-].[Na+]", "CC(=O)O", "CCN"], kind="molecule", standardize=True)
    assert pool.strings == ["CC(=O)[O-].[Na+]", "CCN"]
    assert pool.index_of("CC(=O)[O-]") == 0
    assert pool.index_of("CC[NH3+]") == 1


@settings(deadline=None, max_examples=50)
@given(
    st.sets(st.text(alphabet="xyz", min_size=1, max_size=5), min_size=1, max_size=20),
    st.integers(0, 2**32 - 1),
)
def test_samples_are_distinct_members(strings: set[str], seed: int) -> None:
    pool = CandidateSet(sorted(strings), kind="text")
    drawn = pool.sample(7, np.random.default_rng(seed))
    assert len(drawn) == len(set(drawn)) == min(7, len(strings))
    assert all(pool.contains(string) for string in drawn)
    assert drawn == pool.sample(7, np.random.default_rng(seed))


def test_samples_are_uniform() -> None:
    pool = CandidateSet(list("abcde"), kind="text")
    rng = np.random.default_rng(0)
    counts = np.zeros(5)
    for _ in range(2000):
        counts[[pool.strings.index(s) for s in pool.sample(2, rng)]] += 1
    assert np.abs(counts / 4000 - 0.2).max() < 0.03  # five standard errors


def test_encoding_follows_the_order_of_the_pool() -> None:
    pool = CandidateSet(["CCl", "BrC"], kind="molecule")
    assert pool.encoded.lengths.tolist() == [2, 2]
    assert pool.encoder.tokenizer.name == "smiles-split"
    assert CandidateSet(["CCl"], kind="molecule", tokenizer="characters").encoded.lengths.tolist() == [3]


def test_accept_narrows() -> None:
    assert CandidateSet(["A", "BB", "CCC"], kind="text", accept=lambda s: len(s) > 1).strings == ["BB", "CCC"]


@pytest.mark.parametrize(
    ("strings", "options", "said"),
    [
        ([], {}, "empty"),
        ("CCO", {}, "list of strings"),
        (["C", 3], {}, "candidates\\[1\\] is 3"),
        (["CCO", "C1CC"], {"kind": "molecule"}, "candidates\\[1\\] \\('C1CC'\\)"),
        (["A"], {"kind": "peptoid"}, "unknown kind 'peptoid'"),
        (["A"], {"kind": "text", "keys": ["A", "B"]}, "1 strings but 2 keys"),
        (["A"], {"kind": "text", "accept": lambda s: False}, "empty"),
    ],
)
def test_bad_input(strings: list[str], options: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        CandidateSet(strings, **options)
