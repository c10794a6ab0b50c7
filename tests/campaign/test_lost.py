"""Results that were lost: recorded, suggested again, and no failures of their strings."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from seqopt.campaign import Campaign, CampaignError
from seqopt.data import Contexts
from seqopt.errors import InputError
from seqopt.spaces import CandidateSet, StringSpace
from seqopt.strategies import MultiFidelity

POOL = ["".join(letters) for letters in itertools.product("ABC", repeat=3)]


def begun(path: Path) -> Campaign:
    return Campaign.create(path, StringSpace("AB", 7), objective="activity", surrogate="one-hot", batch_size=3, seed=1)


def test_what_was_lost_is_suggested_again_and_teaches_nothing(tmp_path: Path) -> None:
    with begun(tmp_path / "a.seqopt") as campaign:
        first, second, third = campaign.suggest()
        campaign.record(first.name, 1.0)
        campaign.record(second.name, lost="the robot dropped it")
        campaign.record(third.name, failure="did not dissolve")
        data = campaign.session().optimizer.state().data
        assert [query.key for query in data.queries] == [first.string, third.string]
        assert data.failed.tolist() == [False, True]
        again = campaign.suggest()
        assert [row.string for row in again if row.string in (first.string, second.string, third.string)] == [
            second.string
        ]
        assert again[0].string == second.string
        campaign.record(again[0].name, 2.0)
        assert campaign.store.check() == []
    with Campaign.open(tmp_path / "a.seqopt") as opened:
        assert opened.session().optimizer.best.string == second.string
        assert second.string not in [row.string for row in opened.suggest(5)]


def test_a_table_says_it_with_the_reason(tmp_path: Path) -> None:
    with begun(tmp_path / "a.seqopt") as campaign:
        names = [row.name for row in campaign.suggest()]
        strings = [row.string for row in campaign.store.suggestions()]
        (tmp_path / "done.csv").write_text(
            f"string,activity,failure\n{strings[0]},1.5,\n{strings[1]},,Lost: a power cut\n{strings[2]},,insoluble\n"
        )
        campaign.record_file(tmp_path / "done.csv")
        assert len(names) == 3
        assert campaign.suggest()[0].string == strings[1]
        assert campaign.session().optimizer.state().data.failed.sum() == 1


def test_a_loss_and_a_failure_are_two_things(tmp_path: Path) -> None:
    with begun(tmp_path / "a.seqopt") as campaign:
        (first, *_) = campaign.suggest()
        with pytest.raises(InputError, match="failed or was lost, not both"):
            campaign.record(first.name, failure="insoluble", lost="dropped")
        with pytest.raises(InputError, match="a loss needs a reason"):
            campaign.record(first.name, lost=" ")
        assert campaign.store.counts().failures == 0


@pytest.mark.parametrize("transform", [None, "yes/no"])
def test_a_batch_that_was_lost_as_a_whole_is_suggested_again(tmp_path: Path, transform: str | None) -> None:
    """From its file, where no model has been fitted yet."""
    path = tmp_path / "a.seqopt"
    options = {"surrogate": "one-hot", "batch_size": 3, "seed": 1, "transform": transform}
    with Campaign.create(path, StringSpace("AB", 7), objective="activity", **options) as campaign:
        for name, value in zip([row.name for row in campaign.suggest(4)], (1.0, 0.0, 1.0, 0.0), strict=True):
            campaign.record(name, value)
        lost = campaign.suggest(3)
        assert all(row.mean is not None for row in lost)
        for row in lost:
            campaign.record(row.name, lost="the robot dropped the plate")
    with Campaign.open(path) as opened:
        again = opened.suggest(3)
        assert [row.string for row in again] == [row.string for row in lost]
        assert {row.reason["kind"] for row in again} == {"lost"}


def test_a_loss_that_is_recorded_twice_is_refused_and_a_value_goes_to_the_new_name(tmp_path: Path) -> None:
    with begun(tmp_path / "a.seqopt") as campaign:
        first, *_ = campaign.suggest()
        campaign.record(first.name, lost="the robot dropped it")
        (again,) = campaign.suggest(1, more=True)
        assert (again.name, again.string) == ("B02-01", first.string)
        with pytest.raises(CampaignError, match=r"failed \(lost: the robot dropped it\).*is awaited as B02-01 by now"):
            campaign.record(first.name, lost="the robot dropped it")
        assert first.string not in [row.string for row in campaign.suggest(2, more=True)]
        (measured,) = campaign.record(first.name, 2.0)
        assert measured.suggestion == "B02-01"
        assert [row.name for row in campaign.store.suggestions() if row.status == "measured"] == ["B02-01"]
        assert campaign.store.check() == []


@pytest.mark.parametrize("reason", ["lost:spilled", "LOST", "lost : spilled"])
def test_a_loss_in_a_table_need_not_be_written_to_the_letter(tmp_path: Path, reason: str) -> None:
    with begun(tmp_path / "a.seqopt") as campaign:
        first, *_ = campaign.suggest()
        campaign.record(first.name, failure=reason)
        assert campaign.suggest(1, more=True)[0].string == first.string


def test_a_suggestion_that_was_lost_can_be_withdrawn_or_corrected(tmp_path: Path) -> None:
    with begun(tmp_path / "a.seqopt") as campaign:
        first, second, third = campaign.suggest()
        for row in (first, second):
            campaign.record(row.name, lost="the robot dropped it")
        campaign.record(third.name, failure="insoluble")
        campaign.withdraw([first.name], "too dear to try again")
        with pytest.raises(CampaignError, match="B01-03 is failed, not open"):
            campaign.withdraw([third.name])
        assert campaign.correct(third.name, lost="it was not insoluble: no DMSO").failure == (
            "lost: it was not insoluble: no DMSO"
        )
        strings = [row.string for row in campaign.suggest(4)]
        assert strings[:2] == [second.string, third.string]
        assert first.string not in strings
        with pytest.raises(CampaignError, match="B01-02 was lost, and is suggested again as B02-01: withdraw that"):
            campaign.withdraw([second.name])
        assert campaign.store.check() == []
    with Campaign.open(tmp_path / "a.seqopt") as opened:
        assert first.string not in [row.string for row in opened.suggest(3, more=True)]


def test_what_was_lost_and_is_known_by_now_is_not_withdrawn(tmp_path: Path) -> None:
    with begun(tmp_path / "a.seqopt") as campaign:
        first, second, _ = campaign.suggest()
        campaign.record(first.name, lost="the robot dropped it")
        (again,) = campaign.suggest(1, more=True)
        campaign.record(again.name, 3.0)
        with pytest.raises(CampaignError, match=r"has a result by now \(3\)"):
            campaign.withdraw([first.name])
        campaign.record(second.name, lost="a flood")
        campaign.withdraw([second.name])
        with pytest.raises(CampaignError, match="withdrawn already"):
            campaign.withdraw([second.name])


@pytest.mark.parametrize("how", ["plates", "fidelities"])
def test_a_loss_is_withdrawn_in_the_way_in_which_it_was_to_be_measured(tmp_path: Path, how: str) -> None:
    options: dict[str, Any] = (
        {"plates": 30}
        if how == "plates"
        else {
            "contexts": Contexts.of_levels("fidelity", {"low": 1.0, "high": 5.0}, target="high"),
            "strategy": MultiFidelity(),
        }
    )
    with Campaign.create(
        tmp_path / "a.seqopt", CandidateSet(POOL, kind="text"), objective="y", batch_size=2, seed=1, **options
    ) as campaign:
        first, second = campaign.suggest()
        campaign.record(first.name, lost="the robot dropped it")
        campaign.record(second.name, 1.0)
        campaign.withdraw([first.name])
        never = next(one for one in POOL if one not in (first.string, second.string))
        campaign.withdraw([never])
        assert not {first.string, never} & {row.string for row in campaign.suggest(5)}
        assert campaign.store.check() == []


def test_what_was_lost_on_a_full_plate_is_suggested_on_another_one_and_once(tmp_path: Path) -> None:
    pool = CandidateSet(POOL, kind="text")
    with Campaign.create(tmp_path / "a.seqopt", pool, objective="y", plates=3, batch_size=3, seed=1) as campaign:
        first, *others = campaign.suggest()
        campaign.record(first.name, lost="the robot dropped it")
        for number, row in enumerate(others):
            campaign.record(row.name, float(number))
        batch = campaign.suggest()
        assert len(batch) == 3
        assert [row.string for row in batch].count(first.string) == 1
        assert batch[0].string == first.string
        assert {row.context for row in batch} == {(("plate", "P2"),)}
        for number, row in enumerate(batch):
            campaign.record(row.name, float(number))
        assert first.string not in [row.string for row in campaign.suggest()]
        assert campaign.store.check() == []
