"""Why a string was chosen, against what the model itself says."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from seqopt import Optimizer
from seqopt.campaign import Campaign
from seqopt.campaign.batches import REASON_COLUMNS, REASONS
from seqopt.campaign.differences import difference
from seqopt.campaign.reasons import Reason, label, measured_values, reasons_of
from seqopt.campaign.wording import in_words
from seqopt.data import resolve_transform
from seqopt.spaces import CandidateSet, StringSpace

POOL = ["".join(letters) for letters in itertools.product("AB", repeat=6)]


def hits(string: str) -> float:
    return float(string.count("AB") + 0.1 * string.count("A"))


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("transform", [None, "log10"])
def test_the_reasons_of_a_batch_are_those_of_its_model(tmp_path: Path, direction: str, transform: str | None) -> None:
    def measure(string: str) -> float:
        return 10 ** hits(string) if transform else hits(string)

    with Campaign.create(
        tmp_path / "a.seqopt",
        CandidateSet(POOL, kind="text"),
        objective="hits",
        direction=direction,
        batch_size=6,
        transform=transform,
        surrogate="ssk",
        seed=3,
    ) as campaign:
        first = campaign.suggest()
        assert [row.reason for row in first] == [{"kind": "random"}] * 6
        for row in first[1:]:
            campaign.record(row.name, measure(row.string))
        campaign.withdraw([first[0].name])
        optimizer = campaign.optimizer()
        batch = campaign.suggest()
        measured = {row.string: row.value for row in campaign.store.measurements()}
    optimizer.ask()  # the model that chose, once more
    surrogate = optimizer.surrogate
    mean, std = surrogate.predict(POOL)
    best = surrogate.predict(list(measured))[0].max()
    left = [index for index, key in enumerate(POOL) if key not in measured and key != first[0].string]
    for row in batch:
        reason, index = row.reason, POOL.index(row.string)
        similarity = surrogate.similarity([row.string], list(measured))[0]
        assert reason["nearest"] == list(measured)[int(similarity.argmax())]
        assert reason["value"] == pytest.approx(measured[reason["nearest"]])
        assert reason["difference"] == difference(reason["nearest"], row.string, "text") != ""
        assert reason["rank"] == 1 + sum(mean[other] > mean[index] for other in left)
        assert (reason["of"], reason["among"]) == (len(left), "unmeasured")
        assert reason["improvement"] == pytest.approx(stats.norm.cdf((mean[index] - best) / std[index]), rel=1e-2)
        assert reason["kind"] == ("exploit" if reason["rank"] <= 6 else "explore")


@pytest.mark.parametrize("surrogate", ["auto", "ssk"])
def test_where_strings_are_generated_the_measured_ones_are_counted(surrogate: str) -> None:
    optimizer = Optimizer(StringSpace("AB", 9), surrogate=surrogate, initial=8, batch_size=3, seed=2)
    strings = optimizer.ask()
    optimizer.tell(strings, [hits(string) for string in strings])
    rows = optimizer.ask().rows
    means, known = (optimizer.surrogate.predict(keys)[0] for keys in ([row.key for row in rows], strings))
    for reason, mean in zip(reasons_of(optimizer, rows), means, strict=True):
        assert (reason["of"], reason["among"]) == (len(set(strings)), "measured")
        assert reason["rank"] == 1 + sum(mean < other for other in dict(zip(strings, known, strict=True)).values())
        assert 0 <= reason["improvement"] <= 1


def test_both_labels_occur_in_a_search() -> None:
    rng = np.random.default_rng(0)
    pool = list(dict.fromkeys("".join(rng.choice(list("ACGT"), 10)) for _ in range(400)))
    optimizer = Optimizer(CandidateSet(pool, kind="dna"), initial=15, batch_size=8, surrogate="ngrams", seed=1)
    kinds = []
    for _ in range(4):
        batch = optimizer.ask()
        kinds += [reason["kind"] for reason in reasons_of(optimizer, batch.rows)]
        optimizer.tell(batch, [string.count("AC") + 0.3 * string.count("G") for string in batch])
    assert min(kinds.count("exploit"), kinds.count("explore")) >= 3


def test_an_open_string_counts_among_those_that_the_mean_alone_would_choose() -> None:
    assert [label(rank, 2) for rank in (1, 2, 3)] == ["exploit", "exploit", "explore"]


def test_what_the_mean_chooses_after_an_open_batch_exploits_too() -> None:
    pool = CandidateSet(POOL, kind="text")
    optimizer = Optimizer(pool, surrogate="ssk", acquisition="mean", initial=6, batch_size=2, seed=2)
    strings = optimizer.ask()
    optimizer.tell(strings, [hits(string) for string in strings])
    batches = [optimizer.ask().rows for _ in range(2)]
    ranks = [reason["rank"] for reason in reasons_of(optimizer, batches[1])]
    assert max(ranks) > len(batches[1])
    assert [reason["kind"] for reason in reasons_of(optimizer, batches[1])] == ["exploit"] * 2


@pytest.mark.parametrize(("transform", "expected"), [("log10", 10.0), (None, 34.0)])
def test_the_value_of_the_nearest_string_is_the_mean_of_its_replicates(transform: str | None, expected: float) -> None:
    optimizer = Optimizer(
        CandidateSet(POOL, kind="text"), transform=resolve_transform(transform), initial=3, allow_repeats=True, seed=2
    )
    optimizer.tell([POOL[0], POOL[1], POOL[0], POOL[0]], [1.0, 5.0, 1.0, 100.0 if transform is None else 1000.0])
    found = measured_values(optimizer)
    assert found[POOL[0]] == (pytest.approx(expected), None)
    assert found[POOL[1]] == (5.0, None)


def test_what_is_not_known_is_not_kept_and_says_nothing() -> None:
    kept = Reason("exploit", "CCO", 0.123456, difference="", improvement=1.23456e-7).to_json()
    assert kept == {"kind": "exploit", "nearest": "CCO", "similarity": 0.1235, "improvement": 1.23e-7}
    assert in_words(kept) == "exploit: < 0.1 % to beat the best"
    # As campaigns before kept them.
    assert in_words({"kind": "explore", "nearest": "CCO", "similarity": 0.5}) == "explore"
    assert len(REASONS) == len(REASON_COLUMNS) == len(set(REASON_COLUMNS))


@pytest.mark.parametrize(
    ("before", "after", "kind", "expected"),
    [
        ("MKVA", "MKVA", "protein", ""),
        ("MKVAW", "MRVAF", "protein", "K2R, W5F"),
        ("ACGTACGT", "TGCATGCA", "dna", "8 of 8 positions"),
        ("abc", "abXc", "text", "+X at 3"),
        ("", "ab", "text", "+ab at 1"),
        ("Oc1ccccc1", "Nc1ccccc1", "molecule", "−*O +*N"),
        ("Oc1ccccc1", "c1ccccc1", "molecule", "−*O"),
        ("Oc1ccccc1Cl", "Oc1cccc(Cl)c1", "molecule", "−*c1ccccc1* +*c1cccc(*)c1"),
        ("Fc1ccc(F)cc1", "Fc1ccccc1", "molecule", "−*F"),
        ("Cc1ccc(C)cc1", "c1ccccc1", "molecule", "−2 *C"),
        ("C[C@H](N)O", "C[C@@H](N)O", "molecule", "stereochemistry, or how its parts are joined"),
        ("C1CCCCC1c1ccncc1", "C1CCCC1c1ccncc1", "molecule", "−*C1CCCCC1 +*C1CCCC1"),
        ("not one", "CCO", "molecule", ""),
    ],
)
def test_differences_are_short_and_right(before: str, after: str, kind: str, expected: str) -> None:
    assert difference(before, after, kind) == expected


def test_a_difference_stays_short_however_much_differs() -> None:
    rng = np.random.default_rng(0)
    for lengths in ((400, 400), (300, 900), (3000, 2500)):
        first, second = ("".join(rng.choice(list("ACGT"), length)) for length in lengths)
        assert 0 < len(difference(first, second, "dna")) < 40
