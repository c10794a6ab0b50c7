"""Lists of strings that may not be suggested."""

from pathlib import Path

import pytest

from seqopt import StringSpace, maximize
from seqopt.errors import InputError
from seqopt.filters import Listed, Pattern, filter_pool, narrow
from seqopt.filters.conditions import from_json, to_json
from seqopt.filters.filtering import check_filters, failing
from seqopt.filters.listed import read_list


def test_two_writings_of_a_molecule_are_one() -> None:
    (item,) = check_filters([Listed(["OCC", "C(O)C"])], "molecule", None, None)
    assert isinstance(item, Listed)
    assert item.strings == ("CCO",)
    mask, report = filter_pool(["C(C)O", "CCN"], ["CCO", "CCN"], "molecule", [item])
    assert mask.tolist() == [False, True]
    assert report.steps[0].filter == "not one of the 1 string listed (CCO)"


def test_salts_are_their_parents_where_these_are_the_candidates() -> None:
    (item,) = check_filters([Listed(["CC(=O)[O-].[Na+]"])], "molecule", None, None, standardize=True)
    assert isinstance(item, Listed)
    assert item.strings == ("CC(=O)O",)


def test_only_what_is_listed_may_be_suggested_if_that_is_asked_for() -> None:
    only = Listed(["AB", "BA"], required=True)
    assert [only.allows(key) for key in ("AB", "AA")] == [True, False]


def test_a_space_that_generates_its_strings_leaves_listed_ones_out() -> None:
    space = narrow(StringSpace("AB", 3), [Listed(["AAA", "BBB"]), Pattern("^A|^B")])
    assert space.accept is not None
    kept = [string for string in ("AAA", "AAB", "BBB", "BAB") if space.accept(string)]
    assert kept == ["AAB", "BAB"]


def test_a_list_is_kept_as_json_and_explains_itself() -> None:
    item = Listed(["CCO"], source="patented.smi")
    assert from_json(to_json([item])) == [item]
    why = failing({"B01-01": ("OCC", "CCO"), "B01-02": ("CCN", "CCN")}, "molecule", [item], None)
    assert why == {"B01-01": "it is one of the strings in patented.smi"}


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"1 of the listed strings in bad\.smi cannot be read as molecule: 'C1CC'"):
        check_filters([Listed(["CCO", "C1CC"], source="bad.smi")], "molecule", None, None)
    with pytest.raises(InputError, match=r"the list bad\.smi is empty"):
        Listed([], source="bad.smi").checked()
    (tmp_path / "list.csv").write_text("id,smiles\n1,OCC\n2,CCN\n")
    assert read_list(tmp_path / "list.csv") == ["OCC", "CCN"]


def test_a_search_never_evaluates_what_is_excluded() -> None:
    pool = [f"{'A' * n}{'B' * m}" for n in range(1, 6) for m in range(1, 6)]
    result = maximize(
        lambda strings: [len(string) for string in strings],
        pool,
        initial=5,
        budget=30,
        filters=[Listed(["AAAAABBBBB", "AAAAABBBB"])],
    )
    assert len(result.evaluations) == 23
    assert not set(result.evaluations["key"]) & {"AAAAABBBBB", "AAAAABBBB"}
    with pytest.raises(InputError, match=r"none of 25 candidates passes the filters: .* removes 25 of 25"):
        maximize(lambda strings: [0.0 for _ in strings], pool, initial=5, filters=[Pattern("C")])
