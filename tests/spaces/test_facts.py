"""What spaces record of themselves: the same for the same strings, different for different ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from seqopt.spaces import CodonSpace, DescribedSpace, GrammarSpace, LocalSpace, StringSpace
from seqopt.spaces.facts import LONGEST_FACT, abridged, predicate_name

LONG = "MKVLWTIKENIFGVS" * 10

SPACES: list[Callable[[], DescribedSpace]] = [
    lambda: StringSpace("01", 20),
    lambda: StringSpace("012", 20),
    lambda: StringSpace("01", min_length=19, max_length=20),
    lambda: StringSpace("01", 20, accept=str.isdigit),
    lambda: StringSpace("01", 20, accept=str.isalnum),
    lambda: LocalSpace(["AB", "C"]),
    lambda: LocalSpace([["AB"], "C"]),
    lambda: LocalSpace([["A,B"], "C"]),
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
]


def test_facts_tell_spaces_apart_and_are_the_same_for_the_same_space() -> None:
    written = [json.dumps(make().facts()) for make in SPACES]
    assert written == [json.dumps(make().facts()) for make in SPACES]
    assert len(set(written)) == len(SPACES)


@pytest.mark.parametrize("make", SPACES)
def test_facts_are_short(make: Callable[[], DescribedSpace]) -> None:
    space = make()
    assert isinstance(space, DescribedSpace)
    assert len(json.dumps(space.facts())) < 600


def test_a_grammar_is_known_by_its_rules_and_not_by_its_name_or_comments(tmp_path: Path) -> None:
    path = tmp_path / "mine.cfg"
    seen = []
    for text in ("S -> 'a' S | 'b'", "# said\nS -> 'a' S\nS -> 'b'", "S -> 'a' S | 'c'"):
        path.write_text(text)
        seen.append(GrammarSpace(path).facts()["rules"])
    assert seen[0] == seen[1] != seen[2]


def test_the_order_of_motifs_does_not_matter() -> None:
    one, other = (CodonSpace("TIKENIFGVS", forbidden=motifs) for motifs in (["GAATTC", "AAAA"], ["AAAA", "GAATTC"]))
    assert one.facts() == other.facts()


def test_predicates_are_named() -> None:
    class Longer:
        def __call__(self, string: str) -> bool:
            return len(string) > 3

    assert predicate_name(Longer()).endswith("Longer")  # type: ignore[union-attr]
    assert predicate_name(test_predicates_are_named) == "test_predicates_are_named"


def test_long_texts_are_told_apart_by_their_ends() -> None:
    text = "A" * LONGEST_FACT
    assert abridged(text) == text
    assert abridged(text + "B") != abridged(text + "C")
    assert len(abridged(text * 50)) < 100
