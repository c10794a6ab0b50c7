"""Templates mean what a regular expression of the same form means, and say where they cannot be read."""

import re
from itertools import product

import numpy as np
import pytest

from seqopt.errors import InputError
from seqopt.strings.positions import parsed_positions
from seqopt.strings.templates import EMPTY, Template

TEMPLATES = ["A?A?C{1-2}", "[AC]{0-3}[CD]{0,2}A", "(AC){1-3}C?[AC]{0-2}", "[^A]{2}x?D  # ends\n A", "(A[CD]){0-2}AC"]


def expression(template: str) -> re.Pattern[str]:
    text = re.sub(r"#.*|\s", "", template).replace("-", ",").replace("x", "[ACD]").replace("[^A]", "[CD]")
    return re.compile(text)


def numbered(template: Template, string: str, width: int) -> list[int]:
    return [template.symbols.index(letter) for letter in string] + [EMPTY] * (width - len(string))


@pytest.mark.parametrize("text", TEMPLATES)
def test_strings_fit_where_the_regular_expression_matches(text: str) -> None:
    template, pattern = Template(text, letters="ACD"), expression(text)
    strings = ["".join(letters) for length in range(8) for letters in product(template.symbols, repeat=length)]
    expected = [bool(pattern.fullmatch(string)) for string in strings]
    columns, fits = template.laid_out(np.array([numbered(template, string, 8) for string in strings]))
    assert fits.tolist() == expected
    assert [not template.refusal(string) for string in strings] == expected
    for string, row, fit in zip(strings, columns, fits, strict=True):
        letters = "".join(template.symbols[number] for number in row if number != EMPTY)
        assert letters == (string if fit else "")
        assert all(template.symbols[number] in template.choices[at] for at, number in enumerate(row) if number != EMPTY)


def test_a_layout_is_the_same_alone_and_among_others() -> None:
    template = Template("A{0-3}x{1-4}A?", letters="ACD")
    rows = np.array([numbered(template, string, 8) for string in ("AAAA", "AACAA", "D", "AAAAACDA")])
    together = template.laid_out(rows)[0]
    for row, found in zip(rows, together, strict=True):
        assert (template.laid_out(row[None, :])[0][0] == found).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MK[AV", "the bracket '[' at character 3 is not closed: add ']'"),
        ("MK[A[V]", "the bracket '[' at character 3 is not closed"),
        ("MKAV]", "']' at character 5 closes nothing"),
        ("M(KA", "the group '(' at character 2 is not closed"),
        ("M(K(A))", "'(' at character 4 stands within a group"),
        ("MK{3", "the brace '{' at character 3 is not closed"),
        ("MK{a}", "'{a}' at character 3 is no number of repetitions"),
        ("MK{3-}", "'{3-}' at character 3 is no number"),
        ("MK{5-2}", "the fewest repetitions come first"),
        ("MK{0}", "the most are at least 1"),
        ("?MK", "'?' at character 1 must follow"),
        ("MK[]", "the bracket at character 3 is empty"),
        ("MK()", "the group at character 3 is empty"),
        ("MK[AA]", "'A' at character 5 is in its bracket twice"),
        ("MKBZ", "'B' at character 3 is no amino acid"),
        ("MK1", "'1' at character 3 is no amino acid"),
        ("A?B", "'B' at character 3"),
        ("A?", "all of it is optional"),
        ("  # nothing", "the template is empty"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Template(text)
    assert message in str(caught.value)


def test_bases_have_their_iupac_letters() -> None:
    assert Template("ANRY", kind="dna").choices == ("A", "ACGT", "AG", "CT")
    assert Template("AN[RC]U", kind="rna").choices == ("A", "ACGU", "ACG", "U")
    with pytest.raises(InputError, match="'X' at character 2 is no base"):
        Template("AX", kind="dna")
    with pytest.raises(InputError, match="say which letters there are"):
        Template("ab", kind="text")


def test_why_a_string_does_not_fit_is_said_with_the_position() -> None:
    template = Template("MK[AV]x{1-2}W")
    assert template.refusal("MKTW") == "T at position 3 does not fit the template, which has A or V there"
    assert template.refusal("MKA").startswith("it ends after position 3, where the template goes on with one of")
    assert template.refusal("MKACCWW") == "it goes on with W at position 7, where the template ends"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "there is no position 0"),
        ("8-12", "there is no position 11; the sequence has those from 1 to 10 (in '8-12')"),
        ("99999999999-999999999999", "there is no position 99999999999"),
        ("3,3", "3 is given twice"),
        ("4,2-5", "4 is given twice (in '2-5')"),
        ("5-3", "the range 5-3 ends before it begins"),
        ("x", "'x' is no position or range"),
        ("1,,2", "'' is no position"),
        ("", "'' is no position"),
        ("3-", "'3-' is no position"),
    ],
)
def test_positions_that_cannot_be_used_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parsed_positions(text, 10)
    assert message in str(caught.value)
