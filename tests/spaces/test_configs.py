"""What spaces are written down as: the same for the same strings, different for different ones, and made again."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nltk import CFG

from seqopt.encoding.codons import CodonTokenizer
from seqopt.errors import InputError
from seqopt.spaces import (
    CandidateSet,
    CodonLibrary,
    CodonSpace,
    GrammarSpace,
    LocalSpace,
    ParentSpace,
    StringSpace,
    TemplateSpace,
)
from seqopt.spaces.candidate_set import LISTED
from seqopt.spaces.local import LocalTokenizer
from seqopt.utils.config import NotConfigurableError, config_of, described, from_config

LONG = "MKVLWTIKENIFGVS" * 10
WORDS = [f"w{number:05d}" for number in range(LISTED + 1)]

SPACES: list[Callable[[], Any]] = [
    lambda: StringSpace("01", 20),
    lambda: StringSpace("012", 20),
    lambda: StringSpace("01", min_length=19, max_length=20),
    lambda: StringSpace("01", 20, accept=str.isdigit),
    lambda: StringSpace("01", 20, accept=str.isalnum),
    lambda: LocalSpace(["AB", "C"]),
    lambda: LocalSpace([["AB"], "C"]),
    lambda: LocalSpace([["A,B"], "C"]),
    lambda: TemplateSpace("MK[AV]x{2-3}"),
    lambda: TemplateSpace("MK[AV]x{2-4}"),
    lambda: TemplateSpace("MK[AV]x{2-3}", letters="ACD"),
    lambda: TemplateSpace("MK[AV]x{2-3}", parent="MKAAA"),
    lambda: ParentSpace("MKVL", 1),
    lambda: ParentSpace("MKVL", 2),
    lambda: ParentSpace("MKVL", 2, positions="1-3"),
    lambda: ParentSpace("MKVL", 2, letters="AVL"),
    lambda: ParentSpace("MKVI", 2),
    lambda: CodonLibrary("NNK,NNK"),
    lambda: CodonLibrary("NNK,NNS"),
    lambda: CodonLibrary("NNK", parent="MKVL", positions="1,2"),
    lambda: CodonLibrary("NNK", parent="MKVL", positions="1,3"),
    lambda: CodonLibrary("NNK", parent="MKVL", positions="1,3", code=2),
    lambda: CodonSpace("TIKENIFGVS"),
    lambda: CodonSpace("TIKENIFGVT"),
    lambda: CodonSpace("TIKENIFGVS", code=2),
    lambda: CodonSpace("TIKENIFGVS", representation="bases"),
    lambda: CodonSpace("TIKENIFGVS", start="ATG"),
    lambda: CodonSpace("TIKENIFGVS", stop="TAA"),
    lambda: CodonSpace("TIKENIFGVS", forbidden=["GAATTC"]),
    lambda: CodonSpace("TIKENIFGVS", forbidden=["GAATTC"], both_strands=True),
    lambda: CodonSpace("TIKENIFGVS", gc=(0.3, 0.5)),
    lambda: CodonSpace(LONG),
    lambda: CodonSpace(LONG[:-1] + "T"),
    lambda: GrammarSpace("arithmetic", 3, 20),
    lambda: GrammarSpace("arithmetic", 3, 21),
    lambda: GrammarSpace("arithmetic", 3, 20, discount=0.5),
    lambda: GrammarSpace("regex", 3, 20),
    lambda: GrammarSpace(CFG.fromstring("S -> 'a' S | 'b'")),
    lambda: GrammarSpace(CFG.fromstring("S -> 'a' S | 'c'")),
    lambda: CandidateSet(["OCC", "CCO", "CCN"], kind="molecule"),
    lambda: CandidateSet(["CCN", "OCC"], kind="molecule"),
    lambda: CandidateSet(["CCN", "OCC"], kind="molecule", tokenizer="smiles"),
    lambda: CandidateSet(["CC(=O)[O-].[Na+]", "CCO"], kind="molecule", standardize=True),
    lambda: CandidateSet(["CC(=O)[O-].[Na+]", "CCO"], kind="molecule"),
    lambda: CandidateSet(WORDS, kind="text"),
    lambda: CandidateSet(WORDS[::-1], kind="text"),
    lambda: CandidateSet([*WORDS[:-1], "x"], kind="text"),
    lambda: CandidateSet(WORDS, kind="protein", keys=[word.upper() for word in WORDS]),
]


def test_descriptions_tell_spaces_apart_and_are_the_same_for_the_same_space() -> None:
    written = [json.dumps(described(make())) for make in SPACES]
    assert written == [json.dumps(described(make())) for make in SPACES]
    assert len(set(written)) == len(SPACES)


@pytest.mark.parametrize("make", SPACES)
def test_what_can_be_written_down_is_made_again(make: Callable[[], Any]) -> None:
    space = make()
    found = described(space)
    if found.get("custom"):
        with pytest.raises(NotConfigurableError):
            space.config()
        return
    again = from_config(json.loads(json.dumps(space.config(), allow_nan=False)))
    assert type(again) is type(space)
    assert again.config() == space.config() == found
    strings = space.sample(10, np.random.default_rng(0))
    assert again.sample(10, np.random.default_rng(0)) == strings
    assert again.keys_of(strings) == space.keys_of(strings)
    if hasattr(space, "mutate"):
        moved = [
            one.to_strings(one.mutate(list(map(one.from_string, strings)), np.random.default_rng(1)))
            for one in (space, again)
        ]
        assert moved[0] == moved[1]


def test_descriptions_do_not_list_what_is_large() -> None:
    many = described(CandidateSet(WORDS, kind="text"))
    assert len(json.dumps(many)) < 300
    assert many["size"] == len(WORDS)
    rules = "S -> A\n" + "\n".join(f"A -> 'x{number}' A | 'y{number}'" for number in range(300))
    assert len(json.dumps(described(GrammarSpace(CFG.fromstring(rules), 1, 5)))) < 300


def test_a_predicate_is_not_written_down_and_goes_by_its_name() -> None:
    class Longer:
        def __init__(self, length: int) -> None:
            self.length = length

        def __call__(self, string: str) -> bool:
            return len(string) > self.length

    for space in (
        StringSpace("01", 5, accept=str.isdigit),
        LocalSpace(["01"] * 5, str.isdigit),
        GrammarSpace("arithmetic", 1, 5, accept=str.isdigit),
    ):
        with pytest.raises(NotConfigurableError, match=r"accept of .*: str\.isdigit cannot be written down"):
            space.config()
        assert (described(space)["custom"], described(space)["accept"]) == (True, "str.isdigit")
    one, other = (described(StringSpace("01", 5, accept=Longer(length))) for length in (2, 3))
    assert (one["accept"]["length"], other["accept"]["length"]) == (2, 3)
    # What it has left of candidates is known.
    pool = CandidateSet(["a", "B"], kind="text", accept=partial(str.isupper))
    assert from_config(pool.config()).strings == ["B"]


def test_a_grammar_is_known_by_its_rules_and_not_by_its_comments(tmp_path: Path) -> None:
    path = tmp_path / "mine.cfg"
    seen = []
    for text in ("S -> 'a' S | 'b'", "# said\nS -> 'a' S\nS -> 'b'", "S -> 'a' S | 'c'"):
        path.write_text(text)
        seen.append(GrammarSpace(path).config())
    assert seen[0] == seen[1] != seen[2]
    assert seen[0]["grammar"] == str(path)
    assert from_config(seen[2]).contains("ac")
    with pytest.raises(InputError, match=r"mine\.cfg has changed: the fingerprint of its rules is .* is expected"):
        from_config(seen[0])
    path.unlink()
    with pytest.raises(InputError, match="no grammar file"):
        from_config(seen[2])
    assert GrammarSpace("arithmetic").config()["grammar"] == "arithmetic"


def test_a_grammar_of_a_path_is_found_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.cfg").write_text("S -> 'a' S | 'b'")
    monkeypatch.chdir(tmp_path)
    space = GrammarSpace("mine.cfg")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert from_config(space.config()).contains("ab")
    with pytest.raises(NotConfigurableError, match="given as rules, not by a name or path"):
        GrammarSpace(CFG.fromstring("S -> 'a'")).config()


def test_the_order_of_motifs_does_not_matter() -> None:
    one, other = (CodonSpace("TIKENIFGVS", forbidden=motifs) for motifs in (["GAATTC", "AAAA"], ["AAAA", "GAATTC"]))
    assert one.config() == other.config()
    assert CodonSpace("TIK", both_strands=True).config() == CodonSpace("TIK").config()


def test_a_config_is_as_large_as_what_decides_on_the_strings() -> None:
    config = CodonSpace(LONG).config()
    assert config["protein"] == LONG
    assert len(json.dumps(config)) < len(LONG) + 300


class Ones(StringSpace):
    """A space of a subclass with a constructor of its own, which keeps its argument."""

    def __init__(self, ones: int) -> None:
        super().__init__("01", 8)
        self.ones = ones


class Marked(StringSpace):
    """One that takes more than its base class."""

    def __init__(self, *arguments: Any, mark: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.mark = mark


class Forgetful(StringSpace):
    """One that takes more, and does not keep it."""

    def __init__(self, alphabet: str, *, flavour: str = "", **options: Any) -> None:
        super().__init__(alphabet, **options)


def test_subclasses_are_written_down_where_that_makes_them_again() -> None:
    with pytest.raises(NotConfigurableError, match=r"Ones does not take the arguments .*override config_arguments"):
        Ones(3).config()
    assert described(Ones(3)) != described(Ones(4))
    assert described(Ones(3))["alphabet"] == "01"
    space = Marked("01", max_length=4, mark="x")
    again = from_config(space.config())
    assert (type(again), again.mark, again.max_length) == (Marked, "x", 4)
    with pytest.raises(NotConfigurableError, match="Forgetful takes flavour, and has no attribute of that name"):
        Forgetful("01", max_length=3).config()


def test_the_tokenisers_of_spaces_are_made_again() -> None:
    space = GrammarSpace("arithmetic")
    for tokenizer, string in (
        (CodonTokenizer(), "ATGTGG"),
        (LocalTokenizer([["C", "CC"], ["C", "N"]]), "CCC"),
        (space.encoder.tokenizer, "sin(x)"),
    ):
        again = from_config(json.loads(json.dumps(config_of(tokenizer))))
        assert again.tokenize(string) == tokenizer.tokenize(string)
        assert config_of(again) == config_of(tokenizer)
    pool = CandidateSet(["ATGTGG"], kind="dna", tokenizer=CodonTokenizer())
    assert from_config(pool.config()).encoded.lengths.tolist() == [2]
