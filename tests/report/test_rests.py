"""What predictions rest on, drawn: the numbers of a drawing are the model's, each on its own atom or symbol."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image
from rdkit import Chem

from seqopt.models import Contributions
from seqopt.report.canvas import INK
from seqopt.report.drawing import LARGEST_DRAWN, LONGEST_SHOWN
from seqopt.report.rests import Rests, Scale, as_drawn, scale_of

HOSTILE = "</svg><script>alert(1)</script>\"'&\x00"


def contributions(parts: list[str], values: list[float], unit: str = "symbol", method: str = "shares") -> Contributions:
    prior = 2.0
    return Contributions(unit, tuple(parts), np.array(values), method, prior, prior + sum(values))  # type: ignore[arg-type]


def of_molecule(smiles: str) -> Rests:
    """Contributions that name their atoms: an element's number, and the sum of those of its neighbours."""
    key = Chem.CanonSmiles(smiles)
    atoms = Chem.MolFromSmiles(key).GetAtoms()
    values = [known(atom) for atom in atoms]
    found = contributions([atom.GetSymbol() for atom in atoms], values, "atom")
    return Rests.of(found, key, smiles, "molecule")


def known(atom: Chem.Atom) -> float:
    around = sum(other.GetAtomicNum() * 0.01 for other in atom.GetNeighbors())
    return (atom.GetAtomicNum() - 6.5) / 10 + around + atom.GetTotalNumHs() * 0.003


def marks(svg: str, name: str) -> dict[int, float]:
    """By atom or symbol, the number that its mark carries."""
    found = re.findall(rf'data-{name}="(\d+)" data-adds="([^"]*)"', svg)
    assert len(dict(found)) == len(found)
    return {int(index): float(adds) for index, adds in found}


@pytest.mark.parametrize(
    "smiles", ["OCC", "c1[nH]cnc1CC(N)C(=O)O", "O=C(O)c1ccccc1OC(C)=O", "C[C@@H](N)C(=O)O", "N#CCl"]
)
def test_each_atom_of_a_drawing_has_its_own_number(smiles: str) -> None:
    rests = of_molecule(smiles)
    scale = scale_of([rests], "y")
    svg = rests.svg(scale, "a-")
    assert svg is not None
    # The drawing has the atoms in the order of the string as it was written.
    mol = Chem.MolFromSmiles(smiles)
    drawn = marks(svg, "atom")
    assert drawn == {atom.GetIdx(): pytest.approx(known(atom)) for atom in mol.GetAtoms()}
    assert rests.found.prior_mean + sum(drawn.values()) == pytest.approx(rests.found.prediction)
    # Where it lies, is the atom: bonds of the drawing join the same neighbours.
    discs = {
        int(index): (float(x), float(y), colour)
        for x, y, colour, index in re.findall(
            r'cx="([\d.]+)" cy="([\d.]+)" r="[\d.]+" fill="(#\w+)" data-atom="(\d+)"', svg
        )
    }
    assert {index: colour for index, (_, _, colour) in discs.items()} == {
        index: scale.colour(value) for index, value in drawn.items()
    }
    bonded = [
        np.hypot(*np.subtract(discs[b.GetBeginAtomIdx()][:2], discs[b.GetEndAtomIdx()][:2])) for b in mol.GetBonds()
    ]
    others = [
        np.hypot(*np.subtract(discs[i][:2], discs[j][:2]))
        for i in discs
        for j in discs
        if i < j and mol.GetBondBetweenAtoms(i, j) is None
    ]
    assert max(bonded) < min(others, default=np.inf)


def test_letters_of_a_drawing_lie_on_the_discs_of_their_atoms() -> None:
    # Of one molecule with one oxygen, the only letters belong to it.
    for smiles in ("OCCCC", "CCCCO", "C(CCC)O"):
        rests = of_molecule(smiles)
        svg = rests.svg(scale_of([rests], "y"), "a-")
        assert svg is not None
        oxygen = next(atom.GetIdx() for atom in Chem.MolFromSmiles(smiles).GetAtoms() if atom.GetSymbol() == "O")
        place = re.search(rf'cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"[^>]*data-atom="{oxygen}"', svg)
        assert place is not None
        x, y, radius = map(float, place.groups())
        # Bonds have commas in their coordinates, letters have none.
        glyphs = re.findall(r'd="M ([\d.]+) ([\d.]+)\s', svg)
        assert glyphs
        assert min(np.hypot(float(gx) - x, float(gy) - y) for gx, gy in glyphs) < radius + 2


