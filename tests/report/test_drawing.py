"""Structures, sequences, and SVG inside HTML."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.report.drawing import (
    LONGEST_SHOWN,
    choose_reference,
    draw_fold,
    draw_molecule,
    inline_svg,
    mark_sequence,
    sparkline,
)


def test_inlined_svg_keeps_nothing_that_runs_loads_or_leaks() -> None:
    document = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9" '
        'onload="a()"><metadata>x</metadata><style>*{color:red}</style><script>b()</script>'
        '<defs><path id="p" d="M0 0"/><path id="unused" d="M0 0"/></defs>'
        '<g clip-path="url(#p)" class="c" onclick="c()"><use xlink:href="#p"/>'
        '<image xlink:href="https://example.org/a.png"/><image xlink:href="data:image/png;base64,AA=="/></g>'
        "<text style=\"font: bold 10px 'DejaVu Sans', sans-serif; text-anchor: end; fill: #123456\">a &lt; b</text>"
        "</svg>"
    )
    text = inline_svg(document, "q-", label='A "label" & more', colours={"#123456": "currentColor"})
    root = ElementTree.fromstring(text)
    assert [element.tag for element in root.iter()] == [
        *("svg", "defs", "path", "path", "g", "use", "image", "image", "text")
    ]
    assert root.attrib == {"role": "img", "aria-label": 'A "label" & more', "viewBox": "0 0 9 9"}
    group = root.find("g")
    assert group is not None
    assert group.attrib == {"clip-path": "url(#q-p)"}
    assert [child.attrib for child in group] == [{"href": "#q-p"}, {}, {"href": "data:image/png;base64,AA=="}]
    assert [path.get("id") for path in root.iter("path")] == ["q-p", None]
    words = root.find("text")
    assert words is not None
    assert words.text == "a < b"
    assert words.get("style") == "font-size: 10px; font-weight: bold; text-anchor: end; fill: currentColor"


def test_a_molecule_is_drawn_with_its_facts() -> None:
    structure = draw_molecule(" CC(=O)Oc1ccccc1C(=O)O ", "m-", label="Molecule 1")
    assert structure is not None
    assert structure.facts == "MW 180 · clogP 1.3 · TPSA 64 Å²"  # aspirin: 180.16 g/mol; TPSA 63.6 (Ertl 2000)
    root = ElementTree.fromstring(structure.svg)
    assert root.get("aria-label") == "Molecule 1, structure of C9H8O4"
    assert sum(element.tag == "path" for element in root.iter()) >= 13  # at least one path per bond
    assert root.find("rect") is None  # no background


@pytest.mark.parametrize("smiles", ["", "C1CC", "<img src=x onerror=alert(1)>", "C(C)(C)(C)(C)C", "C" * 400])
def test_what_cannot_be_drawn_is_not(smiles: str) -> None:
    assert draw_molecule(smiles, "m-", label="Molecule") is None


@given(st.text(alphabet="ACGT", min_size=1, max_size=45), st.data())
@settings(max_examples=60, deadline=None)
def test_marked_pieces_spell_the_string_and_mark_its_differences(string: str, data: st.DataObject) -> None:
    other = data.draw(st.text(alphabet="ACGT", min_size=len(string), max_size=len(string)))
    marked = mark_sequence(string, other)
    assert "".join(piece for group in marked.groups for piece, _ in group) == string
    assert all(sum(len(piece) for piece, _ in group) == 10 for group in marked.groups[:-1])
    flags = [differs for group in marked.groups for piece, differs in group for _ in piece]
    expected = [a != b for a, b in zip(string, other, strict=True)]
    assert flags == (expected if sum(expected) <= len(string) / 2 else [False] * len(string))
    assert len(marked.mutations) == sum(flags)


def test_sequences_of_another_length_are_not_compared() -> None:
    marked = mark_sequence("ACGT", "ACG")
    assert marked.groups == [[("ACGT", False)]]
    assert marked.mutations == []


def test_long_sequences_are_cut_and_words_are_kept() -> None:
    marked = mark_sequence("A" * (LONGEST_SHOWN + 7), None)
    assert (marked.hidden, len(marked.groups)) == (7, LONGEST_SHOWN / 10)
    assert mark_sequence("several words in a line", None).groups == [[("several words in a line", False)]]


def test_the_reference_is_the_parent_of_variants_or_else_the_best_initial_one() -> None:
    parent = "MKVLAAGILC"
    variants = [parent[:i] + "W" + parent[i + 1 :] for i in range(10)]
    reference = choose_reference(variants, variants[0])
    assert reference is not None
    assert (reference.string, reference.name) == (parent, "the most common sequence")
    mixed = choose_reference([*variants, "MKV"], "MKV")
    assert mixed is not None
    assert mixed.name == "the best of the initial design"
    assert choose_reference(["AC", "GGG"], None) is None


def test_a_sparkline_has_its_extremes_at_its_edges() -> None:
    assert sparkline([1.0, None, 3.0], width=106, height=26) == "3.0,23.0 103.0,3.0"
    assert sparkline([2.0, 2.0], width=106, height=26) == "3.0,13.0 103.0,13.0"
    assert sparkline([2.0, None]) == ""


def test_groups_of_points_keep_the_numbers_of_their_evaluations() -> None:
    document = '<svg xmlns="http://www.w3.org/2000/svg"><g id="rows-3,5"><path d="M0 0"/></g><g id="other"/></svg>'
    first, second = ElementTree.fromstring(inline_svg(document, "p-", label="points")).findall("g")
    assert (first.attrib, second.attrib) == ({"data-rows": "3,5"}, {})


def test_a_folded_gene_is_drawn_from_coordinates_without_a_script() -> None:
    drawn = draw_fold("GGGAAACTTCGGTTTCCC", label='a "gene" & <b>')
    assert drawn is not None
    root = ElementTree.fromstring(drawn.svg)
    assert root.get("aria-label") == 'a "gene" & <b>'
    assert {element.tag for element in root.iter()} == {"svg", "polyline", "line", "circle", "text"}
    bases = [element.text for element in root.iter("text")]
    assert "".join(filter(None, bases[:-2])) == "GGGAAACUUCGGUUUCCC"
    pairs = int(drawn.facts.split()[0])
    assert len(root.findall("line")) == pairs > 0
    assert draw_fold("MKVLA", label="a protein") is None
