"""The space of a campaign: made again from the file, or given again and held against it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt.campaign import Campaign, CampaignError
from seqopt.campaign.spaces import restored_space
from seqopt.campaign.summary import summarize
from seqopt.encoding import Alphabet, Encoder
from seqopt.errors import InputError
from seqopt.spaces import CandidateSet, CodonSpace, GrammarSpace, Space, StringSpace
from seqopt.spaces.candidate_set import LISTED
from seqopt.utils.config import Configurable, described


def begun(path: Path, space: Space) -> Path:
    Campaign.create(path, space, objective="y", batch_size=2).close()
    return path


class Words:
    """All words of some length over a and b."""

    kind = "text"

    def __init__(self, length: int) -> None:
        self.length = length
        self.encoder = Encoder("characters", Alphabet("ab"))

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        return ["".join(rng.choice(["a", "b"], self.length)) for _ in range(n)]

    def contains(self, string: str) -> bool:
        return len(string) == self.length and set(string) <= set("ab")

    def key(self, string: str) -> str:
        return string

    def keys_of(self, strings: Sequence[str]) -> list[str]:
        return list(strings)


class ConfigurableWords(Configurable, Words):
    """One that can be written down."""


def test_a_custom_space_is_given_again_and_told_from_others(tmp_path: Path) -> None:
    path = begun(tmp_path / "c.seqopt", Words(8))
    with Campaign.open(path) as campaign, pytest.raises(CampaignError, match=r"custom space \(.*Words\), which its"):
        campaign.suggest()
    said = "another space than the one given: space.length was 8, is now 9"
    with Campaign.open(path, Words(9)) as campaign, pytest.raises(CampaignError, match=said):
        campaign.suggest()
    with Campaign.open(path, StringSpace("ab", 8)) as campaign, pytest.raises(CampaignError, match="is now 'StringSp"):
        campaign.suggest()
    with Campaign.open(path, Words(8)) as campaign:
        assert len(campaign.suggest()) == 2


def test_a_custom_space_that_can_be_written_down_is_made_again(tmp_path: Path) -> None:
    with Campaign.open(begun(tmp_path / "c.seqopt", ConfigurableWords(8))) as campaign:
        assert isinstance(campaign.space, ConfigurableWords)
        assert campaign.space.length == 8
        assert len(campaign.suggest()) == 2


@pytest.mark.parametrize("kind", [StringSpace("01", 8), GrammarSpace("arithmetic", 2, 9)], ids=repr)
def test_a_space_that_the_file_holds_may_be_given_as_well(kind: Any, tmp_path: Path) -> None:
    with Campaign.open(begun(tmp_path / "c.seqopt", kind), kind) as campaign:
        assert campaign.space is kind
    with pytest.raises(CampaignError, match=r"space\.accept was None, is now 'str\.isupper'"):
        restored_space(StringSpace("01", 8).config(), StringSpace("01", 8, accept=str.isupper))


def test_a_grammar_that_is_missing_or_has_changed_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    grammar = tmp_path / "mine.cfg"
    grammar.write_text("S -> 'a' S | 'b'")
    path = begun(tmp_path / "c.seqopt", GrammarSpace("mine.cfg", 1, 9))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with Campaign.open(path) as campaign:
        assert campaign.space.contains("aab")
    grammar.write_text("# the same rules\nS -> 'a' S\nS -> 'b'")
    with Campaign.open(path) as campaign:
        assert campaign.space.contains("aab")
    grammar.write_text("S -> 'a' S | 'c'")
    with Campaign.open(path) as campaign, pytest.raises(CampaignError, match=r"mine\.cfg has changed"):
        campaign.suggest()
    grammar.unlink()
    with Campaign.open(path) as campaign, pytest.raises(CampaignError, match=r"no grammar file .*mine\.cfg"):
        campaign.suggest()
    moved = tmp_path / "elsewhere" / "mine.cfg"
    moved.write_text("S -> 'a' S | 'b'")
    with Campaign.open(path, GrammarSpace(moved, 1, 9)) as campaign:
        assert len(campaign.suggest()) == 2
    kept = GrammarSpace(moved, 1, 9).config() | {"grammar": str(grammar)}
    with pytest.raises(CampaignError, match=r"one given: space\.max_length was 9, is now 8$"):
        restored_space(kept, GrammarSpace(moved, 1, 8))


def test_a_few_candidates_are_kept_and_many_are_given_again(tmp_path: Path) -> None:
    few = CandidateSet(["OCC", "c1ccccc1", "CCN"], kind="molecule", standardize=True)
    with Campaign.open(begun(tmp_path / "few.seqopt", few)) as campaign:
        assert [campaign.space[index] for index in range(3)] == ["OCC", "c1ccccc1", "CCN"]
        assert summarize(campaign)[0].lines[0] == "searched: 3 candidates given in Python"
    words = [f"{number:04d}" for number in range(LISTED + 1)]
    path = begun(tmp_path / "many.seqopt", CandidateSet(words, kind="text"))
    with Campaign.open(path) as campaign, pytest.raises(CampaignError, match="give the space"):
        campaign.suggest()
    other = CandidateSet([*words[:-1], "x"], kind="text")
    with Campaign.open(path, other) as campaign, pytest.raises(CampaignError, match=r"space\.keys_sha256 was"):
        campaign.suggest()
    with Campaign.open(path, CandidateSet(words, kind="text")) as campaign:
        assert summarize(campaign)[0].lines[0] == "searched: 1,001 candidates given in Python"
        assert len(campaign.suggest()) == 2


def test_a_list_is_of_the_kind_that_was_given(tmp_path: Path) -> None:
    words = ["AAAA", "AAAC", "AACC", "ACCC", "CCCC"]
    with Campaign.create(tmp_path / "few.seqopt", words, kind="text", objective="y", batch_size=2) as campaign:
        assert campaign.space.kind == "text"
        campaign.record("ZZAA", 1.0)
    with Campaign.create(tmp_path / "auto.seqopt", words, kind="auto", objective="y", batch_size=2) as campaign:
        assert campaign.space.kind == "dna"
    many = [f"{number:011b}".replace("0", "A").replace("1", "C") for number in range(LISTED + 1)]
    Campaign.create(tmp_path / "many.seqopt", many, kind="text", objective="y", batch_size=2).close()
    with Campaign.open(tmp_path / "many.seqopt", many) as campaign:
        assert campaign.space.kind == "text"


@pytest.mark.parametrize(
    ("space", "kind", "message"),
    [
        (["AAAA", "AAAC"], "nonsense", "unknown kind 'nonsense': choose auto, molecule, protein, dna, rna, text"),
        (StringSpace("ab", 4), "nonsense", "unknown kind 'nonsense': choose auto, molecule"),
        (["AAAA", "AAZC"], "dna", "'AAZC'. is not a valid dna"),
        (StringSpace("ab", 4), "dna", "kind is 'dna', and the StringSpace holds text strings: leave kind out"),
        (CandidateSet(["ab", "ba"], kind="text"), "protein", "kind is 'protein', and the CandidateSet holds text"),
    ],
)
def test_a_kind_that_is_none_or_another_is_refused(space: Any, kind: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        Campaign.create(tmp_path / "a.seqopt", space, kind=kind, objective="y", batch_size=2)
    assert not (tmp_path / "a.seqopt").exists()


def test_a_description_that_makes_no_space_is_refused() -> None:
    with pytest.raises(CampaignError, match="no part of the type 'Unheard': import the module"):
        restored_space({"type": "Unheard"})
    with pytest.raises(CampaignError, match="described as a RandomSearch, which is no space"):
        restored_space({"type": "RandomSearch", "candidates": 3})
    long = StringSpace("".join(map(chr, range(0x4E00, 0x4E00 + 200))), 9)
    with pytest.raises(CampaignError, match=re.escape("space.alphabet was '")) as caught:
        restored_space(long.config(), StringSpace("ab", 9))
    assert len(str(caught.value)) < 200
    assert described(long)["alphabet"] == "".join(long.symbols)


def test_molecules_of_a_list_are_compared_by_their_parents_if_wanted(tmp_path: Path) -> None:
    salts = ["CC(=O)O", "CC(=O)[O-].[Na+]", "CCN", "CCO"]
    path = tmp_path / "a.seqopt"
    with Campaign.create(path, salts, objective="y", standardize=True) as campaign:
        assert len(campaign.space) == 3
        campaign.record("CC(=O)[O-]", 1.0)
    with Campaign.open(path, space=salts) as opened:
        assert len(opened.space) == 3
        assert "CC(=O)O" not in [row.string for row in opened.suggest(2)]
    with pytest.raises(InputError, match="CandidateSet was made without standardize"):
        Campaign.create(tmp_path / "b.seqopt", CandidateSet(salts), objective="y", standardize=True)


def test_genes_that_constraints_leave_out_are_recorded_and_predicted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    space = CodonSpace("EFEFEF", forbidden=["GAATTC"])
    outside = ["GAATTCGAATTCGAATTC", "GAATTCGAATTTGAATTT"]
    (tmp_path / "old.csv").write_text("gene,y\n" + "".join(f"{gene},{i}\n" for i, gene in enumerate(outside, 8)))
    with Campaign.create(tmp_path / "genes.seqopt", space, objective="y", batch_size=3) as campaign:
        campaign.record("GAATTTGAATTTGAATTC", 7.0)
        assert "one string is left out of the space: it holds 'GAATTC' at base 13; the model learns" in caplog.text
        _, results = campaign.record_file(tmp_path / "old.csv", string_column="gene")
        (said,) = [str(one) for one in results.warnings if "left out" in one.message]
        assert "2 strings are left out of the space, the first because it holds 'GAATTC' at base 1;" in said
        caplog.clear()
        campaign.record("GAGTTTGAGTTTGAATTT", 1.0)
        assert "left out" not in caplog.text
        batch = campaign.suggest()
        assert all(space.contains(one.string) for one in batch)
        caplog.clear()
        (found,) = campaign.predict(outside[:1])
        assert (found.status, found.measured) == ("measured", 8.0)
        assert "one string is left out of the space: it holds 'GAATTC' at base 1" in caplog.text
        with pytest.raises(CampaignError, match="codes for W"):
            campaign.record("GAATTTGAATTTGAATGG", 1.0)
    with Campaign.open(tmp_path / "genes.seqopt") as campaign:
        assert len(campaign.store.measurements()) == 4
        assert all(space.contains(one.string) for one in campaign.suggest(2))
        # What is lost or failed is not suggested again, unless somebody names it.
        caplog.clear()
        campaign.record("GAATTCGAGTTTGAATTT", failure="lost: dropped")
        assert "left out" not in caplog.text
        assert all(space.contains(one.string) for one in campaign.suggest(1, more=True))
        campaign.record("GAATTCGAGTTCGAATTT", failure="insoluble")
        with pytest.raises(CampaignError, match="what failed is left out of the space"):
            campaign.retry_failed()
        assert [one.string for one in campaign.retry_failed(["GAATTCGAGTTCGAATTT"])] == ["GAATTCGAGTTCGAATTT"]