def test_the_parent_of_a_salt_is_drawn_itself() -> None:
    mol, values = as_drawn("CC(=O)[O-].[Na+]", "CC(=O)O", np.array([1.0, 2.0, 3.0, 4.0]))
    assert Chem.MolToSmiles(mol) == "CC(=O)O"
    assert values.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_symbols_that_write_an_atom_are_drawn_on_it() -> None:
    key = "CC(=O)Cl"
    parts = list(key)
    values = [0.1 * number for number in range(1, len(parts) + 1)]
    rests = Rests.of(contributions(parts, values), key, "ClC(C)=O", "molecule")
    svg = rests.svg(scale_of([rests], "y"), "a-")
    assert svg is not None
    # In the order of the string: Cl (its two letters), C, C, O; brackets and bonds belong to none of them.
    assert marks(svg, "atom") == pytest.approx({0: 0.7 + 0.8, 1: 0.2, 2: 0.1, 3: 0.5})
    assert rests.elsewhere == pytest.approx(0.3 + 0.4 + 0.6)
    assert "what belongs to none of them +1.30" in rests.words(scale_of([rests], "y"))


def test_symbols_of_a_sequence_are_marked_in_lines_with_positions() -> None:
    sequence = "ACGT" * 20
    values = np.linspace(-1, 1, 80).tolist()
    rests = Rests.of(contributions(list(sequence), values), sequence, sequence, "dna")
    scale = scale_of([rests], "activity")
    svg = rests.svg(scale, "a-")
    assert svg is not None
    assert marks(svg, "symbol") == pytest.approx(dict(enumerate(values, 1)), rel=1e-8)
    words = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert [word for word in words if word.isdigit()] == ["1", "31", "61", "0"]
    assert "".join(word for word in words if word in {*"ACGT"}) == sequence
    assert {"-1.00", "+1.00", "worse", "better", "adds to activity"} <= set(words)
    boxes = re.findall(r'fill="(#\w+)" data-symbol="(\d+)"', svg)
    assert [colour for colour, _ in boxes] == [scale.colour(value) for value in values]


def test_what_a_drawing_leaves_out_is_said_with_its_sum() -> None:
    parts = ["A"] * (LONGEST_SHOWN + 50)
    rests = Rests.of(contributions(parts, [0.01] * len(parts)), "".join(parts), "".join(parts), "dna")
    svg = rests.svg(scale_of([rests], "y"), "a-")
    assert svg is not None
    assert len(marks(svg, "symbol")) == LONGEST_SHOWN
    assert "… and 50 more, which add +0.500" in svg


def test_the_better_end_is_the_same_colour_in_both_directions() -> None:
    up, down = Scale(1.0, "y"), Scale(1.0, "y", minimize=True)
    for value in (-1.0, -0.3, 0.0, 0.4, 1.0):
        assert up.colour(value) == down.colour(-value)
    assert up.colour(0.0) == "#ffffff" == Scale(0.0, "y").colour(0.0)
    assert up.colour(5.0) == up.colour(1.0)  # full is full
    rests = Rests.of(contributions(["A", "B"], [-1.0, 1.0]), "AB", "AB", "text")
    words = {minimize: rests.svg(scale_of([rests], "y", minimize=minimize), "a-") or "" for minimize in (False, True)}
    assert words[False].index(">worse<") < words[False].index(">better<")
    assert words[True].index(">better<") < words[True].index(">worse<")


def test_one_scale_holds_for_several_drawings() -> None:
    small, large = (Rests.of(contributions(["A"], [value]), "A", "A", "text") for value in (-0.2, 3.0))
    scale = scale_of([small, large], "y")
    assert scale.most == 3.0
    assert scale_of([], "y").most == 0.0
    assert scale.colour(small.values[0]) != scale_of([small], "y").colour(small.values[0])


def _linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def test_letters_can_be_read_on_every_colour() -> None:
    luminance = np.array([0.2126, 0.7152, 0.0722])
    for value in np.linspace(-1, 1, 21):
        ground, ink = (_linear(colour) @ luminance for colour in (Scale(1.0, "y").colour(value), INK))
        assert (ground + 0.05) / (ink + 0.05) > 6  # WCAG asks for 4.5


