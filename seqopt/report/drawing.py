"""Drawings for a page: structures, sequences, small curves, and SVG that can stand inside HTML."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from seqopt.objectives import logp, molecular_weight
from seqopt.report.structures import can_be_folded, fold, folded_coordinates
from seqopt.strings.genetic_codes import genetic_code
from seqopt.strings.identity import parse_smiles, quiet_rdkit

LARGEST_DRAWN = 150
"""Heavy atoms beyond which a drawing shows nothing, and takes long."""

LETTERED = 150
"""Bases up to which a folded RNA has letters."""

LONGEST_SHOWN = 600
"""Symbols of a sequence that are shown."""

GROUP = 10

# RDKit's yellow sulphur and cyan fluorine are hard to read on white.
_PALETTE = {9: (0.0, 0.45, 0.35), 16: (0.6, 0.45, 0.0), 17: (0.0, 0.5, 0.0), 35: (0.55, 0.2, 0.05), 53: (0.4, 0.0, 0.6)}

ROWS = "rows-"
"""What begins the id of a group of points; the numbers of their evaluations follow."""

_XLINK = "{http://www.w3.org/1999/xlink}href"
_DROPPED = {"metadata", "style", "title", "desc", "script", "foreignObject"}
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_FONT = re.compile(r"font: (?:(?P<weight>bold|\d+) )?(?P<size>[\d.]+px)[^;]*")


def inline_svg(document: str, prefix: str, *, label: str, colours: Mapping[str, str] | None = None) -> str:
    """An SVG document as an element that can stand in an HTML page next to others.

    Namespaces, metadata, style sheets (which would apply to the whole page) and everything that could run or load
    something are dropped; ids get a prefix, so that two drawings do not share them; fonts are those of the page. An id
    that begins with `ROWS` becomes the attribute ``data-rows``.

    Args:
        document: The SVG document.
        prefix: Of ids; different for each drawing of a page.
        label: What a screen reader says instead.
        colours: Replacements of colours in attributes, such as ``{"#000000": "currentColor"}``.

    Example:
        >>> document = '<svg xmlns="http://www.w3.org/2000/svg"><g id="a"/><use href="#a"/></svg>'
        >>> inline_svg(document, "p-", label="Two groups")
        '<svg role="img" aria-label="Two groups"><g id="p-a" /><use href="#p-a" /></svg>'
    """
    root = ElementTree.fromstring(document.encode("utf-8"))
    for parent in root.iter():
        for child in [child for child in parent if _local(child.tag) in _DROPPED]:
            parent.remove(child)
    used = {match for element in root.iter() for value in element.attrib.values() for match in _references(value)}
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = dict(
            _clean(name, value, prefix, colours or {})
            for name, value in element.attrib.items()
            if _keeps(name, value) and (name != "id" or value in used or value.startswith(ROWS))
        )
        element.text, element.tail = _stripped(element.text), _stripped(element.tail)
        if element.get("id", "").startswith(prefix + ROWS):
            element.attrib["data-rows"] = element.attrib.pop("id").removeprefix(prefix + ROWS)
    size: dict[str, str] = {name: root.attrib[name] for name in ("viewBox", "fill", "stroke") if name in root.attrib}
    root.attrib = {"role": "img", "aria-label": label, **size}
    return ElementTree.tostring(root, encoding="unicode")


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _stripped(text: str | None) -> str | None:
    return text if text and text.strip() else None


def _references(value: str) -> list[str]:
    return [value[1:]] if value.startswith("#") else _REFERENCE.findall(value)


def _keeps(name: str, value: str) -> bool:
    if name == _XLINK or name == "href":
        return value.startswith(("#", "data:image/png;base64,"))
    local = _local(name)
    return not (name.startswith("{") or local.startswith("on") or local == "class")


def _clean(name: str, value: str, prefix: str, colours: Mapping[str, str]) -> tuple[str, str]:
    if name in (_XLINK, "href"):
        return "href", f"#{prefix}{value[1:]}" if value.startswith("#") else value
    if name == "id":
        return name, prefix + value
    value = _REFERENCE.sub(lambda match: f"url(#{prefix}{match[1]})", value)
    if name in ("style", "fill", "stroke"):
        for colour, replacement in colours.items():
            value = value.replace(colour, replacement)
        value = _FONT.sub(_page_font, value)
    return name, value


def _page_font(match: re.Match[str]) -> str:
    weight = f"; font-weight: {match['weight']}" if match["weight"] else ""
    return f"font-size: {match['size']}{weight}"


@dataclass(frozen=True)
class Structure:
    """A drawn molecule.

    Attributes:
        svg: For a page, with a transparent background.
        facts: Formula, molecular weight, Crippen logP and polar surface area, in words.
    """

    svg: str
    facts: str


def draw_molecule(
    smiles: str,
    prefix: str,
    *,
    label: str,
    size: tuple[int, int] = (300, 210),
    highlights: Sequence[str] = (),
) -> Structure | None:
    """A molecule, or `None` when RDKit cannot read it or it has more than `LARGEST_DRAWN` atoms.

    Args:
        smiles: A SMILES string.
        prefix: Of ids; different for each drawing of a page.
        label: What a screen reader says before the formula.
        size: Width and height.
        highlights: Substructures to be marked, as SMARTS that RDKit reads.
    """
    from rdkit.Chem import MolFromSmarts, rdMolDescriptors
    from rdkit.Chem.Draw import rdMolDraw2D

    with quiet_rdkit():
        mol = parse_smiles(smiles.strip())
        if mol is None or mol.GetNumHeavyAtoms() > LARGEST_DRAWN:
            return None
        try:
            drawer = rdMolDraw2D.MolDraw2DSVG(*size)
            set_style(drawer.drawOptions())
            matches = (match for smarts in highlights for match in mol.GetSubstructMatches(MolFromSmarts(smarts)))
            atoms = sorted({atom for match in matches for atom in match})
            rdMolDraw2D.PrepareAndDrawMolecule(drawer, mol, highlightAtoms=atoms)
            drawer.FinishDrawing()
            formula = rdMolDescriptors.CalcMolFormula(mol)
            facts = (
                f"MW {molecular_weight([smiles])[0]:.0f}",
                f"clogP {logp([smiles])[0]:.1f}",
                f"TPSA {rdMolDescriptors.CalcTPSA(mol):.0f} Å²",
            )
        except (RuntimeError, ValueError):
            return None
    svg = inline_svg(drawer.GetDrawingText(), prefix, label=f"{label}, structure of {formula}")
    return Structure(svg, " · ".join(facts))


def set_style(options: Any, *, margin: float = 0.04, enlarged: float = 1.0, black: bool = False) -> None:
    """How all molecules of pages are drawn.

    Args:
        options: Of a drawer of RDKit; they are changed.
        margin: Share of the drawing that is left free.
        enlarged: Pixels to a unit, for drawings in pixels.
        black: Whether letters are black, where colours mean something else than elements.
    """
    options.clearBackground = False
    options.fixedBondLength = 24 * enlarged
    options.bondLineWidth = 1.6 * enlarged
    options.baseFontSize = 0.65
    options.minFontSize = round(11 * enlarged)
    options.maxFontSize = round(40 * enlarged)
    if black:
        options.useBWAtomPalette()
    else:
        options.updateAtomPalette(_PALETTE)
    options.padding = margin


@dataclass(frozen=True)
class Reference:
    """The sequence that others are compared with.

    Attributes:
        string: The sequence.
        name: What it is, in words.
    """

    string: str
    name: str


def choose_reference(strings: Sequence[str], best_initial: str | None) -> Reference | None:
    """What to compare sequences with.

    Where they are variants of one parent, equally long and alike in at least 80% of their positions on average, it is
    the most common symbol of each position, which is the parent. Elsewhere it is the best of the initial design.

    Args:
        strings: All evaluated sequences.
        best_initial: The best of the initial design, if anything was measured there.

    Example:
        >>> choose_reference(["MKVLA", "MKVLG", "MRVLA"], "MRVLA").string
        'MKVLA'
        >>> choose_reference(["ACGT", "TTAA", "GGGC"], "TTAA").string
        'TTAA'
    """
    lengths = {len(string) for string in strings}
    if len(strings) > 2 and len(lengths) == 1 and lengths != {0}:
        counts = [Counter(column).most_common(1)[0] for column in zip(*strings, strict=True)]
        if sum(count for _, count in counts) >= 0.8 * len(strings) * len(counts):
            return Reference("".join(symbol for symbol, _ in counts), "the most common sequence")
    return Reference(best_initial, "the best of the initial design") if best_initial else None


@dataclass(frozen=True)
class MarkedSequence:
    """A sequence prepared for a page.

    Attributes:
        groups: Runs of ten symbols, each a list of pieces: text, and whether it differs from the reference.
        hidden: Number of symbols left out at the end.
        mutations: Differences such as ``A24G`` (reference, position from 1, own); empty where not comparable.
        same: Whether it equals the reference.
    """

    groups: list[list[tuple[str, bool]]]
    hidden: int
    mutations: list[str]
    same: bool


def mark_sequence(string: str, reference: str | None, *, whole: bool = False) -> MarkedSequence:
    """Split ``string`` into groups of ten and mark where it differs from ``reference``.

    Nothing is marked when the lengths differ, or more than half of the positions do. Text with blanks has words of
    its own and stays in one piece, as does any string with ``whole``.

    Example:
        >>> marked = mark_sequence("MKVLAAGILCRT", "MKVLAAGILAKT")
        >>> marked.groups
        [[('MKVLAAGIL', False), ('C', True)], [('R', True), ('T', False)]]
        >>> marked.mutations
        ['A10C', 'K11R']
    """
    differs = [False] * len(string)
    if reference is not None and len(reference) == len(string):
        differs = [own != other for own, other in zip(string, reference, strict=True)]
        if 2 * sum(differs) > len(string):
            differs = [False] * len(string)
    mutations = [f"{(reference or '')[i]}{i + 1}{string[i]}" for i, changed in enumerate(differs) if changed]
    shown = min(len(string), LONGEST_SHOWN)
    size = shown or 1 if whole or re.search(r"\s", string) else GROUP
    groups = [_pieces(string, differs, start, min(start + size, shown)) for start in range(0, shown, size)]
    return MarkedSequence(groups, len(string) - shown, mutations, same=string == reference)


def _pieces(string: str, differs: Sequence[bool], start: int, end: int) -> list[tuple[str, bool]]:
    pieces: list[tuple[str, bool]] = []
    for position in range(start, end):
        if pieces and pieces[-1][1] == differs[position]:
            pieces[-1] = (pieces[-1][0] + string[position], differs[position])
        else:
            pieces.append((string[position], differs[position]))
    return pieces


def sparkline(values: Sequence[float | None], *, width: int = 180, height: int = 36) -> str:
    """Coordinates of a small curve of ``values`` as the points of an SVG polyline, highest value on top.

    Gaps (`None`) are left out; a constant lies in the middle; a single value gives no curve.

    Example:
        >>> sparkline([0.0, 1.0, 0.5], width=100, height=10)
        '3.0,7.0 50.0,3.0 97.0,5.0'
    """
    known = [(i, value) for i, value in enumerate(values) if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return ""
    low, high = min(value for _, value in known), max(value for _, value in known)
    # The margin keeps half of the line's width, and the dot at its end, inside the drawing.
    margin = 3.0
    across, up = width - 2 * margin, height - 2 * margin

    def point(index: int, value: float) -> str:
        share = (value - low) / (high - low) if high > low else 0.5
        return f"{margin + across * index / (len(values) - 1):.1f},{margin + up * (1 - share):.1f}"

    return " ".join(point(index, value) for index, value in known)


def draw_fold(gene: str, *, label: str) -> Structure | None:
    """The folded RNA of a gene with its bases coloured, or `None` where it cannot be folded.

    The structure is that of minimum free energy, the positions of the bases are those of ViennaRNA, whose own
    drawing would contain a script.

    Args:
        gene: A sequence of at most `seqopt.report.structures.LONGEST_FOLDED` bases.
        label: What a screen reader says.
    """
    if not can_be_folded(gene):
        return None
    brackets, energy = fold(gene)
    positions = folded_coordinates(brackets)
    low, high = positions.min(axis=0) - 16, positions.max(axis=0) + 16
    bases = gene.upper().replace("T", "U")
    parts = ['<polyline points="{}" />'.format(" ".join(f"{x:.1f},{y:.1f}" for x, y in positions))]
    opened: list[int] = []
    pairs = 0
    for index, bracket in enumerate(brackets):
        if bracket == "(":
            opened.append(index)
        elif bracket == ")":
            (x1, y1), (x2, y2) = positions[opened.pop()], positions[index]
            parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" />')
            pairs += 1
    for base, (x, y) in zip(bases, positions, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6.5" class="base-{base}" />')
        if len(bases) <= LETTERED:
            parts.append(f'<text x="{x:.1f}" y="{y + 3.2:.1f}" text-anchor="middle" class="on-{base}">{base}</text>')
    for (x, y), end in ((positions[0], "5′"), (positions[-1], "3′")):
        parts.append(f'<text x="{x:.1f}" y="{y - 9:.1f}" text-anchor="middle" class="end">{end}</text>')
    box = f"{low[0]:.0f} {low[1]:.0f} {high[0] - low[0]:.0f} {high[1] - low[1]:.0f}"
    svg = f'<svg viewBox="{box}" class="fold" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    return Structure(svg, f"{pairs} base pairs · minimum free energy {energy:.1f} kcal/mol")


def codons_of(gene: str, reference: str | None, code: str | int = "standard") -> list[tuple[str, str, bool]]:
    """The codons of a gene: the codon, its amino acid (``*`` for stop, ``?`` if unknown), whether it differs.

    Args:
        gene: A sequence of bases.
        reference: A gene of the same length to compare with.
        code: The genetic code.

    Example:
        >>> codons_of("ATGGCATAA", "ATGGCCTAA")
        [('ATG', 'M', False), ('GCA', 'A', True), ('TAA', '*', False)]
    """
    table = genetic_code(code).amino_acids
    plain = gene.upper().replace("U", "T")
    other = (reference or "").upper().replace("U", "T")
    compared = len(other) == len(plain)
    return [
        (
            gene[start : start + 3],
            table.get(plain[start : start + 3], "?"),
            compared and plain[start : start + 3] != other[start : start + 3],
        )
        for start in range(0, min(len(gene), LONGEST_SHOWN), 3)
    ]
