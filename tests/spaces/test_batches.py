"""Keys and strings of many at once are those of one after the other, in every space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from seqopt.errors import InputError
from seqopt.spaces import CandidateSet, CodonSpace, GrammarSpace, LocalSpace, Space, StringSpace

SMILES = ["OCC", "CCO", "c1ccccc1", "C(C)N", "CN(C)C", "O=C=O"]
SPACES: dict[str, tuple[Callable[[], Any], list[str], str]] = {
    # A space, strings that have keys in it (candidates or not), and one that has none.
    "pool": (lambda: CandidateSet(SMILES, kind="molecule"), ["C(O)C", "OCC", "CCO", "NN", "OCC"], "C1CC"),
    "parents": (
        lambda: CandidateSet(["CC(=O)[O-].[Na+]", "CCN"], kind="molecule", standardize=True),
        ["CC(=O)[O-]", "CC(=O)[O-].[Na+]", "C[NH3+]"],
        "C1CC",
    ),
    "strings": (lambda: StringSpace("ACGT", 4, kind="dna"), ["acgt", " ACGT ", "AAAA"], "ACGX"),
    "molecules": (lambda: StringSpace("CNO", max_length=4, kind="molecule"), ["OCC", "CCO", "N"], "C(C"),
    "local": (lambda: LocalSpace([["a", "b"], ["c"]]), ["ac", " bc", "zz"], ""),
    "codons": (lambda: CodonSpace("MK"), ["AUGAAA", "atgaag", "ATGAAA"], "AUGAAX"),
    "grammar": (lambda: GrammarSpace("smiles", 1, 10, kind="molecule"), ["OCC", "CCO", "CN"], "C1=c(=CCl)N/O1"),
    "expressions": (lambda: GrammarSpace("arithmetic", 1, 10), ["x+1", " x+1 ", "sin(x)"], ""),
}


@pytest.mark.parametrize("name", SPACES)
def test_keys_of_many_are_those_of_each(name: str) -> None:
    make, strings, bad = SPACES[name]
    space = make()
    assert isinstance(space, Space)
    keys = space.keys_of(strings)
    assert keys == [space.key(string) for string in strings]
    assert space.keys_of(keys) == keys
    assert space.keys_of([]) == []
    sample = space.sample(5, np.random.default_rng(0))
    assert len(set(space.keys_of(sample))) == len(sample)
    if bad:
        messages = []
        for call in (lambda: space.key(bad), lambda: space.keys_of([*strings, bad])):
            with pytest.raises(InputError, match="is not a valid") as caught:
                call()
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
        assert repr(bad) in messages[0]


def test_what_is_wrong_is_told_of_the_gene_as_it_is_read() -> None:
    with pytest.raises(InputError, match="'AUGAAX' is not a valid dna: 'X' at position 6"):
        CodonSpace("MK").keys_of(["AUGAAX"])


def test_known_candidates_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from seqopt.spaces import listed

    pool = CandidateSet(SMILES, kind="molecule")
    read: list[str] = []
    inner = listed.required_keys

    def counting(strings: list[str], *arguments: Any, **options: Any) -> list[str]:
        read.extend(strings)
        return inner(strings, *arguments, **options)

    monkeypatch.setattr(listed, "required_keys", counting)
    assert pool.keys_of(["OCC", "CCO", "NN", "C(C)N", "NN"]) == ["CCO", "CCO", "NN", "CCN", "NN"]
    assert read == ["NN"]
