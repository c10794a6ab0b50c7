"""Tokenisers, alphabets and encoded strings."""

import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.encoding import (
    Alphabet,
    CharacterTokenizer,
    EncodedStrings,
    Encoder,
    SmilesTokenizer,
    resolve_tokenizer,
)
from seqopt.encoding.derived import once_per_strings
from seqopt.errors import InputError


@pytest.mark.parametrize(
    ("smiles", "symbols"),
    [
        ("CCl", ["C", "Cl"]),
        ("BrCBr", ["Br", "C", "Br"]),
        ("c1c[nH]cc1", ["c", "1", "c", "[nH]", "c", "c", "1"]),
        ("C%12CC%12", ["C", "%12", "C", "C", "%12"]),
        ("C[C@@H](N)O", ["C", "[C@@H]", "(", "N", ")", "O"]),
        ("[13CH4+:1]", ["[13CH4+:1]"]),
        ("F/C=C\\F", ["F", "/", "C", "=", "C", "\\", "F"]),
        ("ClC(Cl)=CCBr", ["Cl", "C", "(", "Cl", ")", "=", "C", "C", "Br"]),
        ("[Na+].[Cl-]", ["[Na+]", ".", "[Cl-]"]),
        ("[unclosed", list("[unclosed")),
    ],
)
def test_smiles_symbols(smiles: str, symbols: list[str]) -> None:
    assert SmilesTokenizer().tokenize(smiles) == symbols


def test_split_brackets() -> None:
    assert SmilesTokenizer(whole_brackets=False).tokenize("[C@@H]Cl%10@") == [
        "[",
        "C",
        "@@",
        "H",
        "]",
        "Cl",
        "%10",
        "@",
    ]


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="CNOclBr[]@%123()=#/\\\n é", max_size=30))
def test_nothing_is_lost_by_tokenising(string: str) -> None:
    for tokenizer in (CharacterTokenizer(), SmilesTokenizer(), SmilesTokenizer(whole_brackets=False)):
        assert "".join(tokenizer.tokenize(string)) == string
        assert tokenizer.tokenize_all([string, string]) == [tokenizer.tokenize(string)] * 2


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(alphabet="ABClr[]é", max_size=12), max_size=8), st.sampled_from(["characters", "smiles"]))
def test_rows_are_the_symbols_then_padding(strings: list[str], name: str) -> None:
    encoder = Encoder(name)
    encoded = encoder.encode(strings)
    symbols = dict(zip(encoder.alphabet.numbers.values(), encoder.alphabet, strict=True))
    for row, length, string in zip(encoded.tokens, encoded.lengths, strings, strict=True):
        assert [symbols[number] for number in row[:length]] == encoder.tokenizer.tokenize(string)
        assert not row[length:].any()


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.text(st.characters(exclude_categories=()), max_size=6), max_size=8),
    st.lists(st.text("bac"), max_size=3),
)
def test_characters_are_numbered_as_they_appear(strings: list[str], before: list[str]) -> None:
    encoder = Encoder()
    encoder.encode(before)
    encoder.encode(strings)
    assert list(encoder.alphabet) == list(dict.fromkeys("".join([*before, *strings])))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=6), max_size=8))
def test_characters_that_are_known_have_the_same_numbers_as_when_they_were_new(strings: list[str]) -> None:
    encoder = Encoder()
    first = encoder.encode(strings)
    number = {symbol: place for place, symbol in enumerate(encoder.alphabet, start=1)}
    for encoded in (first, encoder.encode(strings)):
        rows = [row[:length].tolist() for row, length in zip(encoded.tokens, encoded.lengths, strict=True)]
        assert rows == [[number[symbol] for symbol in string] for string in strings]


def test_characters_beyond_sixteen_bits_and_halves_of_pairs() -> None:
    encoder = Encoder()
    strings = ["\U0001f9eaA\ud800", "A\U0010ffff\0"]
    assert encoder.encode(strings).tokens.tolist() == [[1, 2, 3], [2, 4, 5]]
    with pytest.raises(InputError, match="symbol 'Z' is not in the alphabet of 2 symbols: A C"):
        Encoder(alphabet=Alphabet("AC")).encode(["CA", "AZB"])


def test_numbers_stay_when_symbols_join() -> None:
    encoder = Encoder()
    first = encoder.encode(["AB"]).tokens.tolist()
    encoder.encode(["CBA"])
    assert encoder.encode(["AB"]).tokens.tolist() == first


