"""Strings of a template are encoded without its framework, distinct ones differently, loops aligned at both ends."""

from __future__ import annotations

import json

import numpy as np
import pytest

from seqopt.encoding import Encoder, TemplatePositions
from seqopt.errors import InputError
from seqopt.kernels import SubsequenceKernel
from seqopt.models.registry import default_surrogate, variants_encoder
from seqopt.spaces import ParentSpace, TemplateSpace
from seqopt.strings.templates import Template
from seqopt.utils.config import from_config

TEMPLATES = ["MK[AV]LSTPEx{1-4}W?KK", "MKVL(AC){1-3}C?SSTTPPEE", "DEF[ACD]{2-3}GHI[AC]{1-2}KLM"]


def spelt(encoder: TemplatePositions, string: str) -> list[str]:
    tokens = encoder.encode([string]).tokens[0]
    names = list(encoder.alphabet)
    return [names[number - 1] for number in tokens if number]


@pytest.mark.parametrize("template", TEMPLATES)
def test_different_strings_are_encoded_differently_and_each_alone_as_among_others(template: str) -> None:
    space = TemplateSpace(template, letters="ACD")
    encoder = TemplatePositions(space.encoder, template, letters="ACD")
    strings = [*space.enumerate()]
    encoded = encoder.encode(strings)
    rows = [tuple(row[row > 0].tolist()) for row in encoded.tokens]
    assert len(set(rows)) == len(strings)
    assert encoded.lengths.min() == encoder.fewest >= 1
    assert encoded.width <= len(encoder.positions) < space.template.width
    for string, row in zip(strings[::7], rows[::7], strict=True):
        assert tuple(encoder.encode([string]).tokens[0].tolist()) == row
        kept = encoder.kept(string)
        assert [string[index] for index in kept] == [text[0] for text in spelt(encoder, string)]


def test_loops_are_aligned_at_both_ends() -> None:
    encoder = TemplatePositions(Encoder(), "MKVLSTPEx{2-6}KKVTP")
    found = {loop: spelt(encoder, f"MKVLSTPE{loop}KKVTP") for loop in ("AG", "ACG", "ACDEFG")}
    assert found["AG"] == ["A 9", "G 14"]
    assert found["ACG"] == ["A 9", "C 10", "G 14"]
    assert [text.split()[1] for text in found["ACDEFG"]] == ["9", "10", "11", "12", "13", "14"]


def test_strings_outside_keep_all_their_symbols() -> None:
    encoder = TemplatePositions(Encoder(), "MK[AV]x{1-2}W")
    assert spelt(encoder, "MKT") == ["M", "K", "T"]
    assert spelt(encoder, "MKABW") == ["M", "K", "A", "B", "W"]  # B is no letter of the template


def test_written_down_and_made_again() -> None:
    encoder = TemplatePositions(Encoder(), "MK[AV]x{1-2}W", letters="AC")
    again = from_config(json.loads(json.dumps(encoder.config())))
    assert again.name == encoder.name != TemplatePositions(Encoder(), "MK[AV]x{1-2}W").name
    assert again.encode(["MKAAW"]).tokens.tolist() == encoder.encode(["MKAAW"]).tokens.tolist()
    with pytest.raises(InputError, match="stands for one string"):
        TemplatePositions(Encoder(), "MKV")


def test_models_of_templates_see_what_varies() -> None:
    space = TemplateSpace("MKVLSTPEMKVLSTPE[AV]x{1-4}KKVTPAAGLL")
    encoder = variants_encoder(space)
    assert isinstance(encoder, TemplatePositions)
    assert default_surrogate(space).encoder is not None  # type: ignore[attr-defined]
    kernel = SubsequenceKernel(order=3)
    gram = kernel.cross(encoder.encode(space.sample(30, np.random.default_rng(0))))
    assert np.linalg.eigvalsh(gram).min() > -1e-9
    # Where nothing may be left of a string, or too little is the same, strings are seen as they are.
    assert variants_encoder(TemplateSpace("MKVLSTPEMKVx{0-3}LSTPE")) is None
    assert variants_encoder(TemplateSpace("Mx{2-5}W")) is None


def test_models_of_variants_of_a_parent_see_the_positions_that_may_change() -> None:
    encoder = variants_encoder(ParentSpace("MKVLSTPE", 2, positions="2,7"))
    assert encoder is not None
    assert encoder.positions == [1, 6]
    fixed = variants_encoder(TemplateSpace("MK[AV]LSTP[EDK]"))
    assert fixed is not None
    assert fixed.positions == [2, 7]
    assert Template("MK[AV]LSTP[EDK]").one_length
