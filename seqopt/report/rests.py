"""What predictions rest on, drawn: atoms and symbols coloured by what each adds to a prediction, with a scale.

Orange is better and blue is worse, whichever direction that is, and white adds nothing. The two are told apart with any
colour vision, and text is dark on both. The ground is light, as that of all structures, also on a dark page.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqopt.data import shown_number
from seqopt.report.canvas import INK, SOFT, Canvas, PngCanvas, SvgCanvas
from seqopt.report.drawing import LARGEST_DRAWN, LONGEST_SHOWN
from seqopt.report.formats import shortened
from seqopt.strings.identity import parse_smiles, quiet_rdkit

if TYPE_CHECKING:
    from seqopt.models import Contributions

FloatArray = npt.NDArray[np.float64]

BETTER, WORSE, NEUTRAL = (245, 150, 50), (90, 170, 230), (255, 255, 255)
"""Ends and middle of the scale, in red, green and blue."""

WIDTH = 340
"""Of a picture."""

CELL, ROW, LABELLED = 9.4, 21.0, 32.0
"""Width of a letter, height of a line of symbols, and the room for positions before a line."""

PER_LINE, GROUP = 30, 10
"""Letters of a line, and symbols between two gaps."""

STEPS = 40
"""Fields of the scale."""


@dataclass(frozen=True)
class Scale:
    """The scale of colours, and the words for it.

    Attributes:
        most: The largest contribution, in either direction, that has a full colour.
        what: What is predicted.
        minimize: Whether less is better.
        log10: Whether contributions are to the logarithm of the values.
        unit: Of the values; empty for none.
    """

    most: float
    what: str
    minimize: bool = False
    log10: bool = False
    unit: str = ""

    @property
    def named(self) -> str:
        """What contributions are added to, with its unit."""
        name = f"log10 {self.what}" if self.log10 else self.what
        return shortened(f"{name} ({self.unit})" if self.unit else name, 40)

    def colour(self, value: float) -> str:
        """Of a contribution, as SVG writes it.

        Example:
            >>> scale = Scale(0.5, "pIC50")
            >>> scale.colour(0.5), scale.colour(0.0), scale.colour(-0.25)
            ('#f59632', '#ffffff', '#acd4f2')
        """
        share = min(abs(value) / self.most, 1.0) if self.most else 0.0
        end = BETTER if (value > 0) != self.minimize else WORSE
        return "#" + "".join(
            f"{math.floor(zero + share * (full - zero)):02x}" for zero, full in zip(NEUTRAL, end, strict=True)
        )

    def show(self, value: float, sign: str = "") -> str:
        """A number with as many decimals as show three digits of the largest contribution.

        Example:
            >>> Scale(0.4213, "pIC50").show(0.0512, "+"), Scale(130.0, "IC50").show(1426.7)
            ('+0.051', '1,427')
        """
        decimals = 2 - math.floor(math.log10(self.most)) if self.most else 2
        decimals = max(decimals, 0)
        if decimals > 6 or abs(value) >= 1e7:
            return f"{value:{sign}.3g}"
        return f"{round(value, decimals) + 0.0:{sign},.{decimals}f}"


@dataclass(frozen=True)
class Rests:
    """What one prediction rests on, by what is drawn.

    Attributes:
        found: The contributions.
        key: The string, as its model sees it.
        string: The string, as it is to be drawn.
        by_atom: What each atom of the key adds, for a molecule; else `None`.
    """

    found: Contributions
    key: str
    string: str
    by_atom: FloatArray | None = None

    @classmethod
    def of(cls, found: Contributions, key: str, string: str, kind: str) -> Rests:
        """Contributions to the prediction of a string of a kind, `seqopt.strings.identity.KINDS`.

        Raises:
            ModelError: If they are those of symbols that do not make up a SMILES.
        """
        is_molecule = kind == "molecule" or found.unit == "atom"
        return cls(found, key, string, found.by_atom(key) if is_molecule else None)

    @property
    def values(self) -> FloatArray:
        """What each atom or symbol that is drawn adds."""
        return self.found.values if self.by_atom is None else self.by_atom

    @property
    def elsewhere(self) -> float:
        """What of the prediction neither the prior mean nor the atoms or symbols account for."""
        return self.found.prediction - self.found.prior_mean - float(self.values.sum())

    def words(self, scale: Scale) -> str:
        """How the prediction comes about, in a sentence or two."""
        part = "symbols" if self.by_atom is None else "atoms"
        found = self.found
        predicted, prior = scale.show(found.prediction), scale.show(found.prior_mean)
        if scale.log10:
            predicted += f" ({shown_number(10**found.prediction)}{f' {scale.unit}' if scale.unit else ''})"
        if found.method == "leave-one-out":
            return (
                f"{predicted} is predicted now, {prior} of a string like none that was measured. Colours say by how "
                f"much the prediction would change without each of the {part}; these changes do not sum to it."
            )
        text = f"{prior} is predicted of a string like none that was measured; its {part} add "
        text += scale.show(float(self.values.sum()), "+")
        if abs(self.elsewhere) > 0.005 * max(scale.most, abs(found.prediction - found.prior_mean)):
            text += f", what belongs to none of them {scale.show(self.elsewhere, '+')}"
        return f"{text}: {predicted} is predicted now."

    def svg(self, scale: Scale, prefix: str) -> str | None:
        """The drawing as an element of a page; `None` where it cannot be drawn.

        Args:
            scale: Of the colours.
            prefix: Of ids; different for each drawing of a page.
        """
        canvas = SvgCanvas(prefix)
        height = self._draw(canvas, scale)
        return None if height is None else canvas.element(WIDTH, height, self._label(scale))

    def document(self, scale: Scale, title: str, *, png: bool = False, words: bool = True) -> bytes | None:
        """The drawing as a file: SVG, or PNG; `None` where it cannot be drawn.

        Args:
            scale: Of the colours.
            title: The first line.
            png: Which of the two.
            words: Whether title and words are part of the drawing.
        """
        lines = _wrapped(shortened(title, 200)) if words else []
        below = _wrapped(self.words(scale)) if words else []
        top = 8.0 + 14 * len(lines)
        plan = SvgCanvas("")
        height = self._draw(plan, scale, top)
        if height is None:
            return None
        total = height + 14 * len(below) + 8
        canvas: SvgCanvas | PngCanvas = PngCanvas(WIDTH, total) if png else SvgCanvas("")
        for number, line in enumerate(lines):
            canvas.text(10, 16 + 14 * number, line, colour=INK)
        self._draw(canvas, scale, top)
        for number, line in enumerate(below):
            canvas.text(10, height + 12 + 14 * number, line)
        if isinstance(canvas, PngCanvas):
            return canvas.document()
        return canvas.document(WIDTH, total, f"{title}: {self._label(scale)}").encode("utf-8", "backslashreplace")

    def _label(self, scale: Scale) -> str:
        part = "symbol" if self.by_atom is None else "atom"
        return f"What each {part} adds to the prediction of {scale.named}"

    def _draw(self, canvas: Canvas, scale: Scale, top: float = 0.0) -> float | None:
        """Draw it below a height; returns where it ends."""
        if not np.isfinite(self.values).all():
            return None
        if self.by_atom is None:
            end = _draw_symbols(canvas, self.found.parts, self.values, scale, top)
        else:
            found = _draw_atoms(canvas, self, scale, top)
            if found is None:
                return None
            end = found
        return _draw_scale(canvas, scale, end)


def scale_of(
    rests: Iterable[Rests], what: str, *, minimize: bool = False, log10: bool = False, unit: str | None = None
) -> Scale:
    """One scale for several drawings, so that their colours can be compared.

    Args:
        rests: What is drawn.
        what: Name of what is predicted.
        minimize: Whether less is better.
        log10: Whether contributions are to the logarithm of the values.
        unit: Of the values.
    """
    most = max((float(np.abs(one.values).max(initial=0.0)) for one in rests), default=0.0)
    return Scale(most if math.isfinite(most) else 0.0, what, minimize, log10, unit or "")


def _wrapped(text: str) -> list[str]:
    """Lines of a picture."""
    return textwrap.wrap(text, 52)


def _draw_atoms(canvas: Canvas, rests: Rests, scale: Scale, top: float) -> float | None:
    with quiet_rdkit():
        mol, values = as_drawn(rests.string, rests.key, rests.values)
        if mol is None or len(values) != mol.GetNumAtoms() or mol.GetNumHeavyAtoms() > LARGEST_DRAWN:
            return None
        size = mol.GetNumHeavyAtoms()
        height = 160 if size <= 12 else 225 if size <= 40 else 340
        try:
            positions, picture = canvas.drawn(mol, WIDTH, height)
        except (RuntimeError, ValueError):
            return None
    lengths = [
        float(np.linalg.norm(positions[bond.GetBeginAtomIdx()] - positions[bond.GetEndAtomIdx()]))
        for bond in mol.GetBonds()
    ]
    radius = 0.46 * (float(np.median(lengths)) if lengths else 24.0)
    for index in np.argsort(np.abs(values)):  # what matters most is on top
        symbol, value = mol.GetAtomWithIdx(int(index)).GetSymbol(), float(values[index])
        x, y = positions[index]
        note = f"{symbol}: {scale.show(value, '+')}"
        canvas.disc(x, y + top, radius, scale.colour(value), note, atom=int(index), adds=f"{value:.9g}")
    canvas.paste(picture, top)
    return top + height


def as_drawn(string: str, key: str, values: FloatArray) -> tuple[Any, FloatArray]:
    """A molecule as it is drawn, with values of the atoms of its key in the order of its own atoms.

    A drawing is laid out by the order of atoms, so that the molecule looks as where it is drawn from the string. Where
    the key is not just another writing of the string (a salt without its counter-ion, say), the key is drawn.

    Args:
        string: A SMILES as its owner wrote it.
        key: Its canonical SMILES, or that of its parent.
        values: One for each atom of the key.

    Returns:
        The molecule, `None` if RDKit reads neither, and the values.

    Example:
        >>> mol, values = as_drawn("OCC", "CCO", np.array([1.0, 2.0, 3.0]))
        >>> [(atom.GetSymbol(), float(value)) for atom, value in zip(mol.GetAtoms(), values)]
        [('O', 3.0), ('C', 2.0), ('C', 1.0)]
    """
    from rdkit import Chem

    mol = parse_smiles(string.strip())
    if mol is not None and len(values) == mol.GetNumAtoms() and Chem.MolToSmiles(mol) == key:
        order = list(mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
        placed = np.empty_like(values)
        placed[order] = values
        return mol, placed
    return parse_smiles(key), values


def _draw_symbols(canvas: Canvas, parts: Sequence[str], values: FloatArray, scale: Scale, top: float) -> float:
    """Symbols in lines, with the position of the first of each; those that are left out are said."""
    x, y, shown = LABELLED, top + 4.0, 0
    letters = all(len(part) == 1 for part in parts)
    for number, (part, value) in enumerate(zip(parts[:LONGEST_SHOWN], values.tolist(), strict=False), 1):
        text = shortened(part, 24)
        width = CELL if len(text) == 1 else 6.4 * len(text) + 5
        if number > 1 and (number % PER_LINE == 1 if letters else x + width > WIDTH - 4):
            x, y = LABELLED, y + ROW
        if x == LABELLED:
            canvas.text(LABELLED - 5, y + 12, str(number), size=8, anchor="end", colour=SOFT)
        note = f"{part} {number}: {scale.show(value, '+')}"
        canvas.box(x, y, width - 0.6, 16, scale.colour(value), note, symbol=number, adds=f"{value:.9g}")
        canvas.text(x + (width - 0.6) / 2, y + 12, text, size=11, anchor="middle", colour=INK)
        x += width + (4.0 if number % GROUP == 0 else 0.0)
        shown = number
    y += ROW
    if shown < len(parts):
        rest = scale.show(float(values[shown:].sum()), "+")
        canvas.text(LABELLED, y + 10, f"… and {len(parts) - shown:,} more, which add {rest}")
        y += 16
    return y


def _draw_scale(canvas: Canvas, scale: Scale, top: float) -> float:
    """The scale below a drawing; returns where it ends."""
    left, width = 40.0, WIDTH - 80.0
    step = width / STEPS
    for index in range(STEPS):
        share = (2 * index + 1) / STEPS - 1
        canvas.box(left + index * step, top + 6, step + 0.3, 8, scale.colour(share * scale.most))
    ends = ("better", "worse") if scale.minimize else ("worse", "better")
    full = scale.show(scale.most, "+")
    for x, number, word in ((left, f"-{full[1:]}", ends[0]), (WIDTH - left, full, ends[1])):
        canvas.text(x, top + 25, number, size=9, anchor="middle", colour=INK)
        canvas.text(x, top + 36, word, size=9, anchor="middle")
    canvas.text(WIDTH / 2, top + 25, "0", size=9, anchor="middle", colour=INK)
    canvas.text(WIDTH / 2, top + 36, f"adds to {shortened(scale.named, 32)}", size=9, anchor="middle")
    return top + 42
