"""Explanations show themselves in a notebook, are written to files, and stand on the cards of a campaign's page."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

import seqopt.report.explaining
from seqopt.campaign import Campaign
from seqopt.campaign.inquiry import Explanation
from seqopt.cli import main
from seqopt.errors import InputError
from seqopt.kernels import OneHotKernel
from seqopt.models import StringGP, contributions_of
from seqopt.models.registry import SURROGATES
from seqopt.report import write_report
from seqopt.report.display import as_html, as_text
from seqopt.report.explaining import explained
from seqopt.report.explanations import drawable, write_explanation
from seqopt.spaces import CandidateSet

TAILS = ["O", "N", "Cl", "Br", "C(=O)O", "C#N", "C(F)(F)F", "OC"]
SMILES = [
    f"{tail if tail in 'ON' else ''}{'C' * length}{'' if tail in 'ON' else tail}"
    for length in range(2, 9)
    for tail in TAILS
]
HOSTILE = "<script>alert(1)</script>"


def potency(smiles: str) -> float:
    return 10 ** (0.3 * smiles.count("C") - 0.5 * smiles.count("O"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explained")
    library = folder / "library.csv"
    library.write_text("smiles\n" + "".join(f"{smiles}\n" for smiles in SMILES))
    with Campaign.create(
        folder / "c.seqopt",
        library,
        objective=f"IC50{HOSTILE}",
        unit="nM",
        direction="minimize",
        transform="log10",
        surrogate="minmax",
        batch_size=6,
        seed=1,
    ) as campaign:
        for row in campaign.suggest():
            campaign.record(row.name, potency(row.string))
        campaign.suggest()
    return folder / "c.seqopt"


@pytest.fixture
def campaign(path: Path) -> Iterator[Campaign]:
    with Campaign.open(path) as found:
        yield found


@pytest.fixture
def found(campaign: Campaign) -> Explanation:
    return campaign.explain(campaign.store.open_suggestions()[0].name)


def adds(svg: str) -> dict[int, float]:
    return {int(index): float(value) for index, value in re.findall(r'data-\w+="(\d+)" data-adds="([^"]*)"', svg)}


def test_an_explanation_shows_itself_with_a_drawing(found: Explanation) -> None:
    html = as_html(found)
    assert html == found._repr_html_()
    (picture,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', html)
    svg = base64.b64decode(picture).decode()
    assert found.contributions is not None
    # What is drawn sums to what is predicted, in log10 of the user's units.
    total = found.contributions.prior_mean + sum(adds(svg).values())
    assert 10**total == pytest.approx(found.prediction.predicted, rel=1e-6)
    assert len(adds(svg)) == Chem.MolFromSmiles(found.prediction.string).GetNumAtoms()
    for word in ("rank", "to beat the best", "nearest measured", "nM", "is predicted of a string like none"):
        assert word in html
    assert HOSTILE not in html + svg
    text = as_text(found)
    assert str(found) == text
    for value in found.contributions.values:
        drawn = drawable(found)
        assert drawn is not None
        assert drawn[1].show(float(value), "+") in text


def test_a_string_is_drawn_by_the_order_of_its_own_atoms(campaign: Campaign) -> None:
    chains = [row.string for row in campaign.store.measurements() if re.fullmatch("[NO]?C+(Cl|Br)?", row.string)]
    assert chains
    differ = []
    for string in chains:
        mol = Chem.MolFromSmiles(string)
        last = mol.GetNumAtoms() - 1
        drawn = []
        for smiles in (Chem.MolToSmiles(mol, rootedAtAtom=end, canonical=False) for end in (0, last)):
            rests = drawable(campaign.explain(smiles))
            assert rests is not None
            drawn.append(adds(rests[0].svg(rests[1], "a-") or ""))
        assert drawn[0] == {last - index: value for index, value in drawn[1].items()}
        differ.append(drawn[0] != drawn[1])
    assert any(differ)


@pytest.mark.parametrize("ending", [".svg", ".png", ".html"])
def test_an_explanation_is_written(path: Path, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / f"b{ending}"
    assert main(["campaign", "explain", "B02-01", "--campaign", str(path), "--out", str(out)]) == 0
    assert f"drawn in {out}" in "".join(capsys.readouterr().out.split("\n"))
    contents = out.read_bytes()
    if ending == ".png":
        assert contents.startswith(b"\x89PNG")
        return
    assert HOSTILE.encode() not in contents
    if ending == ".html":
        assert b'name="color-scheme" content="light dark"' in contents
        assert b"default-src 'none'" in contents
        assert not re.findall(rb"(?:src|href)=\"(?!data:)", contents)
    else:
        assert b"B02-01" in contents
        assert len(adds(contents.decode())) > 2


def test_another_ending_is_refused_before_anything_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "b.pdf"
    assert main(["campaign", "explain", "B02-01", "--campaign", str(tmp_path / "none"), "--out", str(out)]) != 0
    assert "does not end in .svg, .png, .html" in " ".join(capsys.readouterr().err.split())


def test_what_is_not_known_is_said(found: Explanation, tmp_path: Path) -> None:
    unknown = Explanation(found.name, found.prediction, {}, None, "no atoms", {}, found.settings)
    assert "what it rests on is not known: no atoms" in as_html(unknown)
    assert "<img" not in as_html(unknown)
    with pytest.raises(InputError, match="there is nothing to draw"):
        write_explanation(unknown, tmp_path / "b.svg")
    write_explanation(unknown, tmp_path / "b.html")


def cards(page: str, name: str) -> list[str]:
    (section,) = re.findall(rf'<section aria-labelledby="{name}">(.*?)</section>', page, re.DOTALL)
    return re.findall(r'<li class="card">.*?</li>', section, re.DOTALL)


def test_cards_say_what_their_predictions_rest_on(path: Path, campaign: Campaign) -> None:
    page = write_report(path, predicted=3).read_text(encoding="utf-8")
    waiting, best = cards(page, "batch"), cards(page, "next")
    assert (len(waiting), len(best)) == (6, 3)
    scales = set()
    for card in [*waiting, *best]:
        (string,) = re.findall(r'<p class="text"><code class="whole">([^<]*)</code>', card)
        told = campaign.explain(string)
        assert told.contributions is not None
        drawn = adds(card)
        assert len(drawn) == Chem.MolFromSmiles(string).GetNumAtoms()
        # The model of the page is that of the campaign.
        total = told.contributions.prior_mean + sum(drawn.values())
        assert 10**total == pytest.approx(told.prediction.predicted, rel=1e-4)
        scales |= set(re.findall(r">(\+[\d.]+)</text>", card))
        assert "What the prediction rests on" in card
        assert "is predicted now" in card
    assert len(scales) == 1  # colours of one page can be compared
    assert HOSTILE not in page
    # What was measured needs no prediction.
    assert not any("rests" in card for card in cards(page, "best"))


def test_nothing_is_fitted_for_them(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[bool] = []
    fit = StringGP.fit

    def watched(self: StringGP, *arguments: object, **options: object) -> StringGP:
        fits.append(bool(options.get("full", True)))
        return fit(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(StringGP, "fit", watched)
    page = write_report(path, out=tmp_path / "again.html").read_text(encoding="utf-8")
    assert fits == [False]
    assert "What the prediction rests on" in page


def test_sequences_are_marked_on_their_cards(tmp_path: Path) -> None:
    strings = ["".join(letters) for letters in np.random.default_rng(0).choice(list("ACGT"), (40, 36))]
    space = CandidateSet(strings, kind="dna")
    with Campaign.create(tmp_path / "s.seqopt", space, objective="y", batch_size=6, surrogate="ssk") as made:
        for row in made.suggest():
            made.record(row.name, float(row.string.count("A")))
        made.suggest()
    page = write_report(tmp_path / "s.seqopt").read_text(encoding="utf-8")
    for card in cards(page, "batch"):
        drawn = adds(card)
        assert list(drawn) == list(range(1, 37))
        told = re.search(r"(-?[\d.]+) is predicted of a string.*add ([+-][\d.]+): (-?[\d.]+) is predicted now", card)
        assert told is not None
        prior, added, predicted = map(float, told.groups())
        assert sum(drawn.values()) == pytest.approx(added, abs=6e-3)
        assert prior + sum(drawn.values()) == pytest.approx(predicted, abs=2e-2)


def test_a_model_that_cannot_say_is_named_on_the_page(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seqopt.report.explaining, "contributions_of", _refuse)
    page = write_report(path, out=tmp_path / "p.html").read_text(encoding="utf-8")
    assert "What predictions rest on is not shown: no &lt;parts&gt;." in page
    assert "What the prediction rests on" not in page


def _refuse(*arguments: object, **options: object) -> None:
    from seqopt.errors import ModelError

    raise ModelError("no <parts>")


def test_explanations_are_those_of_the_model_in_the_users_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["".join(letters) for letters in np.random.default_rng(0).choice(list("ACGT"), (20, 9))]
    gp = StringGP(OneHotKernel())
    gp.fit(texts, [float(text.count("A")) for text in texts], rng=np.random.default_rng(1))
    told = explained(gp, [texts[0], texts[0], "ACGTACGTA"], texts, -1.0)
    assert (set(told.found), told.missing) == ({texts[0], "ACGTACGTA"}, "")
    for key, one in told.found.items():
        np.testing.assert_allclose(one.values, -contributions_of(gp, key).values)
        assert one.prior_mean + one.values.sum() == pytest.approx(one.prediction)
    assert explained(object(), ["A"], ["A"], 1.0).missing == (
        "object is not a Gaussian process: it cannot say what its predictions rest on"
    )


def test_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["".join(letters) for letters in np.random.default_rng(0).choice(list("ACGT"), (20, 9))]
    gp = SURROGATES["ssk"].build()
    gp.fit(texts, [float(text.count("A")) for text in texts], rng=np.random.default_rng(1))
    monkeypatch.setattr(seqopt.report.explaining, "MOST_SHARED", 2.5 * 9 * 9 * 180)
    told = explained(gp, texts[:5], texts, 1.0)
    assert list(told.found) == texts[:2]
    assert told.missing == "it would take too long for strings of this length and number"
