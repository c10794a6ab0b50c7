"""Searches near a lead: where they begin, that they go further if it pays, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from seqopt import CandidateSet, CodonSpace, Near, Optimizer, StringSpace, maximize, minimize
from seqopt.campaign import Campaign
from seqopt.errors import InputError, RunFolderError
from seqopt.models import StringGP
from seqopt.scorers.limits import BatchLimits

POOL = CandidateSet(["".join("AB"[i >> k & 1] for k in range(9)) for i in range(512)], kind="text")
LEAD = "AAAAAAAAA"


def far(strings: list[str]) -> np.ndarray:
    return np.array([string.count("B") for string in strings], dtype=np.float64)


def test_a_search_begins_within_the_radius_and_goes_further_as_it_pays() -> None:
    result = maximize(far, POOL, near=Near(LEAD, 2), surrogate="ssk", initial=6, budget=24, batch_size=6)
    table = result.evaluations
    assert (far(table["string"][:6].tolist()) <= 2).all()
    # More letters B are better, so that the search leaves the radius, step by step.
    assert result.best_value >= 5


@pytest.mark.parametrize(("kind", "letters"), [("dna", "AC"), ("rna", "AU"), ("protein", "MK")])
def test_leads_of_sequences_are_read_as_the_sequences_are(kind: str, letters: str) -> None:
    one, other = letters
    pool = CandidateSet([4 * one, 3 * one + other, 4 * other], kind=kind)
    mean = Near(f" {2 * one.lower()} {2 * one}\n", 1).mean(pool)
    assert mean.distances(pool.keys).tolist() == [0.0, 1.0, 4.0]
    with pytest.raises(InputError, match=rf"cannot be read as {kind} \('1' at position 2 is not"):
        Near(f"{one}1", 1).mean(pool)
    # A space that generates its strings starts from the same.
    space = StringSpace(letters, 4, kind=kind)
    assert Near(f"{2 * one.lower()} {2 * one}", 1).surrogate("ssk", space).mean.distance.lead == 4 * one  # type: ignore[attr-defined]


@pytest.mark.slow
def test_it_stays_where_going_further_does_not_pay() -> None:
    shares = []
    for near in (Near(LEAD, 3, scale=2.0), None):
        result = minimize(far, POOL, near=near, surrogate="ssk", initial=6, budget=18, batch_size=6)
        shares.append(float(np.mean(far(result.evaluations["string"][6:].tolist()) <= 3)))
    assert shares[0] > 0.8
    assert shares[1] < shares[0] - 0.3


def test_too_few_within_the_radius_are_followed_by_the_nearest() -> None:
    optimizer = Optimizer(POOL, surrogate=Near(LEAD, 1).surrogate("ssk", POOL), initial=20)
    found = far(optimizer.ask(20))
    # The lead, nine strings at a distance of 1, and then strings at a distance of 2.
    assert sorted(found.tolist()) == [0.0] + 9 * [1.0] + 10 * [2.0]
    assert len(set(optimizer.ask(5))) == 5


def test_limits_of_a_batch_and_the_seed_are_kept() -> None:
    near, limits = Near(LEAD, 4), BatchLimits(max_similarity=0.7)
    asked = [
        Optimizer(POOL, surrogate=near.surrogate("ssk", POOL), initial=4, limits=limits, seed=seed).ask(4)
        for seed in (0, 0, 1)
    ]
    assert asked[0] == asked[1] != asked[2]
    assert (far(asked[0]) <= 4).all()


def test_strings_that_are_generated_begin_near_the_lead() -> None:
    space = StringSpace("ACGT", 12, kind="dna")
    lead = "ACGTACGTACGT"
    optimizer = Optimizer(space, surrogate=Near(lead, 2).surrogate(StringGP(restarts=1), space), initial=30)
    asked = optimizer.ask(30)
    differences = np.array([sum(a != b for a, b in zip(one, lead, strict=True)) for one in asked])
    assert len(set(asked)) == 30
    assert (differences <= 2).all()
    assert (differences == 2).any()


def test_molecules_are_near_by_tanimoto_distance(tmp_path) -> None:
    smiles = ["CCO", "CCCO", "CCCCO", "CCN", "CCCN", "c1ccccc1", "c1ccccc1O", "Cc1ccccc1", "CC(C)O", "OCCO"]
    result = maximize(
        lambda strings: [float(len(string)) for string in strings],
        CandidateSet(smiles),
        near=Near("OCC", 0.6),
        surrogate="tanimoto",
        initial=2,
        budget=2,
        batch_size=2,
        run_folder=tmp_path / "run",
    )
    table = pd.read_csv(tmp_path / "run" / "evaluations.csv")
    assert table["distance_from_lead"].between(0, 1).all()
    assert (table["distance_from_lead"][:2] <= 0.6).all()
    by_string = dict(zip(table["string"], table["distance_from_lead"], strict=True))
    assert all(by_string[one] == 0.0 for one in by_string if one == "CCO")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "From the lead" in page
    assert result.optimizer.surrogate.mean.radius == 0.6
    again = Near("OCC", 0.5)
    with pytest.raises(RunFolderError, match=r"near.radius was 0.6, is now 0.5"):
        maximize(len, CandidateSet(smiles), near=again, initial=2, run_folder=tmp_path / "run", resume=True)


def test_a_campaign_keeps_its_lead(tmp_path) -> None:
    path = tmp_path / "near.seqopt"
    with Campaign.create(path, POOL, objective="count", near=Near(LEAD, 2), surrogate="ssk", batch_size=4) as campaign:
        first = campaign.suggest()
        assert (far([row.string for row in first]) <= 2).all()
        assert first.to_pandas()["distance_from_lead"].max() <= 2
        campaign.write_batch(tmp_path / "batch.csv")
    table = pd.read_csv(tmp_path / "batch.csv")
    assert table["distance_from_lead"].tolist() == far(table["string"].tolist()).tolist()
    table["count"] = far(table["string"].tolist())
    table.to_csv(tmp_path / "batch.csv", index=False)
    with Campaign.open(path, POOL) as campaign:
        campaign.record_file(tmp_path / "batch.csv")
        second = campaign.suggest(4)
        assert len(second) == 4
        assert second.to_pandas()["distance_from_lead"].notna().all()


LEFT_OUT = "ATGGAATTCAAAGGTACTCTTCTTCGTTCTTGG"
"""A gene with the site of EcoRI."""


def test_a_search_near_a_lead_that_is_left_out_begins_with_what_is_allowed(tmp_path) -> None:
    space = CodonSpace("MEFKGTLLRSW", forbidden=["GAATTC"])
    assert space.left_out(LEFT_OUT) == "it holds 'GAATTC' at base 4"
    mean = Near(LEFT_OUT, 4).mean(space)
    result = maximize(
        lambda genes: [gene.count("C") for gene in genes], space, near=Near(LEFT_OUT, 4), initial=12, budget=4
    )
    begun = result.evaluations["string"][:12].tolist()
    assert all(space.contains(gene) for gene in result.evaluations["string"])
    assert len(set(begun)) == 12
    assert mean.distances(begun).max() <= 4
    with Campaign.create(tmp_path / "a.seqopt", space, objective="yield", near=Near(LEFT_OUT, 4)) as campaign:
        suggested = campaign.suggest(6).to_pandas()
    assert suggested["distance_from_lead"].between(1, 4).all()


def test_what_is_like_a_string_that_is_left_out_by_accept() -> None:
    space = StringSpace("AB", 12, kind="text", accept=lambda string: string.count("B") >= 3)
    found = space.near_left_out(12 * "A", 50, np.random.default_rng(0))
    assert len(set(found)) == 50
    assert all(space.contains(string) for string in found)
    # Mutations that are not yet enough are kept, so that three of them are soon together.
    assert np.mean([string.count("B") for string in found]) < 5
    assert space.near_left_out("AB", 5, np.random.default_rng(0)) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Near("C(C", 0.4).surrogate("ssk", CandidateSet(["CCO", "CCN"])), "cannot be read as a molecule"),
        (lambda: Near("", 1).surrogate("ssk", POOL), "expected a string"),
        (
            lambda: Near("BBBBBBBBBBBB", 2).surrogate("ssk", POOL),
            r"no candidate lies within 2 of the lead .*'BBBBBBBBB', lies at 3; raise the radius",
        ),
        (lambda: Near("c1ccccc1", 0.2).surrogate("ssk", CandidateSet(["CCO", "CCN"])), "lies at 1; nothing is like it"),
        (lambda: Near("AAA", 0.5).surrogate("ssk", StringSpace("AB", 3, kind="text")), "within 0.5 .* lies at 1;"),
        (
            lambda: Near("XYZ", 1).surrogate("ssk", StringSpace("AB", 3, kind="text")),
            "the lead is no string of the space: 'XYZ'",
        ),
        (lambda: Near(LEAD, 1).surrogate("ssk", CandidateSet([LEAD], kind="text")), "no candidate but the lead"),
        (
            lambda: Near("AAA", 1).surrogate("ssk", StringSpace("AB", 3, kind="text", accept=lambda _: False)),
            r"'AAA' is left out: accept\(\) refuses it; and nothing like it was found",
        ),
        (lambda: Near(LEAD, 1, "tanimoto").surrogate("ssk", POOL), "compares molecules"),
    ],
)
def test_leads_that_cannot_be_used_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_what_takes_no_lead_is_refused(tmp_path) -> None:
    from seqopt.strategies import RandomStrategy

    with pytest.raises(InputError, match="leave the strategy out, or the lead"):
        maximize(far, POOL, near=Near(LEAD, 2), strategy=RandomStrategy(), budget=4)
    with pytest.raises(InputError, match="one way to measure"):
        maximize(far, POOL, near=Near(LEAD, 2), fidelities={"cheap": (far, 0.1)}, budget=4)
    with pytest.raises(InputError, match="not yes or no"):
        Campaign.create(tmp_path / "a.seqopt", POOL, objective="hit", near=Near(LEAD, 2), transform="yes/no")
    assert not (tmp_path / "a.seqopt").exists()
