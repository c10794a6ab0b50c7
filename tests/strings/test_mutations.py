"""Names of variants say what changes, stand for one string each, and are refused where they do not fit the parent."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.errors import InputError
from seqopt.strings.mutations import is_mutation_name, mutant, mutation_name, variants_of

PARENT = "MKVLSTPE"
PEPTIDES = st.text("ACDMK", min_size=1, max_size=12)


@given(PEPTIDES, PEPTIDES)
@settings(deadline=None, max_examples=300)
def test_a_name_stands_for_the_string_that_it_was_made_of(parent: str, string: str) -> None:
    name = mutation_name(parent, string)
    assert mutant(parent, name) == string
    assert is_mutation_name(name)
    assert (name == "wt") == (parent == string)


def edit_distance(first: str, second: str) -> int:
    rows = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        before, rows[0] = rows[0], i
        for j, b in enumerate(second, start=1):
            before, rows[j] = rows[j], min(rows[j] + 1, rows[j - 1] + 1, before + (a != b))
    return rows[-1]


def changed_letters(parent: str, name: str) -> int:
    total = 0
    for change in name.split("/"):
        if "ins" in change and "del" not in change:
            total += len(change.split("ins")[1])
        elif "del" in change:
            first, _, rest = change.partition("del")
            ends = [int(part[1:]) for part in first.split("_")]
            gone = parent[ends[0] - 1 : ends[-1]]
            come = rest.removeprefix("ins")
            total += edit_distance(gone, come)
        else:
            total += 1
    return total


@given(PEPTIDES, PEPTIDES)
@settings(deadline=None, max_examples=300)
def test_strings_of_other_lengths_are_named_with_as_few_letters_as_possible(parent: str, string: str) -> None:
    if len(parent) != len(string):
        assert changed_letters(parent, mutation_name(parent, string)) == edit_distance(parent, string)


@pytest.mark.parametrize(
    ("string", "name"),
    [
        ("MKVLSTPE", "wt"),
        ("MRVLSTPD", "K2R/E8D"),
        ("MKVLSTE", "P7del"),
        ("MKVE", "L4_P7del"),
        ("MKVLSTPPE", "P7_E8insP"),  # a gap stands as far to the end as it can
        ("MRVLGSTPE", "K2R/L4_S5insG"),
        ("GSMKVLSTPE", "M1delinsGSM"),
        ("MKVLSTPEHH", "E8delinsEHH"),
    ],
)
def test_names_are_those_of_the_field(string: str, name: str) -> None:
    assert mutation_name(PARENT, string) == name


@pytest.mark.parametrize(
    "text",
    [
        *("K2R/E8D", "E8D,K2R", "k2r e8d", "K2R; E8D", "K2R:E8D", "K2R+E8D", "K2R_E8D", "K2R-E8D", "K2R\u2013E8D"),
        *("Lys2Arg/Glu8Asp", "p.[Lys2Arg;Glu8Asp]", "p.(K2R/E8D)", "K2R\u00a0E8D"),
    ],
)
def test_names_are_read_as_people_write_them(text: str) -> None:
    assert mutant(PARENT, text) == "MRVLSTPD"


@pytest.mark.parametrize(
    ("text", "string"),
    [
        ("V3_L4del_E8D", "MKSTPD"),
        ("Val3_Leu4del", "MKSTPE"),
        ("K2_V3insAlaGly", "MKAGVLSTPE"),
        ("Lys2_Val3insAlaGly-Glu8Asp", "MKAGVLSTPD"),
        ("Met1delinsGlySerMet", "GSMKVLSTPE"),
        ("K2_V3insALA", "MKALAVLSTPE"),
    ],
)
def test_ranges_and_insertions_are_read_in_letters_and_in_three_letters(text: str, string: str) -> None:
    assert is_mutation_name(text)
    assert mutant(PARENT, text) == string


@pytest.mark.parametrize("text", ["B01-02", "B01_02", "MK-V", "sample-3"])
def test_what_has_a_dash_is_not_a_name_by_that(text: str) -> None:
    assert not is_mutation_name(text)


@pytest.mark.parametrize("text", ["wt", "WT", " wild type ", "wild-type", "Parent"])
def test_the_parent_has_names(text: str) -> None:
    assert mutant(PARENT, text) == PARENT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A2R", "'A2R': position 2 of the parent is K, not A"),
        ("K2R/S121E", "'S121E' of 'K2R/S121E': there is no position 121; the parent has those from 1 to 8"),
        ("K0R", "there is no position 0"),
        ("K2B", "'K2B': unknown letter 'B'; a variant may have ACDEFGHIKLMNPQRSTVWY"),
        ("K2*", "unknown letter"),
        ("K2R/K2A", "position 2 is changed twice"),
        ("K2", "'K2' is no mutation: write S121E"),
        ("K2_L4insG", "an insertion is between neighbours, such as 2 and 3"),
        ("L4_K2del", "position 2 is before 4"),
        ("K2_L3insG", "position 3 of the parent is V, not L"),
        ("M1_E8del", "deletes the whole parent"),
        ("/", "names no mutation"),
    ],
)
def test_names_that_do_not_fit_are_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        mutant(PARENT, text, "ACDEFGHIKLMNPQRSTVWY")
    assert message in str(caught.value)


def test_names_among_strings_are_replaced_and_others_left() -> None:
    assert variants_of(PARENT, ["MKVLSTPD", "K2R", "wt"]) == ["MKVLSTPD", "MRVLSTPE", PARENT]
    with pytest.raises(InputError, match=r"^line 7: 'L2R': position 2 of the parent is K, not L"):
        variants_of(PARENT, ["MKVLSTPD", "L2R"], places=["line 6", "line 7"])


def test_strings_of_digits_are_no_names() -> None:
    assert variants_of("0101", ["0110", "wt"]) == ["0110", "0101"]


def test_an_empty_parent_is_refused() -> None:
    with pytest.raises(InputError, match="the parent is empty"):
        mutation_name("", "A")