@pytest.mark.parametrize(
    "seen",
    [  # Machado, Oliveira and Fernandes (2009), severity 1: protanopia, deuteranopia, tritanopia
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ],
)
def test_better_and_worse_are_told_apart_with_any_colour_vision(seen: list[list[float]]) -> None:
    scale = Scale(1.0, "y")
    for size in (0.4, 1.0):
        better, worse = (np.array(seen) @ _linear(scale.colour(value)) for value in (size, -size))
        assert np.abs(better - worse).max() > 0.2


def test_words_say_how_the_prediction_comes_about() -> None:
    found = contributions(list("AB"), [0.5, -0.25])
    rests = Rests.of(found, "AB", "AB", "text")
    assert rests.words(scale_of([rests], "pIC50")) == (
        "2.000 is predicted of a string like none that was measured; its symbols add +0.250: 2.250 is predicted now."
    )
    log10 = scale_of([rests], "IC50", log10=True, unit="nM")
    assert log10.named == "log10 IC50 (nM)"
    assert "2.250 (178 nM) is predicted now" in rests.words(log10)
    shapley = Rests.of(contributions(list("AB"), [0.5, -0.25], method="shapley"), "AB", "AB", "text")
    assert shapley.words(log10) == rests.words(log10)
    left_out = Rests.of(contributions(list("AB"), [0.5, -0.25], method="leave-one-out"), "AB", "AB", "text")
    assert "these changes do not sum to it" in left_out.words(log10)


def test_what_a_user_wrote_stays_text() -> None:
    parts = [HOSTILE, "&", "<b>"]
    rests = Rests.of(contributions(parts, [0.1, 0.2, -0.3]), "".join(parts), "".join(parts), "text")
    scale = scale_of([rests], HOSTILE, unit=HOSTILE)
    svg = rests.svg(scale, "a-")
    document = rests.document(scale, HOSTILE)
    assert svg is not None
    assert document is not None
    for text in (svg, document.decode()):
        root = ElementTree.fromstring(text)
        assert {element.tag.rpartition("}")[2] for element in root.iter()} == {"svg", "rect", "text", "title"}
        assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
        assert "\x00" not in text


def test_files_need_nothing_else_and_have_a_ground_of_their_own() -> None:
    for rests in (of_molecule("OCC"), Rests.of(contributions(["A"], [0.1]), "A", "A", "text")):
        scale = scale_of([rests], "y")
        document = rests.document(scale, "B01-01  OCC")
        assert document is not None
        text = document.decode()
        ElementTree.fromstring(text)
        assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg" width="340"')
        assert '<rect width="100%" height="100%" fill="#ffffff"/>' in text
        assert "B01-01" in text
        assert not re.findall(r"(?:href|src|url|@import)", text)
        assert re.findall('https?://[^"]*', text) == ["http://www.w3.org/2000/svg"]


@pytest.mark.parametrize("value", [0.5, -0.5])
def test_a_png_has_the_same_colours(value: float) -> None:
    smiles = "CCO"
    for rests in (
        Rests.of(contributions(["C", "C", "O"], [0.0, 0.0, value], "atom"), smiles, smiles, "molecule"),
        Rests.of(contributions(["C", "C", "O"], [0.0, 0.0, value]), smiles, smiles, "text"),
    ):
        scale = scale_of([rests], "y")
        document = rests.document(scale, smiles, png=True)
        assert document is not None
        image = Image.open(io.BytesIO(document))
        counts = {colour: count for count, colour in image.convert("RGB").getcolors(1 << 20)}
        full = tuple(int(scale.colour(value)[i : i + 2], 16) for i in (1, 3, 5))
        other = tuple(int(scale.colour(-value)[i : i + 2], 16) for i in (1, 3, 5))
        # A disc or a box of it, besides what the scale has of either.
        assert counts[full] > 500
        assert counts[full] > 1.3 * counts.get(other, 0)


def test_what_cannot_be_drawn_is_left_out() -> None:
    large = of_molecule("C" * (LARGEST_DRAWN + 1))
    assert large.svg(scale_of([large], "y"), "a-") is None
    assert large.document(scale_of([large], "y"), "large") is None
    broken = Rests.of(contributions(["A"], [float("nan")]), "A", "A", "text")
    assert broken.svg(scale_of([broken], "y"), "a-") is None
