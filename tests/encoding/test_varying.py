"""Variants without what they share: what is left out, what is not, and that kernels see the same where they should."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.encoding import Encoder, VaryingPositions, varying_positions
from seqopt.errors import InputError
from seqopt.kernels import HammingKernel, SubsequenceKernel
from seqopt.models import FullyBayesianGP, contributions_of, default_surrogate
from seqopt.models.registry import variants_encoder
from seqopt.optimizer import Optimizer
from seqopt.spaces import CandidateSet, CodonSpace, LocalSpace, StringSpace
from seqopt.utils.config import from_config

BACKGROUND = "MKTAYIAKQR"


def variant(letters: str, positions: tuple[int, ...] = (2, 7)) -> str:
    symbols = list(BACKGROUND)
    for position, letter in zip(positions, letters, strict=True):
        symbols[position] = letter
    return "".join(symbols)


VARIANTS = [variant(a + b) for a in "ACDE" for b in "KLMN"]


@settings(deadline=None, max_examples=50)
@given(
    words=st.lists(st.text(alphabet="abc", min_size=0, max_size=6), min_size=1, max_size=6),
    background=st.text(alphabet="abc", min_size=1, max_size=6),
    data=st.data(),
    positioned=st.booleans(),
)
def test_what_is_kept_is_what_varies_or_is_unlike_the_background(
    words: list[str], background: str, data: st.DataObject, positioned: bool
) -> None:
    some = st.lists(st.integers(0, len(background) - 1), min_size=1, unique=True)
    positions = data.draw(some)
    encoder = VaryingPositions(Encoder(), background, positions, positioned=positioned)
    encoded = encoder.encode(words)
    names = list(encoder.alphabet)
    for word, row, length in zip(words, encoded.tokens, encoded.lengths, strict=True):
        alike = len(word) == len(background)
        expected = [
            f"{letter} {index + 1}" if positioned and alike else letter
            for index, letter in enumerate(word)
            if not alike or index in positions or letter != background[index]
        ]
        assert [names[number - 1] for number in row[:length]] == expected
        assert not row[length:].any()
        assert len(encoder.kept(word)) == length
    if positioned:
        rows = {tuple(row) for row in encoded.tokens.tolist()}
        assert len(rows) == len(set(words))  # no two strings are taken for one


def test_distances_between_variants_stay_as_they_were() -> None:
    whole, short = Encoder(), VaryingPositions(Encoder(), BACKGROUND, [2, 7])
    kernel = HammingKernel(lengthscale=1.5)
    np.testing.assert_array_equal(kernel.cross(short.encode(VARIANTS)), kernel.cross(whole.encode(VARIANTS)))


def test_symbols_match_at_their_own_positions_only() -> None:
    swapped = [variant("AK"), variant("KA"), variant("AL")]
    kernel = SubsequenceKernel(order=2, match_decay=1.0, gap_decay=1.0)
    gram = kernel.cross(VaryingPositions(Encoder(), BACKGROUND, [2, 7]).encode(swapped))
    np.testing.assert_allclose(gram[0], [1.0, 0.0, 1 / 3], atol=1e-12)  # of A, K and A-K, the third shares A
    plain = kernel.cross(VaryingPositions(Encoder(), BACKGROUND, [2, 7], positioned=False).encode(swapped))
    np.testing.assert_allclose(plain[0, 1], 2 / 3)


def test_encoders_are_written_down_and_named_by_what_they_leave_out() -> None:
    encoder = VaryingPositions(Encoder(), BACKGROUND, [7, 2])
    again = from_config(json.loads(json.dumps(encoder.config())))
    np.testing.assert_array_equal(again.encode(VARIANTS).tokens, encoder.encode(VARIANTS).tokens)
    others = [
        VaryingPositions(Encoder(), BACKGROUND, [2]),
        VaryingPositions(Encoder(), variant("CC", (0, 1)), [2, 7]),
        VaryingPositions(Encoder(), BACKGROUND, [2, 7], positioned=False),
        Encoder(),
    ]
    assert again.name == encoder.name
    assert len({encoder.name, *(other.name for other in others)}) == 5  # stored covariances go by it


@pytest.mark.parametrize("positions", [[], [1, 1], [-1], [10]])
def test_bad_positions(positions: list[int]) -> None:
    with pytest.raises(InputError, match="positions are"):
        VaryingPositions(Encoder(), BACKGROUND, positions)


def test_spaces_whose_strings_vary_at_few_positions() -> None:
    library = variants_encoder(CandidateSet(VARIANTS, kind="protein"))
    assert library is not None
    assert library.positions == [2, 7]
    choices = [*BACKGROUND]
    choices[2], choices[7] = "ACDE", "KLMN"
    local = variants_encoder(LocalSpace(choices, kind="protein"))
    assert local is not None
    assert local.positions == [2, 7]
    for space in (
        CandidateSet(["AC", "AD", "CD"], kind="protein"),  # too few positions are the same
        CandidateSet([*VARIANTS, BACKGROUND[:-1]], kind="protein"),
        CandidateSet(VARIANTS[:1], kind="protein"),
        CandidateSet(["CCCO", "CCCN"], kind="molecule"),
        StringSpace("AC", 8),
        CodonSpace("MAGIC"),
        LocalSpace(["AC", "DE", "F"]),
    ):
        assert variants_encoder(space) is None
    assert varying_positions(Encoder().encode([])) is None


def test_default_surrogates_of_variants_see_what_varies() -> None:
    pool = CandidateSet(VARIANTS, kind="protein")
    surrogate = default_surrogate(pool)
    assert isinstance(surrogate, FullyBayesianGP)
    assert isinstance(surrogate.encoder, VaryingPositions)
    space = LocalSpace([letter if index not in (2, 7) else "ACDE" for index, letter in enumerate(BACKGROUND)])
    averaged = default_surrogate(space)
    assert isinstance(averaged, FullyBayesianGP)
    again = from_config(json.loads(json.dumps(averaged.config())))
    assert again.encoder.name == averaged.encoder.name == variants_encoder(space).name  # type: ignore[union-attr]
    assert isinstance(default_surrogate(CandidateSet(["AC", "AD", "CD"], kind="protein")).encoder, Encoder)  # type: ignore[attr-defined]


def test_searches_learn_from_strings_that_were_not_foreseen() -> None:
    optimizer = Optimizer(CandidateSet(VARIANTS, kind="protein"), initial=6, batch_size=2, seed=1)
    for _ in range(3):
        asked = optimizer.ask()
        optimizer.tell(asked, [float(ord(string[2]) + ord(string[7])) for string in asked])
    elsewhere = variant("W", (4,))
    optimizer.tell([elsewhere, BACKGROUND + "RR"], [500.0, 10.0])
    mean, std = optimizer.predict([elsewhere, BACKGROUND, BACKGROUND[:3]])
    assert mean[0] > mean[1]
    assert std[2] > std[1]


def test_symbols_that_are_left_out_contribute_nothing() -> None:
    pool = CandidateSet(VARIANTS, kind="protein")
    surrogate = default_surrogate(pool)
    surrogate.bind(pool)  # type: ignore[attr-defined]
    values = [float(ord(string[7]) + ord(string[2])) for string in VARIANTS[:12]]
    surrogate.fit(VARIANTS[:12], values, rng=np.random.default_rng(0))
    found = contributions_of(surrogate, VARIANTS[5])
    assert len(found.values) == len(BACKGROUND)
    assert set(np.flatnonzero(np.abs(found.values) > 1e-6)) == {2, 7}
    assert not found.values[[0, 1, 3, 4, 5, 6, 8, 9]].any()
    assert found.prior_mean + found.values.sum() == pytest.approx(found.prediction)
