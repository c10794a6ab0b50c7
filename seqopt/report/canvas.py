"""Pictures that are drawn once and written as SVG or as PNG: boxes, discs, text and molecules."""

from __future__ import annotations

import io
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from seqopt.report.drawing import inline_svg, set_style
from seqopt.report.formats import printable

if TYPE_CHECKING:
    from PIL import Image, ImageFont

FloatArray = npt.NDArray[np.float64]

Anchor: TypeAlias = Literal["start", "middle", "end"]

INK, SOFT = "#1b1f24", "#59626d"
"""Colours of text; the ground is light, also on a dark page."""

ENLARGED = 3
"""Pixels of a PNG to a unit of the picture."""

MARGIN = 0.09
"""Share of a molecule's box that is left free, so that discs about its atoms are whole."""


class Canvas(Protocol):
    """What pictures are drawn on; y points downwards."""

    def box(self, x: float, y: float, width: float, height: float, colour: str, note: str = "", **data: object) -> None:
        """A rectangle with its upper left corner, what pointing at it says, and data for a program."""

    def disc(self, x: float, y: float, radius: float, colour: str, note: str = "", **data: object) -> None:
        """A disc with its centre."""

    def text(
        self, x: float, y: float, text: str, *, size: float = 10, anchor: Anchor = "start", colour: str = SOFT
    ) -> None:
        """Text on its base line."""

    def drawn(self, mol: Any, width: int, height: int) -> tuple[FloatArray, Any]:
        """A molecule: where its atoms are, ``atoms x 2``, and what `paste` takes."""

    def paste(self, molecule: Any, top: float) -> None:
        """Put a molecule over what is there, at the left, below a height."""


class SvgCanvas:
    """Writes SVG.

    Args:
        prefix: Of ids; different for each picture of a page.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, colour: str, note: str = "", **data: object) -> None:
        shape = f'rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self._shape(shape, "rect", colour, note, data)

    def disc(self, x: float, y: float, radius: float, colour: str, note: str = "", **data: object) -> None:
        self._shape(f'circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"', "circle", colour, note, data)

    def _shape(self, shape: str, tag: str, colour: str, note: str, data: dict[str, object]) -> None:
        kept = "".join(f' data-{name}="{escape(printable(str(value)))}"' for name, value in data.items())
        inside = f"<title>{escape(printable(note))}</title>" if note else ""
        self._parts.append(f'<{shape} fill="{colour}"{kept}>{inside}</{tag}>')

    def text(
        self, x: float, y: float, text: str, *, size: float = 10, anchor: Anchor = "start", colour: str = SOFT
    ) -> None:
        style = f'font-size="{size:g}" text-anchor="{anchor}" fill="{colour}" font-family="monospace"'
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(printable(text))}</text>')

    def drawn(self, mol: Any, width: int, height: int) -> tuple[FloatArray, Any]:
        from rdkit.Chem.Draw import rdMolDraw2D

        drawer = rdMolDraw2D.MolDraw2DSVG(width, height)
        set_style(drawer.drawOptions(), margin=MARGIN, black=True)
        rdMolDraw2D.PrepareAndDrawMolecule(drawer, mol)
        drawer.FinishDrawing()
        return _positions(drawer, mol), inline_svg(drawer.GetDrawingText(), self._prefix, label="")

    def paste(self, molecule: Any, top: float) -> None:
        inside = molecule[molecule.index(">") + 1 : molecule.rindex("<")]
        self._parts.append(f'<g transform="translate(0 {top:.1f})">{inside}</g>')

    def element(self, width: float, height: float, label: str) -> str:
        """For a page: the ground shows through."""
        return self._svg(f'viewBox="0 0 {width:.0f} {height:.0f}"', label)

    def document(self, width: float, height: float, label: str) -> str:
        """A file of its own, on a white ground."""
        size = f'xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        return self._svg(
            f'{size} viewBox="0 0 {width:.0f} {height:.0f}"', label, '<rect width="100%" height="100%" fill="#ffffff"/>'
        )

    def _svg(self, attributes: str, label: str, ground: str = "") -> str:
        named = f'role="img" aria-label="{escape(printable(label))}"'
        return f"<svg {attributes} {named}>{ground}{''.join(self._parts)}</svg>"


class PngCanvas:
    """Writes PNG, on a white ground.

    Args:
        width: Of the picture, in units of `ENLARGED` pixels.
        height: Of the picture.
    """

    def __init__(self, width: float, height: float) -> None:
        from PIL import Image, ImageDraw

        self._image = Image.new("RGBA", (round(width * ENLARGED), round(height * ENLARGED)), "#ffffff")
        self._draw = ImageDraw.Draw(self._image)

    def box(self, x: float, y: float, width: float, height: float, colour: str, note: str = "", **data: object) -> None:
        self._draw.rectangle([round(end * ENLARGED) for end in (x, y, x + width, y + height)], fill=colour)

    def disc(self, x: float, y: float, radius: float, colour: str, note: str = "", **data: object) -> None:
        ends = (x - radius, y - radius, x + radius, y + radius)
        self._draw.ellipse([round(end * ENLARGED) for end in ends], fill=colour)

    def text(
        self, x: float, y: float, text: str, *, size: float = 10, anchor: Anchor = "start", colour: str = SOFT
    ) -> None:
        where = {"start": "ls", "middle": "ms", "end": "rs"}[anchor]
        place = (x * ENLARGED, y * ENLARGED)
        self._draw.text(place, printable(text), fill=colour, font=_font(size * ENLARGED), anchor=where)

    def drawn(self, mol: Any, width: int, height: int) -> tuple[FloatArray, Any]:
        from PIL import Image
        from rdkit.Chem.Draw import rdMolDraw2D

        drawer = rdMolDraw2D.MolDraw2DCairo(width * ENLARGED, height * ENLARGED)
        set_style(drawer.drawOptions(), margin=MARGIN, enlarged=ENLARGED, black=True)
        rdMolDraw2D.PrepareAndDrawMolecule(drawer, mol)
        drawer.FinishDrawing()
        return _positions(drawer, mol) / ENLARGED, Image.open(io.BytesIO(drawer.GetDrawingText())).convert("RGBA")

    def paste(self, molecule: Image.Image, top: float) -> None:
        self._image.alpha_composite(molecule, (0, round(top * ENLARGED)))

    def document(self) -> bytes:
        """The file."""
        stream = io.BytesIO()
        self._image.convert("RGB").save(stream, format="png")
        return stream.getvalue()


def _positions(drawer: Any, mol: Any) -> FloatArray:
    found = [drawer.GetDrawCoords(index) for index in range(mol.GetNumAtoms())]
    return np.array([(point.x, point.y) for point in found])


@lru_cache(maxsize=8)
def _font(size: float) -> ImageFont.FreeTypeFont:
    from matplotlib import get_data_path
    from PIL import ImageFont

    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSansMono.ttf", size)
