"""What a campaign begins with: strings that were asked for, a design, limits of a batch, and lists."""

from collections import Counter
from pathlib import Path

import pytest
from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

from seqopt import BatchLimits
from seqopt.campaign import Campaign
from seqopt.errors import InputError
from seqopt.filters import Listed, Pattern

RINGS = ["c1ccc({})cc1", "c1cc({})ccn1", "C1CCC({})CC1"]
SMILES = [ring.format(tail) for ring in RINGS for tail in ("C", "CC", "O", "N", "Cl", "CO", "C#N")]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "library.csv").write_text("smiles\n" + "\n".join(SMILES) + "\n")
    return tmp_path / "library.csv"


def test_a_campaign_keeps_what_it_was_begun_with(tmp_path: Path, library: Path) -> None:
    (tmp_path / "references.smi").write_text("OC1CCCCC1 cyclohexanol\n")
    with Campaign.create(
        tmp_path / "a.seqopt",
        library,
        objective="value",
        batch_size=5,
        design="maxmin",
        include=tmp_path / "references.smi",
        limits=BatchLimits(per_scaffold=2),
    ) as campaign:
        first = campaign.suggest(2)
    with Campaign.open(tmp_path / "a.seqopt") as campaign:
        # As it stands in the library, whatever the list says.
        assert first[0].string == "C1CCC(O)CC1"
        assert [row.reason["kind"] for row in first] == ["included", "maxmin"]
        second = campaign.suggest(3, more=True)
        counts = Counter(MurckoScaffoldSmiles(row.string) for row in (*first, *second))
        assert max(counts.values()) == 2
        for row in (*first, *second):
            campaign.record(row.name, float(len(row.string)))
        third = campaign.suggest()
        assert len(third) == 5
        assert {row.reason["kind"] for row in third} <= {"exploit", "explore"}
        assert max(Counter(MurckoScaffoldSmiles(row.string) for row in third).values()) == 2


def test_a_list_can_be_excluded_and_that_undone(tmp_path: Path, library: Path) -> None:
    with Campaign.create(tmp_path / "a.seqopt", library, objective="value", batch_size=len(SMILES)) as campaign:
        campaign.set_filters([Listed(SMILES[:-3], source="bad.smi")])
        assert {row.string for row in campaign.suggest()} == set(SMILES[-3:])
        campaign.undo()
        campaign.undo()
        assert campaign.filters == []


def test_what_was_asked_for_may_fall_out_later(tmp_path: Path, library: Path) -> None:
    with pytest.raises(InputError, match=r"'CCO' is to be included in the first batch, and is not among"):
        Campaign.create(tmp_path / "a.seqopt", library, objective="value", include=["CCO"])
    with pytest.raises(InputError, match=r"is to be included in the first batch, and fails a filter"):
        Campaign.create(tmp_path / "a.seqopt", library, objective="value", include=SMILES[:1], filters=[Pattern("^C1")])
    assert not (tmp_path / "a.seqopt").exists()
    with Campaign.create(
        tmp_path / "a.seqopt", library, objective="value", batch_size=3, include=SMILES[:2]
    ) as campaign:
        campaign.set_filters([Listed(SMILES[:1])])
        found = [row.string for row in campaign.suggest()]
        assert found[0] == SMILES[1]
        assert SMILES[0] not in found
