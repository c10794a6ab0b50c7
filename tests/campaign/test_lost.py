"""Results that were lost: recorded, suggested again, and no failures of their strings."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqopt.campaign import Campaign
from seqopt.errors import InputError
from seqopt.spaces import StringSpace


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
