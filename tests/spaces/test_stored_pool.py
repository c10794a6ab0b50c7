"""Searches of a pool on disk choose what those of the same pool in memory choose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt import Optimizer
from seqopt.campaign.spaces import of_same_rules
from seqopt.datasets import load_zinc250k, prepare_pool, read_pool
from seqopt.encoding import MorganFingerprint
from seqopt.errors import InputError
from seqopt.objectives import resolve_objective
from seqopt.search import PoolSearch
from seqopt.spaces import CandidateSet, PoolSpace, StoredPool, as_space
from seqopt.spaces import stored_pool as module
from seqopt.strategies import LFBO, ModelBased, Prefilter
from seqopt.strategies.prefilter import cheap_classifier
from seqopt.utils.config import described, from_config


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "library.smi"
    path.write_text("\n".join(["C(O)C", "OCC", *load_zinc250k()[::2000], "C1CC"]))
    return path


@pytest.fixture
def stored(library: Path) -> StoredPool:
    return StoredPool(prepare_pool(library, folder=library.parent / "store", workers=1, rows=100))


@pytest.fixture(scope="module")
def in_memory(library: Path) -> CandidateSet:
    space = as_space(read_pool(library))
    assert isinstance(space, CandidateSet)
    return space


def test_it_is_the_same_space(stored: StoredPool, in_memory: CandidateSet) -> None:
    assert isinstance(stored, PoolSpace)
    assert list(stored.keys) == in_memory.keys
    assert list(stored.strings) == in_memory.strings
    assert stored.sample(9, np.random.default_rng(1)) == in_memory.sample(9, np.random.default_rng(1))
    for string in (in_memory[5], in_memory.keys[77], "OCC", "CCC(C)(C)CCCCN"):
        assert stored.index_of(string) == in_memory.index_of(string)
    assert list(stored.keys[10:4:-2]) == in_memory.keys[10:4:-2]
    assert list(stored.keys.take(np.array([-1, 3]))[1:]) == [in_memory.keys[3]]
    with pytest.raises(IndexError):
        stored.keys[len(stored)]


@pytest.mark.parametrize("block", [7, 1 << 14])
def test_tokens_are_the_same_and_kept(
    library: Path, in_memory: CandidateSet, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK", block)
    folder = library.parent / f"tokens-{block}"
    for _ in range(2):
        stored = StoredPool(prepare_pool(library, folder=folder, workers=1))
        encoded = stored.encoded
        assert isinstance(encoded.tokens, np.memmap)
        np.testing.assert_array_equal(encoded.tokens, in_memory.encoded.tokens)
        np.testing.assert_array_equal(encoded.lengths, in_memory.encoded.lengths)
        assert stored.encoder.alphabet.numbers == in_memory.encoder.alphabet.numbers


@pytest.mark.parametrize(
    "make",
    [
        lambda: LFBO(cheap_classifier(CandidateSet(["C"], kind="molecule"))),
        lambda: LFBO(cheap_classifier(CandidateSet(["C"], kind="molecule")), keep=50),
        lambda: ModelBased("minmax", "ucb", PoolSearch(60)),
        lambda: ModelBased("minmax", "gibbon", prefilter=Prefilter("lfbo", keep=40)),
        lambda: ModelBased("ngrams+minmax", "logei", prefilter=Prefilter("mean", keep=40)),
        lambda: ModelBased("tanimoto", "gibbon", prefilter="mean"),
    ],
    ids=["lfbo", "lfbo-keep", "drawn", "prefilter-lfbo", "prefilter-mean", "short"],
)
def test_suggestions_are_those_of_the_pool_in_memory(
    make: Any, stored: StoredPool, in_memory: CandidateSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    logp = resolve_objective("logp")
    found = []
    for space in (stored, in_memory):
        optimizer = Optimizer(space, strategy=make(), initial=12, batch_size=3, seed=3)
        chosen = []
        for _ in range(2):
            strings = optimizer.ask()
            optimizer.tell(strings, logp(list(strings)))
            chosen += list(strings)
        found.append(chosen)
    assert found[0] == found[1]


def test_fingerprints_are_not_computed_and_strings_not_made(
    stored: StoredPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    keys = stored.store.keys

    def counted(places: Any) -> list[str]:
        made.append(len(places))
        return keys(places)

    strategy = LFBO(cheap_classifier(stored), keep=30)
    optimizer = Optimizer(stored, strategy=strategy, initial=12, seed=0)
    strings = optimizer.ask()
    optimizer.tell(strings, [float(len(one)) for one in strings])
    monkeypatch.setattr(stored.store, "keys", counted)
    read: list[int] = []
    of_molecules = MorganFingerprint.of_molecules
    monkeypatch.setattr(
        MorganFingerprint, "of_molecules", lambda self, mols: read.append(len(mols)) or of_molecules(self, mols)
    )
    assert len(optimizer.ask(3)) == 3
    # The strings that were measured, and those that are chosen.
    assert sum(made) == 0
    assert max(read) <= 12 + 3


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    from seqopt.models import covariance, gaussian

    monkeypatch.setattr(covariance, "STREAMED_BLOCK", 64)
    monkeypatch.setattr(gaussian, "MEAN_ELEMENTS", 500)
    monkeypatch.setattr(gaussian, "COLUMN_MEMORY", 100)


@pytest.mark.usefixtures("blocks")
@pytest.mark.slow
def test_a_pool_that_is_streamed_is_scored_the_same(stored: StoredPool, in_memory: CandidateSet) -> None:
    logp = resolve_objective("logp")
    found = []
    for space in (stored, in_memory):
        optimizer = Optimizer(space, surrogate="minmax", initial=10, seed=2)
        strings = optimizer.ask()
        optimizer.tell(strings, logp(list(strings)))
        found.append(list(optimizer.ask(3)))
        surrogate = optimizer.strategy.then.fitted(optimizer.state(), np.random.default_rng(0))  # type: ignore[attr-defined]
        means = surrogate.pool_mean(space)
        np.testing.assert_allclose(means, surrogate.predict(in_memory.keys)[0], atol=1e-9)
    assert found[0] == found[1]


def test_a_description_tells_pools_apart(stored: StoredPool, library: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.smi"
    other.write_text("\n".join(library.read_text().splitlines()[:-5]))
    changed = StoredPool(prepare_pool(other, folder=tmp_path, workers=1))
    assert described(stored) != described(changed)
    turned = tmp_path / "turned.smi"
    turned.write_text("\n".join(reversed(library.read_text().splitlines())))
    moved = StoredPool(prepare_pool(turned, folder=tmp_path, workers=1))
    # Where candidates are found, and in which order, does not decide.
    assert of_same_rules(described(stored), described(moved)) == described(stored)
    assert of_same_rules(described(stored), described(changed)) != described(stored)
    assert described(from_config(moved.config())) == described(moved)
    turned.write_text("CCO\n")
    with pytest.raises(InputError, match=r"turned\.smi has changed"):
        from_config(moved.config())