def test_wide_alphabets_are_stored_in_sixteen_bits() -> None:
    symbols = [chr(0x4E00 + i) for i in range(300)]
    encoded = Encoder().encode(["".join(symbols)])
    assert encoded.tokens.dtype == np.uint16
    assert encoded.tokens[0].tolist() == list(range(1, 301))


def test_tensor_round_trip_and_padding() -> None:
    encoded = Encoder().encode(["ACGT", "", "GG"], width=6)
    tensor = encoded.to_tensor(9)
    assert tensor.shape == (3, 9)
    assert tensor.dtype == torch.float64
    back = EncodedStrings.from_tensor(tensor)
    assert back.lengths.tolist() == [4, 0, 2]
    assert back.padded(6).tokens.tolist() == encoded.tokens.tolist()


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (torch.tensor([[1.0, 0.0, 2.0]]), "inside the string"),
        (torch.tensor([[1.5, 0.0]]), "integers"),
        (torch.tensor([[-1.0, 0.0]]), "between 0"),
        (torch.tensor([1.0]), "rows of a matrix"),
        (torch.tensor([[float("nan")]]), "between 0"),
    ],
)
def test_tensors_that_are_no_strings(tensor: torch.Tensor, said: str) -> None:
    with pytest.raises(InputError, match=said):
        EncodedStrings.from_tensor(tensor)


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="'U' is not in the alphabet of 4 symbols: A C G T"):
        Encoder(alphabet=Alphabet("ACGT")).encode(["ACU"])
    with pytest.raises(InputError, match="item 1 is 7 of type int"):
        Encoder().encode(["A", 7])  # type: ignore[list-item]
    with pytest.raises(InputError, match="single string"):
        Encoder().encode("ACGT")
    with pytest.raises(InputError, match="'ACGT' has 4 symbols; at most 3"):
        Encoder().encode(["A", "ACGT"], width=3)
    with pytest.raises(InputError, match="unknown tokenizer 'words'"):
        resolve_tokenizer("words")
    with pytest.raises(InputError, match="empty symbol"):
        Alphabet([""])
    with pytest.raises(InputError, match="does not fit into 1 columns"):
        Encoder().encode(["AB"]).padded(1)


class TestSplit:
    @pytest.mark.parametrize("parts", [1, 2, 3, 7])
    def test_pieces_join_to_the_strings_and_differ_by_one_symbol_at_most(self, parts):
        strings = ["abcdefg", "gattaca", "abcdefghijklmnopqrstuvwxyz", "abcdefgh"]
        encoder = Encoder()
        encoded = encoder.encode(strings, width=30)
        pieces = encoded.split(parts)
        assert len(pieces) == parts
        names = {number: symbol for symbol, number in encoder.alphabet.numbers.items()}
        for row, string in enumerate(strings):
            spelt = ["".join(names[n] for n in piece.tokens[row, : piece.lengths[row]]) for piece in pieces]
            assert "".join(spelt) == string
            assert max(map(len, spelt)) - min(map(len, spelt)) <= 1
        for piece in pieces:
            assert np.array_equal((piece.tokens > 0).sum(1), piece.lengths)

    def test_too_many_pieces_are_refused(self):
        encoded = Encoder().encode(["abcd", "ab"])
        with pytest.raises(InputError, match="partitions is 3, but string 1 has 2 symbols: at most 2"):
            encoded.split(3)
        for wrong in (0, 1.5, True):
            with pytest.raises(InputError, match=f"partitions is {wrong}"):
                encoded.split(wrong)

    def test_no_strings_have_no_pieces(self):
        assert [len(piece) for piece in Encoder().encode([]).split(2)] == [0, 0]


def test_what_is_derived_from_strings_is_computed_once_and_forgotten_with_them():
    calls = []

    @once_per_strings
    def longest(strings, extra=0):
        calls.append(extra)
        return [int(strings.lengths.max()) + extra]

    strings, equal = Encoder().encode(["abc"]), Encoder().encode(["abc"])
    assert longest(strings) == longest(strings) == longest(equal) == [3]
    assert longest(strings, 2) == [5]
    assert calls == [0, 0, 2]
    alive = weakref.ref(strings)
    del strings
    assert alive() is None
